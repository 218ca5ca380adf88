# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Throughput of workers and parameter servers with a latency log and without it, in turn.

All processes log. Each figure comes from a run whose sums were all compared with numpy's.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.support.machine import (  # noqa: E402
    describe_machine,
    machine_line,
    parse_rate,
)
from benchmarks.support.results import parameters_of, write_json  # noqa: E402
from switchfold.controller.cli.hot.figures import figures_of  # noqa: E402
from switchfold.controller.cli.hot.plan import Offload, TablePlan, TableWorkload  # noqa: E402
from switchfold.controller.cli.hot.rig import TableRig  # noqa: E402
from switchfold.controller.cli.latency.run_files import load_run  # noqa: E402

COMPARED: Final = ("samples/s", "server us/update", "worker us/update")
AIM: Final = 0.97
"""Throughput with the log to that without, at least."""


def compare(rig: TableRig, plan: TablePlan, repeats: int) -> tuple[dict[str, list[float]], int]:
    """Return ratios of the figures with a log to those without, a pair of runs each, and records.

    The records are those of the workers' requests in all runs.
    """
    ratios: dict[str, list[float]] = {name: [] for name in COMPARED}
    records = 0
    for number in range(repeats):
        with tempfile.TemporaryDirectory(prefix="latency-log-") as folder:
            plans = [plan, replace(plan, latency_log=folder)]
            if number % 2:
                plans.reverse()
            runs = {bool(each.latency_log): figures_of(rig.run(each)) for each in plans}
            records += load_run(Path(folder)).requests["number"].size
        for name, each in ratios.items():
            logged, without = runs[True][name], runs[False][name]
            assert logged is not None
            assert without
            each.append(logged / without)
    return ratios, records


def line_of(batch: int, offload: Offload, ratios: dict[str, list[float]], records: int) -> str:
    cells = "".join(
        f" {statistics.median(each):6.3f} ({min(each):.2f} to {max(each):.2f})"
        for each in ratios.values()
    )
    held = "met" if statistics.median(ratios["samples/s"]) >= AIM else "missed"
    return f"{batch:6} {offload:8}{cells} {records:10}  {held}"


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--batches", type=int, nargs="+", default=[512, 4096])
    parser.add_argument("--hot-keys", type=int, default=1408)
    parser.add_argument("--steps", type=int, default=6000, help="mini-batches of all workers")
    parser.add_argument("--warm-up-s", type=float, default=5.0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rate", default="100M", help="of each host's link: 100M, 1G, none")
    parser.add_argument("--json", type=Path, help="file for the figures")
    return parser.parse_args(arguments)


def main() -> None:
    options = parse()
    machine = describe_machine(has_torch=False)
    print(machine_line(machine))
    print(
        f"{options.workers} workers, {options.servers} servers, links of rate {options.rate};"
        f" ratios of runs with a log to those without, medians of {options.repeats} pairs, least"
        f" and most; aim: samples/s at least {AIM}; all sums verified"
    )
    names = "".join(f" {name:>21}" for name in COMPARED)
    print(f"{'batch':>6} {'offload':8}{names} {'records':>10}")
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
                    steps=options.steps // options.workers,
                )
                ratios, records = compare(rig, plan, options.repeats)
                row = {"batch": batch, "offload": offload, "ratios": ratios, "records": records}
                rows.append(row)
                print(line_of(batch, offload, ratios, records), flush=True)
    if options.json:
        write_json(
            options.json,
            {"machine": machine, "parameters": parameters_of(options), "rows": rows},
        )


if __name__ == "__main__":
    main()
