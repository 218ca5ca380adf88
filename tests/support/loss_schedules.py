# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Random schedules of sums that may lack a share, watched by a ledger: `make loss-schedules`.

python -m loss_schedules [--schedules N] [--first N] [--seed N], with this folder on the path.
`--schedules 1 --first N` repeats one.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loss_ledger import LossLedger
from slot_simulation import Simulation
from switchfold.hostlib.loss_tolerance import LossTolerance
from switchfold.hostlib.slots.switch_reducer import split_slots
from switchfold.hostlib.slots.wire import Operation

REPORT_EVERY = 500
Losses = Callable[[int, int | None, NDArray[Any]], bool]


def _losses(chance: random.Random, simulation: Simulation, num_workers: int) -> Losses:
    """Return which packets are lost: everywhere alike, of some kinds, or to one worker."""
    share = chance.choice([0, 0.01, 0.05, 0.1, 0.3])
    kind = chance.choice(["all", "to the switch", "flushes", "results of one", "silence of one"])
    one, random_ = chance.randrange(num_workers), simulation.random
    silence_s = chance.choice([0.005, 0.05, 0.5])
    silences = [chance.random() < 0.5 for _ in range(40)]

    def losses(worker: int, to: int | None, row: NDArray[Any]) -> bool:
        is_lost = random_.random() < share
        if kind == "to the switch":
            return is_lost and to is None
        if kind == "flushes":
            return is_lost or (int(row[1]) == Operation.FLUSH and random_.random() < 0.5)
        if kind == "results of one":
            return is_lost or (to == one and random_.random() < 0.5)
        if kind == "silence of one" and to == one:  # it gets nothing, half of the time
            period = int(simulation.now_s / silence_s)
            return is_lost or (period < len(silences) and silences[period])
        return is_lost

    return losses


def run_schedule(number: int, seed: int) -> Counter[str]:
    """Sum some tensors; return what happened. AssertionError says what is wrong."""
    chance = random.Random(f"{seed} {number}")
    num_workers = chance.randint(2, 5)
    loss = chance.choice([0.01, 0.05, 0.1, 0.3, 0.6])
    worker_floor = chance.choice([None, 0.5, 0.9])
    slot_count = chance.choice([4, 5, 16, 64])
    ledger = LossLedger(
        num_workers, split_slots(slot_count)[1], loss=loss, worker_floor=worker_floor
    )
    simulation = Simulation(
        num_workers,
        seed=chance.getrandbits(32),
        slot_count=slot_count,
        delay_s=chance.choice([0.0001, 0.002]),
        tolerance=LossTolerance(loss=loss, worker_floor=worker_floor),
        duplication=chance.choice([0, 0.05]),
        reordering=chance.choice([0, 0.05]),
        ledger=ledger,
    )
    simulation.losses = _losses(chance, simulation, num_workers)
    for _ in range(2):
        count = chance.randint(1, 40)
        large = chance.choice([None, np.array([chance.random() < 0.5 for _ in range(count)])])
        simulation.sum(count, large=large)
        share = sum(int(each).bit_count() for each in simulation.bitmaps) / (num_workers * count)
        assert share >= 1 - loss
        for worker in range(num_workers):
            of_one = (simulation.bitmaps >> np.uint32(worker) & 1).mean()
            least = max(0.0, 1 - 2 * loss) if worker_floor is None else worker_floor
            assert of_one >= least - 1e-9, f"worker {worker}"
    return Counter(flushes=ledger.num_flushes, lacking=ledger.num_lacking, missed=ledger.num_missed)


def main() -> int:
    """Run schedules; the first that fails ends it with its number."""
    parser = argparse.ArgumentParser(prog="python -m loss_schedules", description=__doc__)
    parser.add_argument("--schedules", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--seed", type=int, default=1, help="of all")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for done in range(options.schedules):
        number = options.first + done
        try:
            counts += run_schedule(number, options.seed)
        except AssertionError as error:
            error.add_note(f"schedule {number} of seed {options.seed}")
            raise
        if (done + 1) % REPORT_EVERY == 0 or done + 1 == options.schedules:
            print(f"{done + 1} schedules: {dict(counts)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
