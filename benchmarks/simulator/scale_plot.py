# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Draws updates per second and delays against the number of workers."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.simulator.contenders import CONTENDERS
from benchmarks.simulator.grid_plot import COLOURS, plain_number
from benchmarks.support.plot import untyped


def draw_scale(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Write two charts; both axes are logarithmic, and whiskers span the seeds."""
    figure, both = untyped.subplots(1, 2, figsize=(11, 5), layout="constrained")
    for axes, key, label in (
        (both[0], "updates_per_s", "updates applied per second"),
        (both[1], "mean_delay", "mean delay, updates"),
    ):
        for name in dict.fromkeys(row["contender"] for row in rows):
            if key == "mean_delay" and CONTENDERS[name].is_synchronous:
                continue
            points = [
                (row["workers"], [run[key] for run in row["runs"]])
                for row in rows
                if row["contender"] == name
            ]
            middles = [statistics.median(values) for _, values in points]
            axes.errorbar(
                [number for number, _ in points],
                middles,
                yerr=[
                    [middle - min(v) for middle, (_, v) in zip(middles, points, strict=True)],
                    [max(v) - middle for middle, (_, v) in zip(middles, points, strict=True)],
                ],
                marker="o",
                markersize=4,
                capsize=3,
                color=COLOURS[name],
                label=CONTENDERS[name].label,
            )
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(sorted({row["workers"] for row in rows}))
        axes.xaxis.set_major_formatter(plain_number)
        axes.set_xlabel("workers")
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
    handles, labels = both[0].get_legend_handles_labels()
    figure.suptitle("Simulated; servers' links carry an eighth of the workers'", fontsize=10)
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    untyped.close(figure)
