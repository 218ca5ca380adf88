# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Contenders on clusters of 8 to 1,000 workers, and what the scheduler's decisions cost there.

The servers' links together carry an eighth of what the workers' links do, in clusters of any size.
A fifth of the workers compute 4 times slower, others every 10 iterations. "Needed" are decisions on
updates and models in a simulated second; "possible" are those of a second of this machine, by the
median over all batches. The rest of the table is simulated, and the same on every machine.
Run: python benchmarks/simulator/scale.py
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.simulator.clusters import cluster_of
from benchmarks.simulator.contenders import CONTENDERS, SimulatedContender, simulate
from benchmarks.simulator.scale_plot import draw_scale
from benchmarks.simulator.spread import Spread
from benchmarks.simulator.traces import ComputeSetting, LinkSetting
from benchmarks.support.results import parameters_of, write_json

RESULTS = Path(__file__).parents[1] / "results"
HEAD = (
    "| workers | contender | updates/s | delay mean, p99 | drops | a server in, out, Mbit/s "
    "| decisions/s needed | possible |\n|---|---|---|---|---|---|---|---|"
)


def measure(
    num_workers: int, contender: SimulatedContender, seeds: Sequence[int], options: Any
) -> dict[str, Any]:
    """Return the figures of all seeds."""
    runs: list[dict[str, Any]] = []
    for seed in seeds:
        scenario = cluster_of(
            num_workers,
            seed=seed,
            links=LinkSetting(options.links),
            computing=ComputeSetting(options.computing),
            has_models=not options.no_models,
        )
        run = simulate(contender, scenario, duration_s=options.duration)
        runs.append(
            asdict(run.figures)
            | {
                "server_in_bytes": run.server_in_bytes,
                "server_out_bytes": run.server_out_bytes,
                "needed_per_s": run.decisions / options.duration,
                "possible_per_s": 1 / run.decision_cost_s if run.decision_cost_s else 0.0,
                "groups": run.groups,
            }
        )
    return {"workers": num_workers, "contender": contender.name, "runs": runs}


def row_text(row: dict[str, Any], duration_s: float) -> str:
    """Return one line of the table."""

    def spread(key: str, scale: float = 1.0) -> Spread:
        return Spread.of([run[key] * scale for run in row["runs"]])

    mbits = [spread(f"server_{side}_bytes", 8e-6 / duration_s).median for side in ("in", "out")]
    needed, possible = spread("needed_per_s").median, spread("possible_per_s").median
    cells = (
        f"{row['workers']:,}",
        CONTENDERS[row["contender"]].label,
        spread("updates_per_s").text(2 if row["workers"] < 100 else 1),
        f"{spread('mean_delay').text(1)}, {spread('p99_delay').median:.0f}",
        spread("drops").text(0),
        f"{mbits[0]:.0f}, {mbits[1]:.0f}",
        f"{needed:.0f}" if needed else "",
        f"{possible:.0f}" if possible else "",
    )
    return f"| {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", type=int, nargs="*", default=[8, 64, 256, 1000])
    parser.add_argument("--seeds", type=int, default=5, help="runs with seeds from 1")
    parser.add_argument("--duration", type=float, default=60.0, help="simulated seconds")
    parser.add_argument("--contenders", choices=list(CONTENDERS), nargs="*")
    parser.add_argument("--links", choices=[each.value for each in LinkSetting], default="even")
    parser.add_argument(
        "--computing", choices=[each.value for each in ComputeSetting], default="stragglers"
    )
    parser.add_argument(
        "--no-models", action="store_true", help="models cost nothing: workers have the newest one"
    )
    parser.add_argument("--name", default="simulator_scale", help="of the files in results/")
    options = parser.parse_args()
    print(HEAD)
    rows: list[dict[str, Any]] = []
    for num_workers in options.workers:
        for name in options.contenders or CONTENDERS:
            seeds = range(1, options.seeds + 1)
            rows.append(measure(num_workers, CONTENDERS[name], seeds, options))
            print(row_text(rows[-1], options.duration), flush=True)
    write_json(
        RESULTS / f"{options.name}.json", {"parameters": parameters_of(options), "rows": rows}
    )
    draw_scale(rows, RESULTS / f"{options.name}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
