# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Load of parameter servers with sparse tables, latency, throughput, and accuracy of a real model.

Workers and servers are processes on hosts around one switch. Each figure comes from a run whose
sums were all compared with numpy's.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.support.machine import (  # noqa: E402
    describe_machine,
    machine_line,
    parse_rate,
)
from benchmarks.support.results import parameters_of, write_json  # noqa: E402
from switchfold.controller.cli.hot.figures import figures_of, share_of_hottest  # noqa: E402
from switchfold.controller.cli.hot.plan import Offload, TablePlan, TableWorkload  # noqa: E402
from switchfold.controller.cli.hot.rig import Mode, TableRig  # noqa: E402
from switchfold.controller.cli.hot.steps import epoch_steps, steps_of  # noqa: E402
from switchfold.hostlib.parameter_server import HotRowUse  # noqa: E402

Figures = dict[str, float | None]
RATIOS: Final = (
    "writes",
    "pulled keys at servers",
    "server us/update",
    "worker us/update",
    "samples/s",
)
"""Figures that are compared with those of the run without offload that came before."""
SIZES: Final = (256, 1024, 4096, 20_000)
BATCHES: Final = {
    TableWorkload.ZIPF_845: 1024,
    TableWorkload.ZIPF_1070: 1024,
    TableWorkload.ZIPF_1500: 1024,
    TableWorkload.GLOSSES: 64,
}
"""Samples of a mini-batch: one key each by Zipf's law, and about 25 of a definition."""
STUDIED: Final = [TableWorkload.ZIPF_845, TableWorkload.ZIPF_1070, TableWorkload.GLOSSES]


def measure(rig: TableRig, plan: TablePlan, offloads: Sequence[Offload], repeats: int) -> list[Any]:
    """Run all offloads in turn, several times; return each one's figures, and print them."""
    found: dict[Offload, list[Figures]] = {offload: [] for offload in offloads}
    for number, offload in itertools.product(range(repeats), offloads):
        own = plan.with_offload(offload)
        if own.latency_log:
            name = f"{own.workload}-{own.num_workers}-{offload}-{number + 1}"
            own = replace(own, latency_log=str(Path(own.latency_log) / name))
        found[offload].append(figures_of(rig.run(own)))
    rows = [
        {
            "workload": plan.workload,
            "workers": plan.num_workers,
            "offload": offload,
            "figures": medians(figures),
            "ratios": ratios(figures, found[Offload.NONE]),
            "runs": figures,
        }
        for offload, figures in found.items()
    ]
    for row in rows:
        print(line_of(row), flush=True)
    return rows


def medians(runs: Sequence[Figures]) -> Figures:
    """Return the median of each figure; None if it is None in any run."""
    return {name: median_of([run[name] for run in runs]) for name in runs[0]}


def median_of(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def ratios(runs: Sequence[Figures], without: Sequence[Figures]) -> dict[str, list[float]]:
    """Return least, median and most of the ratios to the runs without offload, pair by pair."""
    result: dict[str, list[float]] = {}
    for name in RATIOS:
        pairs = [(run[name], base[name]) for run, base in zip(runs, without, strict=True)]
        each = [one / base for one, base in pairs if one is not None and base]
        result[name] = [min(each), statistics.median(each), max(each)] if each else []
    return result


HEADER: Final = (
    f"{'workload':10} {'workers':>7} {'offload':8} {'writes':>7} {'model':>7} {'h':>6} {'c':>6}"
    f" {'pulls':>7} {'server us/update':>16} {'worker us/update':>16}"
    f" {'push p50/p99 ms':>16} {'pull p50/p99 ms':>16}"
    f" {'hottest 64':>16}"
    f" {'samples/s':>19}"
)


def line_of(row: dict[str, Any]) -> str:
    figures, compared = row["figures"], row["ratios"]

    def pair(kind: str) -> str:
        if figures[f"{kind} p50 ms"] is None:
            return "-"
        return f"{figures[f'{kind} p50 ms']:.2f} / {figures[f'{kind} p99 ms']:.2f}"

    def with_ratio(name: str, digits: int) -> str:
        ratio = f"({compared[name][1]:.2f})" if compared[name] else ""
        return f"{figures[name]:.{digits}f} {ratio:>6}"

    merged = figures["c"]
    return (
        f"{row['workload']:10} {row['workers']:7} {row['offload']:8} {figures['writes']:7.3f}"
        f" {figures['1 - h + h/c']:7.3f} {figures['h']:6.3f}"
        f" {'-' if merged is None else f'{merged:.2f}':>6}"
        f" {figures['pulled keys at servers']:7.3f} {with_ratio('server us/update', 2):>16}"
        f" {with_ratio('worker us/update', 2):>16}"
        f" {pair('push'):>16} {pair('pull'):>16} {pair('hottest pull'):>16}"
        f" {with_ratio('samples/s', 0):>19}"
    )


def measure_skew(options: argparse.Namespace) -> list[Any]:
    """Count the keys of the workloads: the most that hot rows can take off the servers."""
    print("\nShare of the pushed keys that the hottest keys have")
    print(f"{'workload':10} {'keys':>9}" + "".join(f"{size:>9}" for size in SIZES))
    rows: list[Any] = []
    with rig_of(options, 1) as rig:
        for workload in options.workloads:
            plan = rig.with_samples(
                TablePlan(
                    workload=workload, num_workers=1, batch=BATCHES[workload], seed=options.seed
                )
            )
            steps = itertools.islice(steps_of(plan, 0), options.steps)
            batches = [step.keys for step in steps]
            num_keys = np.unique(np.concatenate(batches)).size
            shares = {size: share_of_hottest(batches, size) for size in SIZES}
            rows.append({"workload": workload, "keys": num_keys, "shares": shares})
            shown = "".join(f"{share:9.3f}" for share in shares.values())
            print(f"{workload:10} {num_keys:9}{shown}", flush=True)
    return rows


def measure_load(options: argparse.Namespace) -> list[Any]:
    """Measure all workloads with all numbers of workers."""
    print("\nLoad of the servers, latency and throughput; in brackets: ratios to the same without")
    print(HEADER)
    rows: list[Any] = []
    for num_workers in options.workers:
        with rig_of(options, num_workers) as rig:
            for workload in options.workloads:
                plan = TablePlan(
                    workload=workload,
                    hot_keys=options.hot_keys,
                    use=options.use,
                    flush_s=options.flush_ms / 1e3,
                    num_workers=num_workers,
                    num_servers=options.servers,
                    batch=options.batch or BATCHES[workload],
                    width=options.width,
                    warm_up_s=options.warm_up_s,
                    pause_s=options.pause_ms / 1e3,
                    steps=math.ceil(options.steps / num_workers),
                    seed=options.seed,
                    latency_log=str(options.latency_log.resolve()) if options.latency_log else "",
                )
                rows += measure(rig, plan, options.offloads, options.repeats)
    return rows


def measure_accuracy(options: argparse.Namespace) -> list[Any]:
    """Train with each offload and each seed, and compare the accuracies by seed."""
    num_workers = options.workers[0]
    print(f"\nHeld-out accuracy of a classifier of definitions, {num_workers} workers")
    rows: list[Any] = []
    with rig_of(options, num_workers) as rig:
        for offload in options.offloads:
            accuracies: list[float] = []
            for seed in range(1, options.seeds + 1):
                plan = TablePlan(
                    workload=TableWorkload.GLOSSES,
                    is_training=True,
                    use=options.use,
                    flush_s=options.flush_ms / 1e3,
                    num_workers=num_workers,
                    num_servers=options.servers,
                    batch=BATCHES[TableWorkload.GLOSSES],
                    seed=seed,
                ).with_offload(offload)
                accuracy = rig.run(epoch_steps(plan, rig.num_samples, options.epochs)).accuracy
                assert accuracy is not None
                accuracies.append(accuracy)
            rows.append({"offload": offload, "accuracies": accuracies})
            print(accuracy_line(offload, accuracies, rows[0]["accuracies"]), flush=True)
    return rows


def accuracy_line(offload: str, accuracies: Sequence[float], without: Sequence[float]) -> str:
    """Return mean and standard deviation, and those of the differences to no offload by seed."""
    differences = [one - base for one, base in zip(accuracies, without, strict=True)]
    each = " ".join(f"{accuracy:.4f}" for accuracy in accuracies)
    return f"{offload:8} {mean_line(accuracies)}, difference {mean_line(differences)}  ({each})"


def mean_line(values: Sequence[float]) -> str:
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.4f} +- {spread:.4f}"


def rig_of(options: argparse.Namespace, num_workers: int) -> TableRig:
    mode: Mode = options.mode
    return TableRig(
        num_workers=num_workers,
        num_servers=options.servers,
        mode=mode,
        variant=options.variant,
        rate_bits_per_s=None if options.rate == "none" else parse_rate(options.rate),
    )


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="switchfold bench hot", description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument(
        "--workloads",
        type=TableWorkload,
        nargs="+",
        default=STUDIED,
        metavar="NAME",
        help=f"of {', '.join(TableWorkload)}; by default {', '.join(STUDIED)}",
    )
    parser.add_argument(
        "--offloads",
        type=Offload,
        nargs="+",
        metavar="NAME",
        help=f"of {', '.join(Offload)}; by default all, in mode udp {Offload.NONE}",
    )
    parser.add_argument(
        "--hot-keys", type=int, default=1408, help="of a table on each server, without training"
    )
    parser.add_argument("--batch", type=int, help="samples of a mini-batch, without training")
    parser.add_argument("--width", type=int, default=1, help="values of a key, without training")
    parser.add_argument(
        "--use",
        type=HotRowUse,
        choices=(HotRowUse.ALWAYS, HotRowUse.AUTO),
        default=HotRowUse.ALWAYS,
        help="of hot rows by workers: always, or only where they are faster (auto)",
    )
    parser.add_argument(
        "--flush-ms", type=float, default=100.0, help="how long a sum waits for all workers"
    )
    parser.add_argument("--steps", type=int, default=8000, help="mini-batches of all workers")
    parser.add_argument("--warm-up-s", type=float, default=5.0)
    parser.add_argument(
        "--pause-ms", type=float, default=0.0, help="pause of a worker after each mini-batch"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=5, help="trainings with each offload; 0: none")
    parser.add_argument("--epochs", type=int, default=1, help="of a training")
    parser.add_argument(
        "--mode",
        choices=("veth", "udp"),
        default="veth" if os.geteuid() == 0 else "udp",
        help="veth: namespaces, needs root; udp: loopback",
    )
    parser.add_argument(
        "--variant",
        choices=("wide", "narrow"),
        default="wide",
        help="values of a packet: 352 (wide) or 32 (narrow)",
    )
    parser.add_argument("--rate", default="none", help="of each host's link: 100M, 1G, none")
    parser.add_argument(
        "--latency-log",
        type=Path,
        help="directory for a latency log of each run, in a directory of its own",
    )
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args(arguments)
    if options.offloads is None:
        options.offloads = list(Offload) if options.mode == "veth" else [Offload.NONE]
    if options.offloads[0] is not Offload.NONE:
        parser.error(f"--offloads: begin with {Offload.NONE}; the others are compared with it")
    return options


def main() -> None:
    options = parse()
    machine = describe_machine(has_torch=False)
    print(machine_line(machine))
    print(
        f"{options.servers} servers, {options.hot_keys} hot keys on each, which workers use"
        f" {options.use}, flushes after"
        f" {options.flush_ms:g} ms, links of rate {options.rate}, {options.steps}"
        f" mini-batches after {options.warm_up_s:g} s, pauses of {options.pause_ms:g} ms, medians"
        f" of {options.repeats} runs in turn,"
        " all sums verified"
    )
    results: dict[str, Any] = {"machine": machine, "parameters": parameters_of(options)}
    results["skew"] = measure_skew(options)
    results["load"] = measure_load(options)
    if options.seeds:
        results["accuracy"] = measure_accuracy(options)
    if options.json:
        write_json(options.json, results)


if __name__ == "__main__":
    main()
