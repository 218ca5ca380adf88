# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How long a batch should wait so that groups form, and where they gain most, in simulated time.

Workers on links of 100 Mbit/s get, compute and push without end. Two idle hosts may gather, or the
leaf of half of the workers, or of all, adds what passes.
Deliveries come up to 20 ms after their plan. The server's uplink is no bottleneck: models travel
beside the updates. Every push is committed once; the figures depend on the seed alone.
Run: python benchmarks/scheduler/group_waits.py
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support")]

from switchfold.controller.scheduler.grouping import AggregationPlaces  # noqa: E402
from switchfold.controller.scheduler.scheduler import (  # noqa: E402
    SchedulerOptions,
    TransferScheduler,
)
from switchfold.controller.scheduler.training.commit_order import CommitOrder  # noqa: E402
from transfer_cases import SERVER, star  # noqa: E402
from transfer_simulation import TransferSimulation  # noqa: E402

IDLE = ("a1", "a2")
LATE_S = 0.02
SETTINGS = ((8, 12.5, 0.5), (8, 2.5, 0.1), (8, 1.25, 0.5), (16, 2.5, 0.1))
"""Workers, MB of an update, and seconds of computing."""
WAITS: tuple[tuple[float, float], ...] = (
    *((0.05, 0.0), (0.25, 0.0), (0.5, 0.0)),
    *((0.05, 0.25), (0.05, 0.5), (0.05, 1.0)),
)
"""batch_wait_s and gather_wait_s."""
CONTROLLERS_WAITS = (0.05, 0.5)
"""Those of a controller without options."""


@dataclass(frozen=True, kw_only=True)
class WaitOutcome:
    """What a simulated training did."""

    commits_per_s: float
    messages_per_commit: float
    """Messages into the server for each update."""
    mean_delay: float


def simulate(
    num_workers: int,
    size_bytes: int,
    compute_s: float,
    *,
    places: AggregationPlaces | None,
    waits: tuple[float, float],
    until_s: float,
) -> WaitOutcome:
    """Train for `until_s` simulated seconds; without `places`, nobody adds."""
    network = star(num_workers, others=dict.fromkeys(IDLE, 100))
    batch_wait_s, gather_wait_s = waits
    options = SchedulerOptions(
        places=places,
        batch_wait_s=batch_wait_s,
        gather_wait_s=gather_wait_s,
        commit_order=CommitOrder.SEQUENCE,
    )
    rng = random.Random(1)
    simulation = TransferSimulation(
        network,
        TransferScheduler(network, {SERVER: 0}, options),
        lambda: LATE_S * rng.random(),
        idle=IDLE,
        size_bytes=size_bytes,
        compute_s=compute_s,
    )
    record = simulation.run(until_s)
    if record.sequences != list(range(len(record.sequences))):
        raise SystemExit("an update was committed twice, or out of its place")
    groups = {grant.group.group_id for grant in record.grants if grant.group}
    num_direct = sum(grant.group is None for grant in record.grants)
    delays = [delay for each in record.delays.values() for delay in each]
    return WaitOutcome(
        commits_per_s=len(record.sequences) / until_s,
        messages_per_commit=(num_direct + len(groups)) / len(record.grants),
        mean_delay=statistics.mean(delays),
    )


def leaf(num_workers: int) -> AggregationPlaces:
    """Return the switch as the leaf of the first workers."""
    return AggregationPlaces(switches={"s1": frozenset(f"h{n}" for n in range(1, num_workers + 1))})


def main() -> int:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="simulated (120)")
    until_s: float = parser.parse_args().seconds
    hosts = AggregationPlaces(hosts=IDLE)
    print(f"{until_s:g} simulated seconds; batch_wait_s and gather_wait_s in seconds")
    print("workers  MB     compute [s]  groups        waits      commits/s  messages/commit  delay")
    for num_workers, megabytes, compute_s in SETTINGS:
        runs: list[tuple[str, AggregationPlaces | None, tuple[float, float]]] = [
            ("none", None, (0.05, 0.0)),
            *(("two hosts", hosts, waits) for waits in WAITS),
            ("leaf of half", leaf(num_workers // 2), CONTROLLERS_WAITS),
            ("leaf of all", leaf(num_workers), CONTROLLERS_WAITS),
        ]
        for name, places, waits in runs:
            size_bytes = round(1e6 * megabytes)
            found = simulate(
                num_workers, size_bytes, compute_s, places=places, waits=waits, until_s=until_s
            )
            print(
                f"{num_workers:7}  {megabytes:5}  {compute_s:11}  {name:12}"
                f"  {f'{waits[0]:g}, {waits[1]:g}':10}{found.commits_per_s:9.2f}"
                f"  {found.messages_per_commit:15.2f}  {found.mean_delay:5.2f}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
