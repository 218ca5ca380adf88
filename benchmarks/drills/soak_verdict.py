# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What has leaked in a soak, and whether the logs can still be read."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Final

from benchmarks.drills.soak_run import SoakRecord

MORE_MEMORY_BYTES: Final = 32 << 20
"""A process may have so much more resident memory at the end than after the warm-up."""
MORE_DESCRIPTORS: Final = 8
"""Streams of workers that come and go, and calls under way."""
MORE_THREADS: Final = 4
"""gRPC keeps some for later calls."""
MORE_POOL_THREADS: Final = 16
"""A softswitch's pool gets a thread whenever all of them are busy. Calls and streams that never end
would keep theirs, until the pool is full."""
LINES_PER_ROUND: Final = 60
"""Most lines of one log for each round."""
MOST_DRIFT: Final = 1.25
"""Time between tensors in the last third of the rounds over that in the first third."""
_LEAST_ROUNDS: Final = 30
"""Fewer say nothing: rounds differ by how many workers the job has."""
_RECORD: Final = re.compile(
    r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} )?(DEBUG|INFO|WARNING|ERROR) [\w.]+: \S|ready: \S"
)
"""How a line of a log begins: the controller's with the time, softswitch's without. Both print one
line when they are ready."""


def problems(record: SoakRecord) -> list[str]:
    """Return what is wrong after a soak, in words; nothing if all is well."""
    found: list[str] = []
    for name, samples in record.footprints.items():
        first, last = samples[0], samples[-1]
        for what, before, after, more in (
            ("bytes of memory", first.memory_bytes, last.memory_bytes, MORE_MEMORY_BYTES),
            ("descriptors", first.descriptors, last.descriptors, MORE_DESCRIPTORS),
            ("threads", first.threads, last.threads, MORE_THREADS),
            (
                "threads that serve calls",
                *(first.pool_threads, last.pool_threads, MORE_POOL_THREADS),
            ),
        ):
            if after > before + more:
                found.append(f"{name}: {after} {what} instead of {before}; {more} more are allowed")
    if record.slots_left:
        found.append(f"{record.slots_left} slots are in use though no job runs")
    before, at_end, left = record.namespaces
    if at_end != before or left:
        found.append(f"namespaces: {before} at first, {at_end} at the end, {left} afterwards")
    for name, log in record.logs.items():
        found += [f"log of {name}: no record: {line}" for line in log if not _RECORD.match(line)]
        if len(log) > LINES_PER_ROUND * record.rounds:
            found.append(f"log of {name}: {len(log)} lines in {record.rounds} rounds")
    return found


def drift(record: SoakRecord) -> float:
    """Return the time between tensors of the last third of the rounds over the first third's.

    Medians of the rounds' medians. NaN if there are too few rounds to tell.
    """
    medians = [median for median, _ in record.latencies_ms]
    if len(medians) < _LEAST_ROUNDS:
        return float("nan")
    third = len(medians) // 3
    return statistics.median(medians[-third:]) / statistics.median(medians[:third])


def repeated_line(log: Sequence[str]) -> tuple[str, int]:
    """Return the text that comes most often in a log, numbers aside, and how often it comes."""
    counts = Counter(re.sub(r"\d+", "#", line) for line in log)
    return counts.most_common(1)[0] if counts else ("", 0)
