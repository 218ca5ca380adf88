# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Figures of one run, and of the runs of a contender over its seeds."""

from __future__ import annotations

import itertools
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.fabric.contenders import BASELINE, CONTENDERS
from benchmarks.fabric.link_use import link_use, phase_times, sent_times
from benchmarks.fabric.run_record import FabricRun
from benchmarks.fabric.settings import ClusterSize, RateOverTime
from benchmarks.simulator.spread import Spread

_STEPS: Final = 60
"""Halvings of an interval of time."""


def figures_of(
    record: FabricRun, size: ClusterSize, grant_waits_s: Sequence[float]
) -> dict[str, Any]:
    """Return what one run shows, without its times to the target at other rates."""
    rates = RateOverTime(size=size, trace=size.link_trace(record.cell))
    rows = list(itertools.chain.from_iterable(record.rows))
    applied = record.applied
    seconds = max(row["done_s"] for row in rows) - record.began_s
    contender = CONTENDERS[record.contender]
    if contender.is_served:
        limit = rates.server_limit
    else:
        limit = rates.allreduce_limit if contender.is_scheduled else rates.ring_limit
    delays = [row["delay"] for row in applied]
    wanted = record.reached_version
    if wanted is not None:
        wanted *= record.per_version
    limit_s = None if wanted is None else least_time(limit, wanted)
    cpu = record.processor_s
    pushes_s = [row["done_s"] - row["pushed_s"] for row in applied]
    return {
        "seed": record.cell.seed,
        "seconds": seconds,
        "updates": len(applied),
        "updates_per_s": len(applied) / seconds,
        "iteration_s": seconds / len(record.versions) if contender.is_stepwise else None,
        "share_of_limit": len(applied) / limit(seconds),
        "target_s": record.target_s,
        "target_limit_s": limit_s,
        "reached_version": record.reached_version,
        "mean_delay": statistics.mean(delays),
        "p99_delay": float(np.percentile(delays, 99)),
        "delays": {str(delay): count for delay, count in sorted(Counter(delays).items())},
        "push_s": quantiles(pushes_s),
        "added_s": quantiles([max(0.0, push_s - size.transfer_s) for push_s in pushes_s]),
        "get_s": quantiles([r["got_s"] - r["asked_s"] for r in rows if r["got_s"] > r["asked_s"]]),
        "grant_wait_s": quantiles(grant_waits_s),
        "granted": sum(row["is_granted"] for row in applied),
        "drops": len(rows) - len(applied),
        "drop_reasons": dict(Counter(r["drop_reason"] for r in rows if r["drop_reason"])),
        "overrun_s": statistics.mean(row["overrun_s"] for row in rows),
        "by_link_share": messages_by_share(record, rates, seconds),
        "processor_ms_per_update": {
            name: 1e3 * cpu[name] / max(1, len(applied))
            for name in ("controller", "server", "switch", "workers")
        },
        "busy_share": cpu["busy"] / cpu["total"] if cpu["total"] else 0.0,
        "server_counters": dict(record.server_counters),
        "worker_counters": dict(record.worker_counters),
    }


def link_figures(record: FabricRun, size: ClusterSize, log: Path) -> dict[str, Any]:
    """Return what a run has used of the server's link; `log` is the controller's timeline."""
    rates = RateOverTime(size=size, trace=size.link_trace(record.cell))
    sent = sent_times(log, record.job, time.monotonic() - time.time())
    reads: defaultdict[int, list[float]] = defaultdict(list)
    for time_s, worker in record.reads:
        reads[worker].append(time_s)
    spent = [
        phase_times(rows, reads[worker], sent.get(worker, ()))
        for worker, rows in enumerate(record.rows)
    ]
    return link_use(record.link_samples, rates, record.began_s, spent)


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """Return median and 99th percentile; nothing of no values."""
    if not values:
        return {}
    return {"p50": float(np.percentile(values, 50)), "p99": float(np.percentile(values, 99))}


def messages_by_share(
    record: FabricRun, rates: RateOverTime, seconds: float
) -> dict[str, dict[str, float]]:
    """Return by share of the nominal rate: updates per worker that had it, and second of it.

    With equal links for all, a worker's updates per second say how much a faster link sends.
    """
    counts: Counter[float] = Counter()
    for worker, rows in enumerate(record.rows):
        host = rates.size.hosts[worker]
        for row in rows:
            if row["version"]:
                counts[rates.share(host, row["pushed_s"] - record.began_s)] += 1
    length = rates.trace.period_s if rates.trace.changes else seconds
    exposed: defaultdict[float, float] = defaultdict(float)
    for period in range(1 + rates.period(seconds)):
        for host in rates.size.hosts[:-1]:
            lasted = min(length, seconds - period * length)
            exposed[rates.trace.shares(period)[host]] += lasted
    return {
        f"{share:g}": {
            "updates": counts[share],
            "worker_seconds": exposed[share],
            "per_s": counts[share] / exposed[share] if exposed[share] else 0.0,
        }
        for share in sorted(exposed, reverse=True)
    }


def least_time(limit: Callable[[float], float], wanted: float) -> float:
    """Return the time until a limit that grows with time has reached a number of updates."""
    low, high = 0.0, 1.0
    while limit(high) < wanted:
        high *= 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if limit(middle) >= wanted else (middle, high)
    return high


def joined_rows(
    several: Iterable[Mapping[str, Sequence[dict[str, Any]]]],
) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of several evaluations by workload; runs of a cell follow each other."""
    found: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
    for rows_of in several:
        for workload, rows in rows_of.items():
            known = found.setdefault(workload, {})
            for row in rows:
                key = row["cell"], row["contender"]
                runs = [*known.get(key, {"runs": []})["runs"], *row["runs"]]
                known[key] = {**row, "runs": sorted(runs, key=lambda run: run["seed"])}
    return {workload: [*rows.values()] for workload, rows in found.items()}


def speed_ups(
    runs: Sequence[dict[str, Any]], baseline: Sequence[dict[str, Any]], key: str
) -> Spread:
    """Return by how much less time a contender takes, seed by seed; None where one never ends.

    Nor is it known of earlier results that do not have the key. Joined evaluations may have several
    runs of the baseline with one seed: their median counts.
    """
    others: defaultdict[int, list[float]] = defaultdict(list)
    for other in baseline:
        if other.get(key):
            others[other["seed"]].append(other[key])
    return Spread.of_known(
        [
            statistics.median(others[run["seed"]]) / run[key]
            if run.get(key) and others[run["seed"]]
            else None
            for run in runs
        ]
    )


def grid_of(
    rows: Sequence[dict[str, Any]], contender: str, key: str, baseline: str = BASELINE
) -> dict[str, Spread]:
    """Return by cell that both have run how many times faster than the baseline a contender is."""
    found = {(row["cell"], row["contender"]): row["runs"] for row in rows}
    return {
        cell: speed_ups(runs, found[cell, baseline], key)
        for (cell, name), runs in found.items()
        if name == contender and (cell, baseline) in found
    }
