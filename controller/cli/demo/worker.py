# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One worker of the demo: trains on its share of every batch and sums gradients in the switch.

Runs as a process of its own: `python -m switchfold.controller.cli.demo.worker SCHEDULE RECORD`. The
environment describes the session; progress goes to the standard output as one JSON object per
line.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

from ....hostlib.config import join_from_environment
from ....hostlib.errors import HostlibError
from ....hostlib.session import Session
from .digits import Digits, load_digits
from .perceptron import Perceptron
from .record import WorkerRecord
from .schedule import Schedule

REPORT_EVERY_STEPS = 5
REFUSED_PACKETS = ("duplicate", "mismatch", "notice")
"""Causes for which a session refuses a packet that the switch sent to it."""


def train(session: Session, schedule: Schedule, digits: Digits) -> WorkerRecord:
    """Train one replica; every gradient is averaged over the workers by the switch."""
    model = Perceptron(schedule.seed)
    losses: list[float] = []
    allreduce_s: list[float] = []
    accuracies: list[float] = []
    num_images = len(digits.train_labels)
    last_step = schedule.steps_per_epoch(num_images) - 1
    session.barrier("start")
    start_s = time.perf_counter()
    for epoch, step, batch in schedule.batches(num_images):
        share = schedule.share(batch, session.view.worker_id)
        loss, gradient = model.gradient(digits.train_images[share], digits.train_labels[share])
        sent_s = time.perf_counter()
        mean = session.allreduce(gradient, op="mean", precision="block").result()
        allreduce_s.append(time.perf_counter() - sent_s)
        model.step(mean, learning_rate=schedule.learning_rate, momentum=schedule.momentum)
        losses.append(loss)
        if step == last_step:
            accuracies.append(model.accuracy(digits.test_images, digits.test_labels))
        if step == last_step or step % REPORT_EVERY_STEPS == 0:
            _report(epoch, step, loss, accuracies)
    training_s = time.perf_counter() - start_s
    session.barrier("end")
    # Links deliver in order: once this sum is done, all earlier packets have arrived, too.
    again_before = packets_again(session)
    session.allreduce(np.zeros(1, np.int32)).result()
    sent, received = packet_counts(session)
    return WorkerRecord(
        worker_id=session.view.worker_id,
        parameters=model.parameters,
        losses=np.array(losses),
        allreduce_s=np.array(allreduce_s),
        accuracies=np.array(accuracies),
        training_s=training_s,
        packets_sent=sent,
        packets_received=received,
        packets_under_way=packets_again(session) - again_before,
    )


def packets_again(session: Session) -> int:
    """Return how many packets a session has sent that are no first contribution."""
    statistics = session.statistics
    kinds = ("exponent_packets_retransmitted", "value_packets_retransmitted", "probe_packets_sent")
    return sum(int(statistics[kind]) for kind in kinds)


def packet_counts(session: Session) -> tuple[int, int]:
    """Return the Switchfold packets that a session (sent, received), refused ones included."""
    statistics = session.statistics
    sent = received = 0
    for stream in ("exponent", "value"):
        sent += int(statistics[f"{stream}_packets_sent"])
        sent += int(statistics[f"{stream}_packets_retransmitted"])
        received += int(statistics[f"{stream}_packets_received"])
    sent += int(statistics["probe_packets_sent"])
    received += sum(int(statistics.get(f"refused_{cause}", 0)) for cause in REFUSED_PACKETS)
    return sent, received


def _report(epoch: int, step: int, loss: float, accuracies: list[float]) -> None:
    progress: dict[str, float] = {"epoch": epoch, "step": step, "loss": loss}
    progress["epochs_done"] = len(accuracies)
    if accuracies:
        progress["accuracy"] = accuracies[-1]
    print(json.dumps(progress), flush=True)


def main() -> int:
    """Run one worker; 1 when the session failed."""
    schedule = Schedule.read(Path(sys.argv[1]))
    digits = load_digits()
    try:
        with join_from_environment() as session:
            record = train(session, schedule, digits)
    except HostlibError as error:
        print(f"error: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    record.write(Path(sys.argv[2]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
