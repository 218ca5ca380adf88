# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Contributions and verified, timed sums of one worker of `switchfold calibrate`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

SMALL_VALUES: Final = 256
"""Values of a sum that takes one chunk."""
SMALL_SUMS: Final = 100
_RELATIVE: Final = 1e-4

Floats = NDArray[np.float32]
Sum = Callable[[Floats], Floats]


def worker_parser() -> argparse.ArgumentParser:
    """Return a parser of what both kinds of workers take."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--repeats", type=int, required=True)
    parser.add_argument("--timeout", type=float, required=True)
    return parser


def contribution(worker_id: int, num_values: int) -> Floats:
    """Return a worker's float32 values, from which the sum of all follows."""
    return np.resize(np.linspace(-1, 1, 997, dtype=np.float32), num_values) * (worker_id + 1)


def check_sum(found: Floats, num_workers: int) -> None:
    """Raise AssertionError unless the values are the sum of all workers' contributions."""
    expected = contribution(0, len(found)) * (num_workers * (num_workers + 1) / 2)
    worst = float(np.max(np.abs(found - expected)))
    limit = _RELATIVE * num_workers**2
    if not worst <= limit:  # NaN too
        raise AssertionError(f"a sum is wrong by {worst}, more than {limit}")


def timed_sums(
    add: Sum, place: tuple[int, int], options: argparse.Namespace, switch_s: Callable[[], float]
) -> dict[str, list[float]]:
    """Return seconds of each large sum, the warm-up left out: of the clock and of processors.

    `switch_s` reads the switch's processor time. `place`: worker id and number of workers.
    """
    names = ("seconds", "worker_s", "switch_s")
    found: dict[str, list[float]] = {name: [] for name in names}

    def now() -> tuple[float, ...]:
        return time.monotonic(), time.process_time(), switch_s()

    for repeat in range(options.repeats + 1):
        values = contribution(place[0], options.bytes // 4)
        began = now()
        result = add(values)
        ended = now()
        check_sum(result, place[1])
        if repeat:
            for name, before, after in zip(names, began, ended, strict=True):
                found[name].append(after - before)
    return found


def timed_small_sums(add: Sum, place: tuple[int, int]) -> Sequence[float]:
    """Return the wall seconds of each of many small sums."""
    seconds: list[float] = []
    for repeat in range(SMALL_SUMS + 10):
        values = contribution(place[0], SMALL_VALUES)
        began_s = time.monotonic()
        result = add(values)
        if repeat >= 10:
            seconds.append(time.monotonic() - began_s)
        check_sum(result, place[1])
    return seconds


def large_and_small(
    add: Sum, place: tuple[int, int], options: argparse.Namespace, switch_s: Callable[[], float]
) -> dict[str, Any]:
    """Return what `timed_sums` and `timed_small_sums` find."""
    large = timed_sums(add, place, options, switch_s)
    return {**large, "small_s": list(timed_small_sums(add, place))}
