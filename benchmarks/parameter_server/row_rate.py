# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Updates and reads of a sparse table per second and core, beside numpy on a dense array.

numpy gets the rows' numbers: it needs no table of keys. Both get the same batches in turns. The
limit is the memory bandwidth of one core, over the cache lines that a batch has to move.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.support.machine import describe_machine, machine_line  # noqa: E402
from switchfold.hostlib.parameter_server.rows import (  # noqa: E402
    Adagrad,
    Adam,
    Ftrl,
    GradientSum,
    Optimiser,
    RowTable,
    Sgd,
)

ZIPF_EXPONENT = 1.07
SPREAD = 0x9E3779B97F4A7C15 - (1 << 64)
"""Odd, so that numbers of rows times it are different keys all over int64."""
HEAD_BYTES = 24
"""Of a row: key, lsn, number of updates."""
LINE_BYTES = 64
OPTIMISERS = (
    GradientSum(),
    Sgd(learning_rate=0.1),
    Sgd(learning_rate=0.1, momentum=0.9),
    Adagrad(learning_rate=0.1),
    Adam(learning_rate=0.01),
    Ftrl(alpha=0.1, l1=0.1),
)
Numbers = NDArray[np.int64]
Floats = NDArray[np.float32]


class DenseRows:
    """The contender: arrays of all rows, and numpy's functions on whole batches."""

    def __init__(self, num_rows: int, width: int, optimiser: Optimiser) -> None:
        self.values = np.zeros((num_rows, width), np.float32)
        self.state = np.zeros((optimiser.num_states, num_rows, width), np.float32)
        self.updates = np.zeros(num_rows, np.int64)
        self._optimiser = optimiser

    def push(self, numbers: Numbers, gradients: Floats) -> None:
        """Sort the batch, add what belongs to a row, and apply the sums."""
        order = np.argsort(numbers, kind="stable")
        rows, first = np.unique(numbers[order], return_index=True)
        sums = np.add.reduceat(gradients[order], first, axis=0)
        self.updates[rows] += 1
        state = [each[rows] for each in self.state]
        self.values[rows] += self._step(sums, state, rows)
        for whole, part in zip(self.state, state, strict=True):
            whole[rows] = part

    def pull(self, numbers: Numbers) -> Floats:
        """Return the values of rows."""
        return self.values[numbers]

    def _step(self, gradient: Floats, state: list[Floats], rows: Numbers) -> Floats:
        numbers = [np.float32(number) for number in self._optimiser.numbers]
        match self._optimiser:
            case GradientSum():
                return gradient
            case Sgd(momentum=momentum):
                if momentum:
                    state[0] = gradient = numbers[1] * state[0] + gradient
                return -numbers[0] * gradient
            case Adagrad():
                state[0] += gradient * gradient
                return -numbers[0] * gradient / (np.sqrt(state[0]) + numbers[1])
            case Adam(learning_rate=rate, beta1=beta1, beta2=beta2):
                state[0] += np.float32(1 - beta1) * (gradient - state[0])
                state[1] = numbers[2] * state[1] + np.float32(1 - beta2) * gradient * gradient
                steps = self.updates[rows, None]
                unbiased = (rate / (1 - beta1**steps)).astype(np.float32)
                root = np.sqrt(1 - beta2**steps).astype(np.float32)
                return -unbiased * state[0] / (np.sqrt(state[1]) / root + numbers[3])
            case Ftrl():
                alpha, beta, l1, l2 = numbers
                values, before = self.values[rows], np.sqrt(state[1])
                state[1] += gradient * gradient
                after = np.sqrt(state[1])
                state[0] += gradient - (after - before) / alpha * values
                beyond = np.maximum(np.abs(state[0]) - l1, np.float32(0))
                new = -np.sign(state[0]) * beyond / ((beta + after) / alpha + l2)
                return new - values
            case other:
                raise TypeError(f"no such optimiser in numpy: {other}")


def copy_bytes_per_s() -> float:
    """Return the bytes that one core reads and writes as it copies more than the caches hold."""
    source = np.ones(1 << 26, np.float32)
    target = np.empty_like(source)
    times = [seconds(lambda: np.copyto(target, source)) for _ in range(5)]
    return 2 * source.nbytes / min(times)


def seconds(call: Callable[[], object], clock: Callable[[], float] = time.thread_time) -> float:
    """Return the processor time of a call: other processes may use the core meanwhile."""
    start_s = clock()
    call()
    return clock() - start_s


def draw_batches(
    distribution: str, num_rows: int, batch: int, count: int, rng: np.random.Generator
) -> list[Numbers]:
    """Return numbers of rows; in a Zipf distribution, ranks have random rows."""
    if distribution == "uniform":
        return [rng.integers(0, num_rows, batch) for _ in range(count)]
    shares = np.cumsum(np.arange(1, num_rows + 1) ** -ZIPF_EXPONENT)
    of_ranks = rng.permutation(num_rows)
    return [of_ranks[np.searchsorted(shares, rng.random(batch) * shares[-1])] for _ in range(count)]


def moved_bytes(batches: list[Numbers], width: int, optimiser: Optimiser) -> tuple[float, float]:
    """Return the bytes of a push and of a pull, on average per batch.

    Of each different key, a push reads and writes the row's cache lines and reads a line of the
    hash table; a pull reads them. The batch's own keys, gradients and values count as they are.
    """
    distinct = statistics.fmean(np.unique(batch).size for batch in batches)
    row = HEAD_BYTES + 4 * width * (1 + optimiser.num_states)
    # A row begins anywhere in a line, at a multiple of 8 bytes.
    lines = (row + LINE_BYTES - 8) / LINE_BYTES
    own = batches[0].size * (8 + 4 * width)
    push = distinct * LINE_BYTES * (2 * lines + 1) + own
    pull = (
        distinct * LINE_BYTES * ((HEAD_BYTES + 4 * width + LINE_BYTES - 8) / LINE_BYTES + 1) + own
    )
    return push, pull


def check_sums(batches: list[Numbers], num_rows: int, width: int) -> None:
    """Raise SystemExit unless the table adds integers exactly as numpy does."""
    table, sums = RowTable(width=width, max_rows=num_rows), np.zeros((num_rows, width), np.int64)
    rng = np.random.default_rng(0)
    for batch in batches:
        integers = rng.integers(-1000, 1000, (batch.size, width))
        np.add.at(sums, batch, integers)
        table.push(batch * SPREAD, integers.astype(np.float32))
    touched = np.unique(np.concatenate(batches))
    assert np.abs(sums).max() < 1 << 24, "float32 does not hold these sums"
    if len(table) != touched.size or (table.pull(touched * SPREAD).values != sums[touched]).any():
        raise SystemExit("the table's sums are wrong")


def growth_line(options: argparse.Namespace) -> str:
    """Return what first touches cost; the slowest batches are those in which segments double."""
    table = RowTable(width=options.width, max_rows=options.rows)
    every = np.arange(options.rows) * SPREAD
    parts = [every[at : at + options.batch] for at in range(0, options.rows, options.batch)]
    times = [seconds(lambda part=part: table.pull(part), time.perf_counter) for part in parts]
    return (
        f"first touches: {options.rows / sum(times) / 1e6:.1f} M rows/s; a batch takes"
        f" {1e3 * statistics.median(times):.2f} ms (median), {1e3 * max(times):.1f} ms at most"
    )


def measure(
    optimiser: Optimiser, batches: list[Numbers], num_rows: int, options: argparse.Namespace
) -> dict[str, float]:
    """Return median seconds per batch of both contenders; the values that they end with agree."""
    width = options.width
    table = RowTable(width=width, max_rows=num_rows, optimiser=optimiser)
    dense = DenseRows(num_rows, width, optimiser)
    every = np.arange(num_rows) * SPREAD
    for start in range(0, num_rows, options.batch):
        table.pull(every[start : start + options.batch])
    keys = [batch * SPREAD for batch in batches]
    rng = np.random.default_rng(1)
    gradients = rng.standard_normal((options.batch, width), np.float32)
    pairs = [*zip(batches, keys, strict=True)]
    times: dict[str, list[float]] = {"push": [], "numpy push": [], "pull": [], "numpy pull": []}
    for _ in range(options.repeats):
        for name, call in (
            ("push", lambda: [table.push(each, gradients) for each in keys]),
            ("numpy push", lambda: [dense.push(each, gradients) for each in batches]),
            ("pull", lambda: [table.pull(each) for each in keys]),
            ("numpy pull", lambda: [dense.pull(each) for each in batches]),
        ):
            times[name].append(seconds(call) / len(pairs))
    pulled = table.pull(every)
    if (pulled.updates != dense.updates).any() or not np.allclose(
        pulled.values, dense.values, rtol=1e-3, atol=1e-3
    ):
        raise SystemExit(f"{optimiser.name}: table and numpy disagree")
    return {name: statistics.median(each) for name, each in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--batches", type=int, default=50, help="different batches per run")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(machine_line(describe_machine(has_torch=False)))
    bytes_per_s = copy_bytes_per_s()
    print(
        f"{options.rows} rows of {options.width} values, batches of {options.batch} keys, one core,"
        f" which copies {bytes_per_s / 1e9:.1f} GB/s (read and written); medians of"
        f" {options.repeats} runs, sums verified"
    )
    print(growth_line(options))
    print(
        f"{'keys':<8} {'optimiser':<9} | {'M updates/s':>11} {'numpy':>6} {'ratio':>6} {'limit':>6}"
        f" {'share':>6} | {'M reads/s':>9} {'numpy':>6} {'ratio':>6} {'limit':>6} {'share':>6}"
    )
    rng = np.random.default_rng(2)
    for distribution in ("zipf", "uniform"):
        batches = draw_batches(distribution, options.rows, options.batch, options.batches, rng)
        check_sums(batches, options.rows, options.width)
        for optimiser in OPTIMISERS:
            found = measure(optimiser, batches, options.rows, options)
            line = f"{distribution:<8} {optimiser.name:<9}"
            for kind, moved, width in zip(
                ("push", "pull"),
                moved_bytes(batches, options.width, optimiser),
                (11, 9),
                strict=True,
            ):
                ours, numpy, limit = found[kind], found[f"numpy {kind}"], moved / bytes_per_s
                ours_m, numpy_m, limit_m = (options.batch / s / 1e6 for s in (ours, numpy, limit))
                line += (
                    f" | {ours_m:{width}.1f} {numpy_m:6.2f} {numpy / ours:6.1f} {limit_m:6.1f}"
                    f" {limit / ours:6.0%}"
                )
            print(line, flush=True)


if __name__ == "__main__":
    main()
