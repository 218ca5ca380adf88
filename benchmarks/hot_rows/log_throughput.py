# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Throughput of workers and parameter servers while their latency logs are at work, and paused.

All processes log. A run has blocks of mini-batches, which all workers begin together: paused, at
work, at work, paused, and so on. Four such blocks give one ratio, from which what differs between
runs, and a drift, cancel. Each figure comes from runs whose sums were all compared with numpy's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
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
from switchfold.controller.cli.hot.plan import Offload, TablePlan, TableWorkload  # noqa: E402
from switchfold.controller.cli.hot.rig import TableRig, TableRun  # noqa: E402
from switchfold.controller.cli.latency.run_files import load_run  # noqa: E402

AIM: Final = 0.97
"""Throughput with the log to that without, at least."""


def ratios_of(run: TableRun) -> NDArray[np.float64]:
    """Return throughput with the log to that without of each four blocks of a run.

    A block lasts until its slowest worker has all receipts.
    """
    block_s = np.max([worker.block_s for worker in run.workers], axis=0).reshape(-1, 4)
    is_logged = np.array([run.plan.is_logged(block) for block in range(4)])
    return block_s[:, ~is_logged].sum(axis=1) / block_s[:, is_logged].sum(axis=1)


def compare(rig: TableRig, plan: TablePlan, repeats: int) -> tuple[NDArray[np.float64], int]:
    """Return the ratios of so many runs, and the records of their workers' requests."""
    ratios: list[NDArray[np.float64]] = []
    records = 0
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(prefix="latency-log-") as folder:
            ratios.append(ratios_of(rig.run(replace(plan, latency_log=folder))))
            records += load_run(Path(folder)).requests["number"].size
    return np.concatenate(ratios), records


def interval_of(ratios: NDArray[np.float64]) -> tuple[float, float]:
    """Return the interval that has their true mean 19 times of 20, drawn from samples of them."""
    drawn = np.random.default_rng(1).choice(ratios, (10_000, ratios.size))
    low, high = np.percentile(drawn.mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def line_of(batch: int, offload: Offload, ratios: NDArray[np.float64], records: int) -> str:
    low, high = interval_of(ratios)
    held = "met" if low >= AIM else "missed" if high < AIM else "not decided"
    return (
        f"{batch:6} {offload:8} {ratios.mean():6.3f} ({low:.3f} to {high:.3f})"
        f" {np.median(ratios):7.3f} ({ratios.min():.2f} to {ratios.max():.2f})"
        f" {ratios.size:6} {records:8}  {held}"
    )


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--batches", type=int, nargs="+", default=[512, 4096])
    parser.add_argument("--hot-keys", type=int, default=1408)
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


def main() -> None:
    options = parse()
    machine = describe_machine(has_torch=False)
    print(machine_line(machine))
    print(
        f"{options.workers} workers, {options.servers} servers, links of rate {options.rate};"
        f" samples/s with a log to those without, of each four blocks of {options.steps}"
        f" mini-batches: mean and its interval of 95 %, median, least and most; aim: at least {AIM}"
        "; all sums verified"
    )
    print(
        f"{'batch':>6} {'offload':8} {'mean':>6} {'of 95 %':16} {'median':>7}"
        f" {'least and most':>14} {'ratios':>6} {'records':>8}"
    )
    rows: list[dict[str, Any]] = []
    with TableRig(
        num_workers=options.workers,
        num_servers=options.servers,
        mode="veth",
        rate_bits_per_s=None if options.rate == "none" else parse_rate(options.rate),
    ) as rig:
        for batch in options.batches:
            for offload in (Offload.NONE, Offload.HOT):
                plan = TablePlan(
                    workload=TableWorkload.ZIPF_1070,
                    offload=offload,
                    hot_keys=options.hot_keys,
                    flush_s=0.1,
                    num_workers=options.workers,
                    num_servers=options.servers,
                    batch=batch,
                    warm_up_s=options.warm_up_s,
                    steps=options.steps * options.blocks,
                    log_blocks=options.blocks,
                    latency_log=tempfile.gettempdir(),  # of each run its own
                )
                ratios, records = compare(rig, plan, options.repeats)
                rows.append(
                    {
                        "batch": batch,
                        "offload": offload,
                        "ratios": ratios.tolist(),
                        "mean": float(ratios.mean()),
                        "interval": interval_of(ratios),
                        "records": records,
                    }
                )
                print(line_of(batch, offload, ratios, records), flush=True)
    if options.json:
        write_json(
            options.json,
            {"machine": machine, "parameters": parameters_of(options), "rows": rows},
        )


if __name__ == "__main__":
    main()
