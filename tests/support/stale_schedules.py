# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Random schedules of workers that do without results, watched by a ledger.

python -m stale_schedules [--schedules N] [--first N] [--seed N], with this folder on the path.
`--schedules 1 --first N` repeats one.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from schedule_runs import run_schedules
from slot_simulation import Simulation
from stale_ledger import StaleLedger
from switchfold.hostlib.loss_tolerance import LossTolerance
from switchfold.hostlib.slots.switch_reducer import split_slots

REPORT_EVERY = 500
Losses = Callable[[int, int | None, NDArray[Any]], bool]


def _losses(chance: random.Random, simulation: Simulation, num_workers: int) -> Losses:
    """Return which packets are lost: everywhere alike, results alone, to one worker, in bursts."""
    share = chance.choice([0, 0.01, 0.05, 0.1, 0.3])
    kind = chance.choice(["all", "results", "results", "results of one", "bursts of one"])
    one, random_ = chance.randrange(num_workers), simulation.random
    burst_s = chance.choice([0.002, 0.02, 0.3])
    bursts = [chance.random() < 0.5 for _ in range(40)]

    def losses(worker: int, to: int | None, row: NDArray[Any]) -> bool:
        is_lost = random_.random() < share
        if kind == "results":
            return is_lost and to is not None
        if kind == "results of one":
            return to == one and random_.random() < 2 * share
        if kind == "bursts of one" and to == one:  # it gets nothing, half of the time
            period = int(simulation.now_s / burst_s)
            return is_lost or (period < len(bursts) and bursts[period])
        return is_lost

    return losses


def run_schedule(number: int, seed: int) -> Counter[str]:
    """Sum some tensors; return what happened. AssertionError says what is wrong."""
    chance = random.Random(f"{seed} {number}")
    num_workers = chance.randint(2, 5)
    stale = chance.choice([0.01, 0.05, 0.1, 0.3, 0.9])
    slot_count = chance.choice([4, 5, 16, 64, 128])
    ledger = StaleLedger(num_workers, split_slots(slot_count)[1], stale=stale)
    simulation = Simulation(
        num_workers,
        seed=chance.getrandbits(32),
        slot_count=slot_count,
        delay_s=chance.choice([0.0001, 0.002]),
        tolerance=LossTolerance(loss=0, stale=stale),
        ledger=ledger,
    )
    simulation.losses = _losses(chance, simulation, num_workers)
    simulation.duplication = chance.choice([0, 0, 0.05, 0.3])
    simulation.reordering = chance.choice([0, 0, 0.05, 0.3])
    for _ in range(2):
        simulation.sum(chance.choice([1, 30, 100, 250]))
    return Counter(
        stale=ledger.num_stale,
        statements=ledger.num_statements,
        again=ledger.num_again,
        old=ledger.num_old,
    )


if __name__ == "__main__":
    sys.exit(run_schedules("stale_schedules", __doc__, run_schedule, REPORT_EVERY))
