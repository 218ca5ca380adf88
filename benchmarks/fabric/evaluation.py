# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Trainings on changing links and computing times, with and without the transfer scheduler.

Worker processes on a testbed train a perceptron and a topic model: by a parameter server, by the
same server with updates and models that the controller's scheduler plans, by a chain of two
servers, by a ring, and by sums among workers that the scheduler plans. All contenders of a seed see
the same links and computing times, one after the other, in the settings of the simulator's grid.
Each final model must be the sum of the updates that were applied.

examples:
  switchfold bench fabric --seeds 5 --out results
  switchfold bench fabric --workloads topics --links redrawn --transfers batch_wait_s=0.05

exit status: 0 when all was measured; 1 when the run stopped, because of the testbed, a wrong model
or a process that ended; 2 when an option is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.fabric import report  # noqa: E402
from benchmarks.fabric.contenders import (  # noqa: E402
    ALLREDUCE,
    BASELINE,
    CONTENDERS,
    RING,
    SYNCHRONOUS,
    SYNCHRONOUS_PS,
    FabricContender,
    chosen_contenders,
)
from benchmarks.fabric.control_trip import control_trips  # noqa: E402
from benchmarks.fabric.figures import (  # noqa: E402
    figures_of,
    joined_rows,
    link_figures,
    quantiles,
)
from benchmarks.fabric.retraining import best_rate  # noqa: E402
from benchmarks.fabric.rig import FabricRig, RunLimits, waits_for_grants  # noqa: E402
from benchmarks.fabric.run_record import FabricRunError  # noqa: E402
from benchmarks.fabric.settings import SIMULATED, Cell, ClusterSize, cell_name  # noqa: E402
from benchmarks.fabric.tasks import WORKLOADS, FabricWorkload  # noqa: E402
from benchmarks.fabric.timelines import FOLDER, keep_timeline  # noqa: E402
from benchmarks.simulator.traces import ComputeSetting, LinkSetting  # noqa: E402
from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
)
from benchmarks.support.results import parameters_of, write_json  # noqa: E402
from benchmarks.transport.evaluation import checked, count  # noqa: E402
from switchfold.bmv2_topos.errors import TestbedError  # noqa: E402
from switchfold.controller.errors import ControllerError  # noqa: E402

TRANSFERS: Final = {"payload_share": "0.92", "batch_wait_s": "0.01", "relay_max": "8"}
"""Of the controller: headers of TCP take a twentieth, and acknowledgements of the other direction
up to as much again; updates here take a sixth of a second. Only one contender's workers relay."""
BITS_PER_S_OF_CORE: Final = 10_000_000
"""What processes, in Python and through a switch in software, move beside their training."""
CONTROL_TRIPS: Final = 50
STEPWISE_PAIRS: Final = (
    (SYNCHRONOUS, SYNCHRONOUS_PS),
    (SYNCHRONOUS, RING),
    (ALLREDUCE, RING),
    (ALLREDUCE, SYNCHRONOUS),
)
"""Compared if both were run."""
QUICK: Final[dict[str, Any]] = {
    "workloads": "perceptron",
    "links": "tenth-halved",
    "computing": "few-slow",
    "workers": 3,
    "seeds": 1,
    "iterations": 4,
    "target": 1.0,
    "limit": 600.0,
    "transfers": ["grant_wait_s=60", "server_wait_s=60"],
}
"""What --quick stands for; nothing reaches an accuracy of 1, and every update waits for a grant."""


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the options; SystemExit with status 2 says what is wrong with one."""
    parser = argparse.ArgumentParser(
        prog="switchfold bench fabric",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    links, computing = (",".join(e.value for e in kind) for kind in (LinkSetting, ComputeSetting))
    add("--workloads", default=",".join(WORKLOADS), metavar="LIST", help="default %(default)s")
    add("--links", default=links, metavar="LIST", help="settings of links; default %(default)s")
    add("--computing", default=computing, metavar="LIST", help="default %(default)s")
    add("--contenders", default="", metavar="LIST", help="names; default all")
    add("--workers", type=checked(count), default=8, metavar="N", help="default 8")
    add("--seeds", type=checked(count), default=5, metavar="N", help="runs of each, default 5")
    add("--first-seed", type=int, default=1, metavar="N", help="default 1")
    add(
        "--rate",
        type=checked(parse_rate),
        metavar="RATE",
        help="of each host's link; default 10M for each core of this machine, at most the 100M of"
        " the settings",
    )
    add("--limit", type=float, default=90.0, metavar="S", help="longest run, default 90")
    add("--target", type=float, metavar="SCORE", help="default each workload's own")
    add("--iterations", type=checked(count), default=1 << 20, help="most of a worker, default any")
    add(
        "--transfers",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help='an option of the controller\'s table [transfers], such as learning_rate="inverse";'
        f" several times; default {', '.join(f'{k}={v}' for k, v in TRANSFERS.items())}",
    )
    add(
        "--timelines",
        action="store_true",
        help="keep the timeline of transfers of each scheduled run, with a page of it, in"
        f" {FOLDER}/ of --out: about 1 MB a minute",
    )
    add(
        "--quick",
        action="store_true",
        help="a few iterations of three workers in one cell, to see that all works",
    )
    add(
        "--join",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="measure nothing: report earlier results (fabric.json) together",
    )
    add(
        "--out",
        type=Path,
        default=ROOT / "benchmarks" / "results",
        metavar="FOLDER",
        help="for fabric.json, fabric.md and fabric.png",
    )
    options = parser.parse_args(arguments)
    if options.quick:
        vars(options).update(QUICK)
    if options.rate is None:
        cores = os.cpu_count() or 1
        options.rate = min(SIMULATED.link_bits_per_s, cores * BITS_PER_S_OF_CORE)
    try:
        options.contenders = chosen_contenders(options.contenders)
        options.workloads = [WORKLOADS[name] for name in options.workloads.split(",")]
        options.links = [LinkSetting(name) for name in options.links.split(",")]
        options.computing = [ComputeSetting(name) for name in options.computing.split(",")]
        options.transfers = TRANSFERS | dict(_pair(text) for text in options.transfers)
    except (KeyError, ValueError) as exc:
        parser.error(f"{exc}; see --help")
    if not options.limit > 0:
        parser.error(f"--limit {options.limit:g}: a time above 0")
    return options


def _pair(text: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not mark:
        raise ValueError(f"--transfers {text!r}: write NAME=VALUE")
    return name, value


class FabricEvaluation:
    """All runs, workload by workload and cell by cell."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self.rows: dict[str, list[dict[str, Any]]] = {}
        """By workload, a row for each cell and contender."""
        self.trips_s: list[float] = []
        self.text: list[str] = []

    def measure(self) -> Iterator[None]:
        """Measure everything; yield after each cell."""
        options = self._options
        for workload in options.workloads:
            rows = self.rows[workload.name] = []
            size = ClusterSize(
                num_workers=options.workers,
                num_values=workload.num_values,
                rate_bits_per_s=options.rate,
            )
            self.say(self._introduction(workload, size))
            with FabricRig(workload, size, options.transfers) as rig:
                self.trips_s += control_trips(rig.testbed, CONTROL_TRIPS)
                for links in options.links:
                    for computing in options.computing:
                        found = self._cell(rig, links, computing)
                        rows += found
                        self.say(report.cell_text(found, workload))
                        yield
            self._conclude(workload, rows)
            yield

    def say(self, text: str) -> None:
        """Print a part of the report, and keep it."""
        print(text, flush=True)
        self.text.append(text)

    def _introduction(self, workload: FabricWorkload, size: ClusterSize) -> str:
        nominal = SIMULATED.link_bits_per_s
        scaled = (
            ""
            if size.rate_bits_per_s == nominal
            else f" They stand for the settings' {nominal / 1e6:g} Mbit/s, which {os.cpu_count()}"
            " cores do not carry beside the training; so do all shares of it, and computing times."
        )
        return (
            f"\n## {workload.title}\n\n{size.num_workers} workers and one server on one switch,"
            f" links of {size.rate_bits_per_s / 1e6:g} Mbit/s.{scaled} A model of"
            f" {size.model_bytes / 1e6:.2f} MB takes {size.transfer_s:.3f} s alone on a link;"
            f" computing takes {size.compute_s:.3f} s. Target: {workload.measure}"
            f" {self._target(workload):g}. Scheduled: tau_max {size.tau_max},"
            f" {', '.join(f'{k} {v}' for k, v in self._options.transfers.items())}."
        )

    def _target(self, workload: FabricWorkload) -> float:
        target: float | None = self._options.target
        return workload.target if target is None else target

    def _cell(
        self, rig: FabricRig, links: LinkSetting, computing: ComputeSetting
    ) -> list[dict[str, Any]]:
        """Run all contenders, side by side for each seed."""
        options = self._options
        runs: dict[str, list[dict[str, Any]]] = {each.name: [] for each in options.contenders}
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            cell = Cell(links=links, computing=computing, seed=seed)
            for contender in options.contenders:
                runs[contender.name].append(self._run(rig, contender, cell))
        return [
            {
                "cell": cell_name(links, computing),
                "links": links.value,
                "computing": computing.value,
                "contender": name,
                "runs": found,
            }
            for name, found in runs.items()
        ]

    def _run(self, rig: FabricRig, contender: FabricContender, cell: Cell) -> dict[str, Any]:
        options, workload = self._options, rig.workload
        target = self._target(workload)
        limits = RunLimits(target=target, limit_s=options.limit, most_iterations=options.iterations)
        rate = contender.learning_rate
        record = rig.run(contender, cell, rate, limits)
        task = rig.task(cell, rate)
        record.find_target(workload, task.make(0), target)
        figures = figures_of(record, rig.size, waits_for_grants(rig.transfer_log, record.job))
        figures["link_use"] = link_figures(record, rig.size, Path(rig.transfer_log))
        if options.timelines and contender.is_scheduled:
            self._keep_timeline(rig, contender, cell, record.job)
        if workload.has_rate:
            best_s, best = best_rate(record, workload, task, target)
        else:
            best_s, best = record.target_s, rate
        return {**figures, "best_target_s": best_s, "best_rate": best}

    def _keep_timeline(
        self, rig: FabricRig, contender: FabricContender, cell: Cell, job: str
    ) -> None:
        parts = rig.workload.name, cell.links.value, cell.computing.value, contender.name
        name = "_".join((*parts, f"seed-{cell.seed}"))
        page = keep_timeline(Path(rig.transfer_log), job, self._options.out, name)
        title = f"{rig.workload.title}, {contender.title}, {cell.name}, seed {cell.seed}"
        self.say(f"Transfers: [{title}]({page})\n")

    def join(self, files: Sequence[Path]) -> None:
        """Take what earlier evaluations have measured."""
        read = [json.loads(file.read_text(encoding="utf-8")) for file in files]
        self.trips_s = [trip_s for each in read for trip_s in each["control_trips_s"]]
        self.rows = joined_rows(each["rows"] for each in read)
        for name, rows in self.rows.items():
            for cell in dict.fromkeys(row["cell"] for row in rows):
                here = [row for row in rows if row["cell"] == cell]
                self.say(report.cell_text(here, WORKLOADS[name]))
            self._conclude(WORKLOADS[name], rows)

    def _conclude(self, workload: FabricWorkload, rows: list[dict[str, Any]]) -> None:
        names = list(dict.fromkeys(row["contender"] for row in rows))
        pairs = [(name, BASELINE) for name in names if name != BASELINE]
        in_step = [pair for pair in STEPWISE_PAIRS if set(pair) <= set(names)]
        keys = {"target_s": ""} | ({"best_target_s": "best rates, "} if workload.has_rate else {})
        compared = [(*pair, keys) for pair in pairs]
        compared += [(*pair, keys | {"iteration_s": "iterations, "}) for pair in in_step]
        for name, other, whats in compared:
            for key, what in whats.items():
                grid = report.grid_text(rows, name, key, other)
                title = f"{CONTENDERS[name].title} against {CONTENDERS[other].title}"
                self.say(f"\n{workload.title}, {what}{title}: times as fast\n\n{grid}")
        trip = quantiles(self.trips_s)
        self.say(
            f"\ncontrol RTT, request to grant of an idle scheduler: p50 {1e3 * trip['p50']:.1f} ms,"
            f" p99 {1e3 * trip['p99']:.1f} ms"
        )
        for line in report.aims(rows, "target_s"):
            self.say(line)

    def write(self, machine: dict[str, Any]) -> None:
        """Write what there is so far, and draw it."""
        options = self._options
        content = {
            "machine": machine,
            "parameters": parameters_of(options),
            "control_trips_s": self.trips_s,
            "rows": self.rows,
        }
        write_json(options.out / "fabric.json", content)
        (options.out / "fabric.md").write_text("\n".join(self.text) + "\n", "utf-8")
        rows = {name: found for name, found in self.rows.items() if found}
        titles = {each.name: each.title for each in WORKLOADS.values()}
        report.draw(rows, titles, options.out / "fabric.png")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark; SystemExit says why it stopped."""
    options = parse_options(arguments)
    if options.join:
        joined = FabricEvaluation(options)
        joined.join(options.join)
        joined.write({})
        return
    check_machine(has_torch=False)
    machine = describe_machine(has_torch=False)
    evaluation = FabricEvaluation(options)
    evaluation.say(machine_line(machine))
    for each in CONTENDERS.values():
        if each.missing:
            evaluation.say(each.missing)
    try:
        for _ in evaluation.measure():
            evaluation.write(machine)
    except (TestbedError, ControllerError, FabricRunError) as exc:
        raise SystemExit(f"benchmark stopped: {exc}") from exc
    print(f"\nwrote {options.out / 'fabric.json'}, fabric.md and fabric.png")


if __name__ == "__main__":
    main()
