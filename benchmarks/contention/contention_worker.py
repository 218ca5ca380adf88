# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One worker of a job that sums until its stop file appears; then it writes its results as JSON.

Worker 0 looks for the file and reports it in the last value of its tensor, so the sum itself stops
all workers at the same tensor. Every result is verified.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

from switchfold.hostlib import AllreduceFuture, Session, SessionOptions
from switchfold.hostlib.config import transport_from_environment

DEPTH = 2
"""Tensors in flight, so that no slot waits for the next tensor."""
NUM_PROBES = 20


def measure_round_trip(session: Session) -> float:
    """Return the median seconds of a sum of one packet without exponents."""
    times_s: list[float] = []
    for _ in range(NUM_PROBES):
        session.barrier(f"probe-{len(times_s)}")
        began_s = time.monotonic()
        session.allreduce(np.ones(8, np.int32)).result()
        times_s.append(time.monotonic() - began_s)
    return float(np.median(times_s))


def sum_until_stopped(
    session: Session, elements: int, stop: Path, begun: Path
) -> list[dict[str, Any]]:
    """Return the end of each sum and the slots that the worker had then.

    Makes the file `begun` after the first sum.
    """
    worker_id = int(os.environ["SWITCHFOLD_WORKER_ID"])
    num_workers = int(os.environ["SWITCHFOLD_NUM_WORKERS"])
    bases = [
        np.random.default_rng(number).standard_normal(elements, dtype=np.float32)
        for number in range(num_workers)
    ]
    expected = np.asarray(np.sum(bases, axis=0, dtype=np.float64))[:-1]
    in_flight: deque[AllreduceFuture] = deque()
    done: list[dict[str, Any]] = []
    is_stopping = False
    while in_flight or not is_stopping:
        while len(in_flight) < DEPTH and not is_stopping:
            array = bases[worker_id].copy()
            array[-1] = 1.0 if worker_id == 0 and stop.exists() else 0.0
            in_flight.append(session.allreduce(array, precision="block"))
        result = in_flight.popleft().result()
        done.append(
            {
                "time_s": time.monotonic(),
                "slots": session.view.slot_count,
                "is_on_switch": session.view.is_on_switch,
            }
        )
        np.testing.assert_allclose(result[:-1], expected, rtol=1e-5, atol=1e-5)
        begun.touch()
        is_stopping = is_stopping or result[-1] != 0.0
    return done


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--elements", type=int, required=True)
    parser.add_argument("--slots", type=int, required=True, help="0: the controller decides")
    parser.add_argument("--stop", type=Path, required=True)
    parser.add_argument("--idle", action="store_true", help="hold the slots, sum nothing")
    parser.add_argument("--begun", type=Path, required=True, help="file, made after the first sum")
    parser.add_argument("--result", type=Path, required=True)
    options = parser.parse_args()
    with Session.join(
        controller=os.environ["SWITCHFOLD_CONTROLLER"],
        job=os.environ["SWITCHFOLD_JOB"],
        worker_id=int(os.environ["SWITCHFOLD_WORKER_ID"]),
        num_workers=int(os.environ["SWITCHFOLD_NUM_WORKERS"]),
        transport=transport_from_environment(),
        options=SessionOptions(
            timeout_s=60.0,
            token=os.environ.get("SWITCHFOLD_TOKEN", ""),
            job_token=os.environ.get("SWITCHFOLD_JOB_TOKEN", ""),
            ingress_port=int(os.environ["SWITCHFOLD_INGRESS_PORT"]),
            slots_wanted=options.slots,
        ),
    ) as session:
        content: dict[str, Any] = {"sums": []}
        if options.idle:
            options.begun.touch()
            while not options.stop.exists():
                time.sleep(0.1)
        else:
            content["round_trip_s"] = measure_round_trip(session)
            content["sums"] = sum_until_stopped(
                session, options.elements, options.stop, options.begun
            )
        content["statistics"] = dict(session.statistics)
    options.result.write_text(json.dumps(content))


if __name__ == "__main__":
    main()
