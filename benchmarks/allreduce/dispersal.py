# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a randomised Hadamard transform makes of lost packets, and what it costs, in memory.

Workers' gradients are summed without some packets of each; sums are means of the workers that are
left, packet by packet. The error is that of the mean, squared and relative to the whole mean.

    python benchmarks/allreduce/dispersal.py --losses 0.05 0.1
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.support.machine import describe_machine, machine_line  # noqa: E402
from benchmarks.support.results import parameters_of, write_json  # noqa: E402
from switchfold.hostlib.summation.hadamard import MOST_LOG2_SPREAD, RandomizedHadamard  # noqa: E402

Floats = NDArray[np.float32]
Lost = NDArray[np.bool_]
"""Of each packet, whether it is lost."""
ROUND_TRIP: Final = 1e-5
"""Most that a transform there and back may change a gradient, relative to its norm."""


def spread_evenly(packets: int, loss: float, rng: np.random.Generator) -> Lost:
    return rng.random(packets) < loss


def in_one_burst(packets: int, loss: float, rng: np.random.Generator) -> Lost:
    lost = np.zeros(packets, np.bool_)
    length = max(round(loss * packets), 1)
    first = rng.integers(packets - length + 1)
    lost[first : first + length] = True
    return lost


def at_the_end(packets: int, loss: float, rng: np.random.Generator) -> Lost:
    lost = np.zeros(packets, np.bool_)
    lost[packets - max(round(loss * packets), 1) :] = True
    return lost


LOSSES: Final[dict[str, Callable[[int, float, np.random.Generator], Lost]]] = {
    "even": spread_evenly,
    "one burst": in_one_burst,
    "the end": at_the_end,
}


def gradients(workers: int, values: int, rng: np.random.Generator) -> Floats:
    """Return gradients of shape (workers, values): a common part and noise, the last tenth hot."""
    common = rng.standard_normal(values, dtype=np.float32)
    found = common + rng.standard_normal((workers, values), dtype=np.float32)
    found[:, -values // 10 :] *= 30
    return found


def mean_of_survivors(sent: Floats, lost: list[Lost], per_packet: int) -> Floats:
    """Return the mean by packet; 0 where all are lost."""
    values = sent.shape[1]
    there = np.stack([np.repeat(~each, per_packet)[:values] for each in lost])
    total = (sent * there).sum(0, dtype=np.float64)
    return (total / np.maximum(there.sum(0), 1)).astype(np.float32)


def error_of(found: Floats, truth: Floats) -> float:
    difference = found.astype(np.float64) - truth
    return float(difference @ difference / (truth.astype(np.float64) @ truth))


def measure(options: argparse.Namespace, kind: str, loss: float, seed: int) -> tuple[float, float]:
    """Return the errors of plain and of transformed gradients for the same lost packets."""
    rng = np.random.default_rng(seed)
    sent = gradients(options.workers, options.values, rng)
    truth = sent.mean(0, dtype=np.float64).astype(np.float32)
    packets = -(-options.values // options.per_packet)
    if kind == "even":
        lost = [LOSSES[kind](packets, loss, rng) for _ in range(options.workers)]
    else:  # the same for all, as where a queue overflows behind their switch
        lost = [LOSSES[kind](packets, loss, rng)] * options.workers
    plain = error_of(mean_of_survivors(sent, lost, options.per_packet), truth)
    transform = RandomizedHadamard(seed, log2_spread=options.log2_spread)
    for each in sent:
        transform.forward(each, 0)
    found = mean_of_survivors(sent, lost, options.per_packet)
    transform.inverse(found, 0)
    return plain, error_of(found, truth)


def rates(options: argparse.Namespace) -> tuple[list[float], float]:
    """Return values per second of processor time, there and back, and the round trip's error."""
    before = gradients(1, options.values, np.random.default_rng(0))[0]
    transform = RandomizedHadamard(0, log2_spread=options.log2_spread)
    found: list[float] = []
    error = 0.0
    for number in range(options.repeats):
        array = before.copy()
        begun_s = time.process_time()
        transform.forward(array, number)
        transform.inverse(array, number)
        found.append(2 * options.values / (time.process_time() - begun_s))
        error = max(error, error_of(array, before) ** 0.5)
    return found, error


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--values", type=int, default=400_000, help="of a gradient")
    parser.add_argument("--per-packet", type=int, default=256, help="values in a packet")
    parser.add_argument("--log2-spread", type=int, default=MOST_LOG2_SPREAD)
    parser.add_argument("--losses", type=float, nargs="+", default=[0.01, 0.05, 0.1])
    parser.add_argument("--repeats", type=int, default=20, help="gradients and losses, by seeds")
    parser.add_argument("--json", type=Path, help="file for the figures")
    return parser.parse_args()


def main() -> None:
    options = parse()
    machine = describe_machine(has_torch=False)
    print(machine_line(machine))
    print(
        f"{options.workers} workers, {options.values} values, the last tenth 30 times as large;"
        f" each spread over at most 2^{options.log2_spread} places; relative squared errors of the"
        f" mean, {options.repeats} seeds"
    )
    heads = f"{'plain: mean':>13}{'worst':>8}{'transformed':>13}{'worst':>8}"
    print(f"{'lost packets':14}{'loss':>6}{heads}")
    rows: list[dict[str, Any]] = []
    for kind in LOSSES:
        for loss in options.losses:
            pairs = [measure(options, kind, loss, seed) for seed in range(options.repeats)]
            plain, transformed = (list(each) for each in zip(*pairs, strict=True))
            rows.append({"kind": kind, "loss": loss, "plain": plain, "transformed": transformed})
            print(
                f"{kind:14}{loss:6.2f}{statistics.mean(plain):13.4f}{max(plain):8.4f}"
                f"{statistics.mean(transformed):13.4f}{max(transformed):8.4f}",
                flush=True,
            )
    found, error = rates(options)
    if error > ROUND_TRIP:
        raise SystemExit(f"a transform there and back changed a gradient by {error:.1e}")
    print(
        f"{statistics.median(found) / 1e6:.0f} million values in a second of processor time"
        f" ({min(found) / 1e6:.0f} to {max(found) / 1e6:.0f});"
        f" there and back changes a gradient by {error:.1e}"
    )
    if options.json:
        found_by = {"machine": machine, "parameters": parameters_of(options), "rows": rows}
        write_json(options.json, {**found_by, "values_per_s": found, "round_trip": error})


if __name__ == "__main__":
    main()
