# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What something costs workers and parameter servers in throughput, by blocks of one run.

A run has blocks of mini-batches, which all workers begin together: without it, with it, with it,
without it, and so on. Four such blocks give one ratio, from which what differs between runs, and a
drift, cancel. Each figure comes from runs whose sums were all compared with numpy's.

What is compared: "log", latency logs of all processes that are at work, or paused; "hot-keys", a
table with hot keys, which workers use where that is faster, or one without.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.support.machine import (  # noqa: E402
    describe_machine,
    machine_line,
    parse_rate,
)
from benchmarks.support.results import parameters_of, write_json  # noqa: E402
from switchfold.controller.cli.hot.figures import LoadShares  # noqa: E402
from switchfold.controller.cli.hot.plan import (  # noqa: E402
    BlockDifference,
    Offload,
    TablePlan,
    TableWorkload,
)
from switchfold.controller.cli.hot.rig import TableRig, TableRun  # noqa: E402
from switchfold.controller.cli.latency.run_files import load_run  # noqa: E402
from switchfold.hostlib.parameter_server import HotRowUse  # noqa: E402

AIM: Final = 0.97
"""Throughput with it to that without, at least."""


def ratios_of(run: TableRun) -> NDArray[np.float64]:
    """Return throughput with the difference to that without of each four blocks of a run.

    A block lasts until its slowest worker has all receipts.
    """
    block_s = np.max([worker.block_s for worker in run.workers], axis=0).reshape(-1, 4)
    has_it = np.array([run.plan.has_difference(block) for block in range(4)])
    return block_s[:, ~has_it].sum(axis=1) / block_s[:, has_it].sum(axis=1)


@dataclass(frozen=True)
class BlockRow:
    """What the runs of one plan have shown."""

    workers: int
    batch: int
    offload: Offload
    ratios: list[float]
    records: int
    """Of the workers' requests, in their logs."""
    hot: float
    """Share of the pushed keys that went through the switch."""


def compare(rig: TableRig, plan: TablePlan, repeats: int) -> BlockRow:
    """Run a plan so often."""
    ratios: list[float] = []
    hot: list[float] = []
    records = 0
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(prefix="latency-log-") as folder:
            is_logged = plan.blocks_differ_in is BlockDifference.LOG
            run = rig.run(replace(plan, latency_log=folder) if is_logged else plan)
            records += load_run(Path(folder)).requests["number"].size if is_logged else 0
        ratios += ratios_of(run).tolist()
        hot.append(LoadShares.of(run).hot)
    mean_hot = float(np.mean(hot))
    return BlockRow(plan.num_workers, plan.batch, plan.offload, ratios, records, mean_hot)


def interval_of(ratios: Sequence[float]) -> tuple[float, float]:
    """Return the interval that has their true mean 19 times of 20, drawn from samples of them."""
    drawn = np.random.default_rng(1).choice(ratios, (10_000, len(ratios)))
    low, high = np.percentile(drawn.mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def line_of(row: BlockRow) -> str:
    low, high = interval_of(row.ratios)
    held = "met" if low >= AIM else "missed" if high < AIM else "not decided"
    return (
        f"{row.workers:7} {row.batch:6} {row.offload:8} {np.mean(row.ratios):6.3f}"
        f" ({low:.3f} to {high:.3f})"
        f" {np.median(row.ratios):7.3f} ({min(row.ratios):.2f} to {max(row.ratios):.2f})"
        f" {len(row.ratios):6} {row.records:8} {row.hot:6.3f}  {held}"
    )


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "compared", choices=[*map(str, BlockDifference)], help="what some blocks do without"
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[4])
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--batches", type=int, nargs="+", default=[512, 4096])
    parser.add_argument("--hot-keys", type=int, default=1408, help="of a table on each server")
    parser.add_argument("--blocks", type=int, default=40, help="of a run; a multiple of 4, from 8")
    parser.add_argument(
        "--steps", type=int, default=100, help="mini-batches of a worker in a block"
    )
    parser.add_argument("--warm-up-s", type=float, default=10.0)
    parser.add_argument("--repeats", type=int, default=1, help="runs of each row")
    parser.add_argument("--rate", default="100M", help="of each host's link: 100M, 1G, none")
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args(arguments)
    if options.blocks % 4 or options.blocks < 8:
        parser.error(
            f"--blocks {options.blocks}: give a multiple of 4, from 8: one ratio decides nothing"
        )
    return options


def plans_of(options: argparse.Namespace, num_workers: int) -> list[TablePlan]:
    """Return a plan for each row of so many workers."""
    difference = BlockDifference(options.compared)
    compares_logs = difference is BlockDifference.LOG
    plan = TablePlan(
        workload=TableWorkload.ZIPF_1070,
        hot_keys=options.hot_keys,
        use=HotRowUse.ALWAYS if compares_logs else HotRowUse.AUTO,
        flush_s=0.1,
        num_workers=num_workers,
        num_servers=options.servers,
        warm_up_s=options.warm_up_s,
        steps=options.steps * options.blocks,
    )
    blocks: dict[str, Any] = {
        "num_blocks": options.blocks,
        "blocks_differ_in": difference,
        "latency_log": tempfile.gettempdir() if compares_logs else "",  # of each run its own
    }
    offloads = (Offload.NONE, Offload.HOT) if compares_logs else (Offload.HOT,)
    return [
        replace(plan, batch=batch, offload=offload, **blocks)
        for batch in options.batches
        for offload in offloads
    ]


def main() -> None:
    options = parse()
    machine = describe_machine(has_torch=False)
    print(machine_line(machine))
    print(
        f"{options.servers} servers, links of rate {options.rate}; samples/s with"
        f" {options.compared} to those without, of each four blocks of {options.steps} mini-batches"
        f": mean and its interval of 95 %, median, least and most; aim: at least {AIM}; h: share of"
        " pushed keys that went through the switch; all sums verified"
    )
    print(
        f"{'workers':>7} {'batch':>6} {'offload':8} {'mean':>6} {'of 95 %':16} {'median':>7}"
        f" {'least and most':>14} {'ratios':>6} {'records':>8} {'h':>6}"
    )
    rows: list[dict[str, Any]] = []
    for num_workers in options.workers:
        with TableRig(
            num_workers=num_workers,
            num_servers=options.servers,
            mode="veth",
            rate_bits_per_s=None if options.rate == "none" else parse_rate(options.rate),
        ) as rig:
            for plan in plans_of(options, num_workers):
                row = compare(rig, plan, options.repeats)
                mean = float(np.mean(row.ratios))
                rows.append({**asdict(row), "mean": mean, "interval": interval_of(row.ratios)})
                print(line_of(row), flush=True)
    if options.json:
        write_json(
            options.json,
            {"machine": machine, "parameters": parameters_of(options), "rows": rows},
        )


if __name__ == "__main__":
    main()
