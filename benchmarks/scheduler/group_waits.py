# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How long a batch should wait so that groups form, in simulated time.

Workers on links of 100 Mbit/s get, compute and push without end, and two idle hosts may gather.
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
    waits: tuple[float, float] | None,
    until_s: float,
) -> WaitOutcome:
    """Train for `until_s` simulated seconds; without `waits`, nobody gathers."""
    network = star(num_workers, others=dict.fromkeys(IDLE, 100))
    batch_wait_s, gather_wait_s = waits or (0.05, 0.0)
    options = SchedulerOptions(
        places=AggregationPlaces(hosts=IDLE) if waits else None,
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


def main() -> int:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="simulated (120)")
    until_s: float = parser.parse_args().seconds
    print(f"{until_s:g} simulated seconds; batch_wait_s and gather_wait_s in seconds")
    print("workers  MB     compute [s]  waits        commits/s  messages/commit  mean delay")
    for num_workers, megabytes, compute_s in SETTINGS:
        for waits in (None, *WAITS):
            found = simulate(
                num_workers, round(1e6 * megabytes), compute_s, waits=waits, until_s=until_s
            )
            name = "no groups" if waits is None else f"{waits[0]:g}, {waits[1]:g}"
            print(
                f"{num_workers:7}  {megabytes:5}  {compute_s:11}  {name:11}"
                f"  {found.commits_per_s:9.2f}  {found.messages_per_commit:15.2f}"
                f"  {found.mean_delay:10.2f}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
