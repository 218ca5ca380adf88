# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Draws how much faster each contender reaches the target, by setting."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.simulator.contenders import BASELINE, CONTENDERS
from benchmarks.support.plot import untyped

COLOURS = {
    "async-ps": "#7f7f7f",
    "chain": "#bcbd22",
    "sync-ps": "#c7c7c7",
    "ring": "#ff7f0e",
    "planned-allreduce": "#8c564b",
    "switch-allreduce": "#d62728",
    "direct": "#9467bd",
    "estimated": "#c5b0d5",
    "fresh": "#e377c2",
    "hosts": "#a1d99b",
    "hosts-whole": "#31a354",
    "switches": "#6baed6",
    "switches-whole": "#08306b",
    "hosts-relays": "#006d2c",
    "switches-relays": "#e6550d",
    "estimated-switches": "#9ecae1",
    "estimated-relays": "#fdae6b",
    "estimated-relays-apart": "#fdd0a2",
}


def plain_number(value: float, _: object) -> str:
    """Return a tick's label without a power of ten."""
    return f"{value:g}"


def draw_grid(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Write bars of updates/s and of the time to the target, over plain asynchronous PS."""
    cells = list(dict.fromkeys((row["links"], row["computing"]) for row in rows))
    names = list(dict.fromkeys(row["contender"] for row in rows))
    found = {(row["links"], row["computing"], row["contender"]): row["runs"] for row in rows}
    figure, both = untyped.subplots(2, 1, figsize=(11, 7.5), layout="constrained", sharex=True)
    width = 0.85 / len(names)
    for axes, key, is_time in ((both[0], "updates_per_s", False), (both[1], "target_s", True)):
        for order, name in enumerate(names):
            for place, cell in enumerate(cells):
                ratios = _ratios(found[(*cell, name)], found[(*cell, BASELINE)], key, is_time)
                if not ratios:
                    continue
                middle = statistics.median(ratios)
                axes.bar(
                    place + (order - (len(names) - 1) / 2) * width,
                    middle,
                    0.95 * width,
                    yerr=[[middle - min(ratios)], [max(ratios) - middle]],
                    color=COLOURS[name],
                    label=CONTENDERS[name].label if place == 0 else None,
                    error_kw={"elinewidth": 0.8},
                )
        axes.axhline(1.0, color="black", linewidth=0.8)
        axes.set_yscale("log", base=2)
        axes.yaxis.set_major_formatter(plain_number)
        axes.grid(axis="y", alpha=0.3)
    both[0].set_ylabel("updates/s,\ntimes asynchronous PS")
    both[1].set_ylabel("speed to the target loss,\ntimes asynchronous PS")
    both[1].set_xticks(
        range(len(cells)),
        [f"links\n{links}\ncomputing\n{what}" for links, what in cells],
        fontsize=8,
    )
    both[0].set_title("Simulated; median and range over seeds, logarithmic", fontsize=10)
    handles, labels = both[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    untyped.close(figure)


def _ratios(
    runs: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]], key: str, is_time: bool
) -> list[float]:
    pairs = [
        (run[key], other[key])
        for run, other in zip(runs, others, strict=True)
        if run[key] and other[key]
    ]
    return [other / run if is_time else run / other for run, other in pairs]
