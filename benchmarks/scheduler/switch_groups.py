# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Updates that a switch adds up beside updates that workers send to their server directly.

Workers and a parameter server are in network namespaces around softswitch. In each round, all
workers push an update at once: in turn as the controller's scheduler grants, which is one group at
the switch if all requests come within 50 ms, and directly over TCP. Rounds in which an update came
by itself are made again, and counted. After each round, the model must be the exact sum. With k
workers, the server needs to receive a k-th of the bytes, and a k-th of the time that they take on
its link.
Run as root: python benchmarks/scheduler/switch_groups.py
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
)
from group_training import LIMIT_S, GroupTraining  # noqa: E402
from switchfold.bmv2_topos import Testbed, single_switch  # noqa: E402
from switchfold.hostlib.slots.wire import VALUES_PER_PACKET_WIDE  # noqa: E402

FRAME_BYTES = 1494
"""Of a packet with a chunk, as counters of veth links see it."""
SEGMENT_BYTES = 1448
"""Payload of a TCP segment, in a frame of 1,514 bytes as those counters see it."""
SEGMENT_FRAME_BYTES = 1514
_MOST_APART = 20
"""For each round, others in which the scheduler may grant no group of all workers."""


@dataclass
class Measured:
    """Rounds of one number of workers."""

    num_workers: int
    num_values: int
    rate_bits_per_s: int
    switch_s: list[float] = field(default_factory=list[float])
    """From the pushes to the last commit."""
    direct_s: list[float] = field(default_factory=list[float])
    switch_bytes: list[int] = field(default_factory=list[int])
    """That the server's interface received."""
    direct_bytes: list[int] = field(default_factory=list[int])
    num_apart: int = 0
    """Rounds whose updates were not all in one group."""

    @property
    def least_sum_bytes(self) -> int:
        """Of one sum in packets of the switch."""
        return -(-self.num_values // VALUES_PER_PACKET_WIDE) * FRAME_BYTES

    @property
    def least_direct_bytes(self) -> int:
        """Of all updates in full TCP segments."""
        one = -(-4 * self.num_values // SEGMENT_BYTES) * SEGMENT_FRAME_BYTES
        return self.num_workers * one

    def seconds(self, num_bytes: int) -> float:
        """Return how long a link is busy with bytes."""
        return 8 * num_bytes / self.rate_bits_per_s


def timed(calls: Sequence[Callable[[], Future[Any]]]) -> float:
    """Make all calls at once; return the seconds until the last of their futures is done."""
    started_s = time.monotonic()
    for future in [call() for call in calls]:
        future.result(LIMIT_S)
    return time.monotonic() - started_s


class Rounds:
    """Pushes of both kinds, verified."""

    def __init__(self, training: GroupTraining, measured: Measured) -> None:
        self._training, self._measured = training, measured
        self._seed = 0

    def _push(self, push: Callable[[int, NDArray[np.float32]], Future[Any]]) -> tuple[float, int]:
        training = self._training
        self._seed += 1
        updates = training.updates(self._seed)
        before = training.received()
        taken_s = timed([lambda n=n, u=u: push(n, u) for n, u in enumerate(updates)])
        received = training.received() - before
        training.check()
        return taken_s, received

    def through_switch(self) -> tuple[float, int] | None:
        """Push as granted; return None if not all updates have come in sums."""
        outcomes: list[Future[Any]] = []

        def push(number: int, update: NDArray[np.float32]) -> Future[Any]:
            outcomes.append(self._training.workers[number].push(update))
            return outcomes[-1]

        found = self._push(push)
        are_summed = [outcome.result().parts[0].is_summed for outcome in outcomes]
        return found if all(are_summed) else None

    def directly(self) -> tuple[float, int]:
        """Push to the server over TCP."""
        return self._push(lambda n, update: self._training.workers[n]._tensor.push(update))

    def warm_up(self) -> None:
        """Push until the switch adds up, and once directly."""
        end_s = time.monotonic() + LIMIT_S
        while not all(self._training.push_all(1_000_000 + self._seed)):
            self._seed += 1
            if time.monotonic() > end_s:
                raise SystemExit("the switch adds nothing up")
        self._training.check()
        self.directly()

    def run(self, count: int) -> None:
        """Measure rounds of both kinds in turn."""
        measured = self._measured
        self.warm_up()
        while len(measured.switch_s) < count:
            found = self.through_switch()
            if found is None:
                measured.num_apart += 1
                if measured.num_apart > _MOST_APART * count:
                    raise SystemExit("the scheduler grants no groups of all workers")
                continue
            taken_s, received = found
            measured.switch_s.append(taken_s)
            measured.switch_bytes.append(received)
            taken_s, received = self.directly()
            measured.direct_s.append(taken_s)
            measured.direct_bytes.append(received)


def measure(num_workers: int, num_values: int, rate_bits_per_s: int, rounds: int) -> Measured:
    """Return the rounds of a number of workers on a testbed of their own."""
    measured = Measured(num_workers, num_values, rate_bits_per_s)
    topology = single_switch(num_workers + 1, rate_bits_per_s=rate_bits_per_s)
    with (
        tempfile.TemporaryDirectory() as folder,
        Testbed(topology) as testbed,
        GroupTraining(testbed, Path(folder), num_values, has_log=False) as training,
    ):
        Rounds(training, measured).run(rounds)
    return measured


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Return median (least .. most)."""
    parts = statistics.median(values), min(values), max(values)
    return "{:.{d}f} ({:.{d}f} .. {:.{d}f})".format(*parts, d=digits)


def row(measured: Measured) -> list[str]:
    """Return a line of the table."""
    pairs = list(zip(measured.switch_bytes, measured.direct_bytes, strict=True))
    ratio = statistics.median(switch / direct for switch, direct in pairs)
    times = [s / d for s, d in zip(measured.switch_s, measured.direct_s, strict=True)]
    least = measured.least_sum_bytes / measured.least_direct_bytes
    return [
        str(measured.num_workers),
        spread([each / 1e6 for each in measured.switch_bytes]),
        spread([each / 1e6 for each in measured.direct_bytes]),
        f"{ratio:.3f}",
        f"{least:.3f}",
        spread(measured.switch_s),
        spread(measured.direct_s),
        spread(times),
        f"{measured.seconds(measured.least_sum_bytes):.2f}",
        f"{measured.seconds(measured.least_direct_bytes):.2f}",
        str(measured.num_apart),
    ]


HEADINGS = (
    "workers",
    "MB at the server, switch",
    "direct",
    "ratio",
    "least ratio",
    "last commit s, switch",
    "direct",
    "ratio",
    "least s, switch",
    "direct",
    "rounds apart",
)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4, 8], help="(2 4 8)")
    parser.add_argument("--megabytes", type=float, default=5.0, help="of an update (5)")
    parser.add_argument("--rate", type=parse_rate, default=100_000_000, help="of links (100M)")
    parser.add_argument("--rounds", type=int, default=5, help="after a warm-up (5)")
    parser.add_argument("--json", type=Path, help="file that also gets the figures")
    options = parser.parse_args()
    check_machine(has_torch=False)
    print(machine_line(describe_machine(has_torch=False)))
    num_values = int(options.megabytes * 1e6) // 4
    print(
        f"updates of {4e-6 * num_values:g} MB, links of {options.rate / 1e6:g} Mbit/s;"
        f" {options.rounds} rounds in turn, medians (least .. most); every model is the exact sum"
    )
    print("| " + " | ".join(HEADINGS) + " |")
    print("|" + "---|" * len(HEADINGS))
    found = []
    for num_workers in options.workers:
        found.append(measure(num_workers, num_values, options.rate, options.rounds))
        print("| " + " | ".join(row(found[-1])) + " |", flush=True)
    if options.json:
        figures = [asdict(each) for each in found]
        options.json.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
