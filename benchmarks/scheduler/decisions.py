# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Decisions per second of the transfer scheduler, by batch size, for one server.

A batch holds one update of each worker; all of them wait when the batch is closed. Every plan is
verified before its time counts: each update has one decision, all granted bytes are planned, no
link is reserved beyond its capacity, and every delay is within the bound.
Run: python benchmarks/scheduler/decisions.py
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from switchfold.controller.scheduler.delay_bound import DelayBound
from switchfold.controller.scheduler.grouping import AggregationPlaces
from switchfold.controller.scheduler.network import TransferNetwork
from switchfold.controller.scheduler.scheduler import SchedulerOptions, TransferScheduler
from switchfold.controller.scheduler.transfers import TransferDrop, TransferGrant, TransferRequest

SERVER = "server"
GBIT = 1_000_000_000
UPDATE_BYTES = 12_500_000
AIM_S = 0.010
"""Aim for a batch of 64 updates with 8 aggregators."""


@dataclass(frozen=True)
class BatchCase:
    """A kind of batch."""

    name: str
    workers: int
    is_uneven: bool = False
    """Workers have different links, updates different sizes and versions."""
    has_bound: bool = False
    """With a tau_max of three quarters of the workers."""
    aggregators: int = 0


CASES = [
    BatchCase(name, workers, is_uneven, has_bound)
    for workers in (10, 100, 1000)
    for name, is_uneven, has_bound in (
        ("equal", False, False),
        ("uneven", True, False),
        ("uneven, tau_max", True, True),
    )
]
GROUP_CASES = [
    BatchCase("equal, 2 aggregators", 10, aggregators=2),
    BatchCase("equal, 8 aggregators", 64, aggregators=8),
    BatchCase("uneven, 8 aggregators", 64, is_uneven=True, aggregators=8),
]


def build(case: BatchCase, seed: int) -> tuple[TransferScheduler, TransferNetwork, int]:
    """Return a scheduler with a whole batch that waits."""
    chance = random.Random(seed)
    rates = {SERVER: GBIT} | {f"a{n}": GBIT for n in range(case.aggregators)}
    for number in range(case.workers):
        share = chance.choice([10, 25, 50, 100]) if case.is_uneven else 100
        rates[f"w{number}"] = GBIT * share // 100
    network = TransferNetwork.star(rates)
    first_version = case.workers
    tau_max = case.workers * 3 // 4
    options = SchedulerOptions(
        bound=DelayBound(tau_max=tau_max) if case.has_bound else None,
        places=AggregationPlaces(hosts=[f"a{n}" for n in range(case.aggregators)])
        if case.aggregators
        else None,
    )
    scheduler = TransferScheduler(network, {SERVER: first_version}, options)
    for number in range(case.workers):
        factor = chance.uniform(0.1, 2.0) if case.is_uneven else 1.0
        age = chance.randrange(case.workers) if case.is_uneven else 0
        scheduler.submit(
            TransferRequest(
                transfer_id=number,
                worker=f"w{number}",
                server=SERVER,
                size_bytes=round(UPDATE_BYTES * factor),
                version=first_version - age,
            ),
            0.0,
        )
    return scheduler, network, tau_max


def verify(
    case: BatchCase,
    network: TransferNetwork,
    tau_max: int,
    decisions: Sequence[TransferGrant | TransferDrop],
) -> None:
    """Raise SystemExit unless the decisions keep what the scheduler promises."""
    if sorted(each.request.transfer_id for each in decisions) != list(range(case.workers)):
        raise SystemExit(f"{case.name}: an update has no decision, or two")
    reserved: defaultdict[str, defaultdict[float, int]] = defaultdict(lambda: defaultdict(int))
    seen: set[int] = set()
    for grant in decisions:
        if isinstance(grant, TransferDrop):
            continue
        if case.has_bound and grant.delay > tau_max:
            raise SystemExit(f"{case.name}: a delay of {grant.delay} is beyond {tau_max}")
        planned = grant.planned
        legs = [(planned.links, planned.spans, grant.request.bits)]
        if grant.group and grant.group.group_id not in seen:
            seen.add(grant.group.group_id)
            bits = max(member.request.bits for member in grant.group.members)
            legs.append((grant.group.links, grant.group.spans, bits))
        for links, spans, bits in legs:
            moved = sum((end - start) * rate for start, end, rate in spans)
            if not math.isclose(moved, bits, rel_tol=1e-6):
                raise SystemExit(f"{case.name}: a plan moves {moved} of {bits} bits")
            for link in links:
                for start_s, end_s, rate in spans:
                    reserved[link][start_s] += rate
                    reserved[link][end_s] -= rate
    for link, changes in reserved.items():
        total = 0
        for time_s in sorted(changes):
            total += changes[time_s]
            if total > network.capacities_bits_per_s[link]:
                raise SystemExit(f"{case.name}: {link} is reserved beyond its capacity")


def measure(case: BatchCase, repeats: int) -> dict[str, Any]:
    """Decide `repeats` batches after one warm-up; return the times."""
    times: list[float] = []
    drops = groups = 0
    for repeat in range(repeats + 1):
        scheduler, network, tau_max = build(case, seed=repeat)
        began = time.process_time()
        decisions = scheduler.decide(0.0)
        took_s = time.process_time() - began
        verify(case, network, tau_max, decisions)
        if repeat:
            times.append(took_s)
            drops += sum(isinstance(each, TransferDrop) for each in decisions)
            found = {
                g.group.group_id for g in decisions if isinstance(g, TransferGrant) and g.group
            }
            groups += len(found)
    return {
        "case": case.name,
        "workers": case.workers,
        "batch_s": times,
        "decisions_per_s": case.workers / statistics.median(times),
        "drops_per_batch": drops / repeats,
        "groups_per_batch": groups / repeats,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", type=Path, help="file that also gets the figures")
    options = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    print(f"{options.repeats} batches after a warm-up; processor time, median (min .. max)")
    rows: list[dict[str, Any]] = []
    for case in [*CASES, *GROUP_CASES]:
        row = measure(case, options.repeats)
        rows.append(row)
        times = [1e3 * each for each in row["batch_s"]]
        print(
            f"{case.workers:5} workers, {case.name:22}: {statistics.median(times):8.2f} ms "
            f"({min(times):.2f} .. {max(times):.2f}), {row['decisions_per_s']:7.0f} decisions/s, "
            f"{row['drops_per_batch']:.0f} drops, {row['groups_per_batch']:.1f} groups"
        )
    slowest_s = max(
        statistics.median(row["batch_s"]) for row in rows if "8 aggregators" in row["case"]
    )
    verdict = "met" if slowest_s < AIM_S else "MISSED"
    print(f"64 updates, 8 aggregators: {1e3 * slowest_s:.1f} ms, aim {1e3 * AIM_S:.0f}: {verdict}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
