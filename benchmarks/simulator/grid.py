# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""All contenders on three settings of links times three of computing, with seeds and spread.

Each cell gives updates per second, delays, drops, bytes at the server's link, and the time in which
a convex problem that is really trained along the timeline reaches its target. All contenders of a
seed see the same traces. Simulated figures are the same on every machine.
Run: python benchmarks/simulator/grid.py
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.simulator.contenders import BASELINE, CONTENDERS, SimulatedContender, simulate
from benchmarks.simulator.grid_plot import draw_grid
from benchmarks.simulator.scenario import Scenario
from benchmarks.simulator.spread import Spread
from benchmarks.simulator.traces import ComputeSetting, LinkSetting
from benchmarks.simulator.training_problem import LeastSquares, best_time_to_target
from benchmarks.support.results import parameters_of, write_json

RESULTS = Path(__file__).parents[1] / "results"


def measure_cell(
    scenario: Scenario, contenders: Iterable[SimulatedContender], seeds: Sequence[int], options: Any
) -> list[dict[str, Any]]:
    """Return a row for each contender, with the figures of every seed."""
    rows: list[dict[str, Any]] = []
    for contender in contenders:
        runs: list[dict[str, Any]] = []
        for seed in seeds:
            run = simulate(
                contender,
                replace(scenario, seed=seed),
                duration_s=options.duration,
                wanted_updates=options.updates,
            )
            time_s, rate = best_time_to_target(
                LeastSquares.draw(seed),
                run.events,
                seed=seed,
                divisor=scenario.num_workers if contender.is_synchronous else 1,
            )
            runs.append(
                asdict(run.figures)
                | {
                    "server_in_bytes": run.server_in_bytes,
                    "server_out_bytes": run.server_out_bytes,
                    "decisions": run.decisions,
                    "groups": run.groups,
                    "target_s": time_s,
                    "learning_rate": rate,
                }
            )
        rows.append(
            {
                "links": scenario.links.value,
                "computing": scenario.computing.value,
                "contender": contender.name,
                "runs": runs,
            }
        )
    return rows


def row_text(row: dict[str, Any], baseline: dict[str, Any], duration_s: float) -> str:
    """Return one line of a table."""

    def spread(key: str, scale: float = 1.0) -> Spread:
        return Spread.of([run[key] * scale for run in row["runs"]])

    gains = Spread.of(
        [
            run["updates_per_s"] / other["updates_per_s"]
            for run, other in zip(row["runs"], baseline["runs"], strict=True)
        ]
    )
    gained = Spread.of_known(
        [
            other["target_s"] / run["target_s"] if run["target_s"] and other["target_s"] else None
            for run, other in zip(row["runs"], baseline["runs"], strict=True)
        ]
    )
    reached = Spread.of_known([run["reached_s"] for run in row["runs"]])
    target = Spread.of_known([run["target_s"] for run in row["runs"]])
    cells = (
        CONTENDERS[row["contender"]].label,
        spread("updates_per_s").text(2),
        gains.text(2),
        f"{spread('mean_delay').text(1)}, {spread('p99_delay').median:.0f}",
        spread("drops").text(0),
        spread("server_in_bytes", 8e-6 / duration_s).text(0),
        spread("server_out_bytes", 8e-6 / duration_s).text(0),
        reached.text(0),
        target.text(0),
        gained.text(2),
    )
    return f"| {' | '.join(cells)} |"


HEAD = (
    "| contender | updates/s | of plain PS | delay mean, p99 | drops | server in, Mbit/s "
    "| server out, Mbit/s | N updates, s | target, s | faster |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=5, help="runs with seeds from 1")
    parser.add_argument("--duration", type=float, default=400.0, help="simulated seconds")
    parser.add_argument("--updates", type=int, default=100, help="N of the time to N updates")
    parser.add_argument(
        "--no-models", action="store_true", help="models cost nothing: workers have the newest one"
    )
    parser.add_argument(
        "--start-spread",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="asynchronous workers begin at moments drawn from so many seconds",
    )
    parser.add_argument("--links", choices=[each.value for each in LinkSetting], nargs="*")
    parser.add_argument("--computing", choices=[each.value for each in ComputeSetting], nargs="*")
    parser.add_argument("--contenders", choices=list(CONTENDERS), nargs="*")
    parser.add_argument("--name", default="simulator_grid", help="of the files in results/")
    options = parser.parse_args()
    chosen = [
        each
        for each in CONTENDERS.values()
        if not options.contenders or each.name in (BASELINE, *options.contenders)
    ]
    rows: list[dict[str, Any]] = []
    for links in LinkSetting:
        for computing in ComputeSetting:
            if options.links and links.value not in options.links:
                continue
            if options.computing and computing.value not in options.computing:
                continue
            scenario = Scenario(
                num_workers=options.workers,
                seed=0,
                links=links,
                computing=computing,
                has_models=not options.no_models,
                start_spread_s=options.start_spread,
            )
            found = measure_cell(scenario, chosen, range(1, options.seeds + 1), options)
            baseline = next(row for row in found if row["contender"] == BASELINE)
            print(f"\nLinks {links.value}, computing {computing.value}\n\n{HEAD}")
            for row in found:
                print(row_text(row, baseline, options.duration), flush=True)
            rows += found
    content = {"parameters": parameters_of(options), "rows": rows}
    write_json(RESULTS / f"{options.name}.json", content)
    draw_grid(rows, RESULTS / f"{options.name}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
