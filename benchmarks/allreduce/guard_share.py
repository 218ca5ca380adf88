# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How much of what sums may lack they do lack, by how much is lost: what a LossGuard goes by.

The streams are those of the host library, in C; links, switch and clock are simulated, as in the
tests of tolerated loss. Contributions are lost at random, results are not.

    python benchmarks/allreduce/guard_share.py --tolerance 0.05
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support")]

from slot_simulation import Simulation  # noqa: E402
from switchfold.hostlib.loss_tolerance import LossTolerance  # noqa: E402

SIZES: Final = ((4, 1000), (4, 200), (8, 400))
"""Workers, and chunks of a tensor."""
MULTIPLES: Final = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
"""Of the tolerated share: what is lost."""
_WARM_UP_CHUNKS: Final = 400


def used_share(
    num_workers: int, num_chunks: int, tolerance: LossTolerance, loss: float, num_tensors: int
) -> float:
    """Return the share of the contributions which may be lacking that sums lack."""
    simulation = Simulation(num_workers, tolerance=tolerance, seed=3)
    simulation.sum(_WARM_UP_CHUNKS)  # RTTs are known after it
    simulation.losses = lambda _worker, to, _row: to is None and simulation.random.random() < loss
    missing = 0
    for _ in range(num_tensors):
        simulation.sum(num_chunks)
        missing += sum(num_workers - int(each).bit_count() for each in simulation.bitmaps)
    return missing / (num_tensors * tolerance.lost(num_workers, num_chunks))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tolerance", type=float, default=0.05)
    parser.add_argument("--tensors", type=int, default=4, help="whose mean each figure is")
    options = parser.parse_args()
    tolerance = LossTolerance(loss=options.tolerance)
    print("| workers, chunks of a tensor |", *(f"{each:g} |" for each in MULTIPLES))
    print("|---|" + "---:|" * len(MULTIPLES))
    for workers, chunks in SIZES:
        shares = (
            used_share(workers, chunks, tolerance, each * options.tolerance, options.tensors)
            for each in MULTIPLES
        )
        print(f"| {workers}, {chunks:,} |", *(f"{each:.2f} |" for each in shares), flush=True)


if __name__ == "__main__":
    main()
