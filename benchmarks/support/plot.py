# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the times of all contenders beside their limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

from benchmarks.support.report import NAMES

untyped: Any = plt  # its functions are only partly typed

_COLOURS = {"switchfold": "#1f77b4", "gloo_switch": "#b5b5b5", "gloo_bridge": "#6e6e6e"}
_WIDTH = 0.27


def draw_allreduce(rows: list[dict[str, Any]], machine: dict[str, Any], path: Path) -> None:
    """Write bars of median seconds for each number of workers; whiskers span all repeats."""
    groups = [
        (f"{row['num_workers']} workers\n{row['ratio']:.2f} times the faster Gloo", row)
        for row in rows
    ]
    draw_bars(groups, NAMES, "Allreduce, every sum verified", machine, path)


def draw_bars(
    groups: Sequence[tuple[str, dict[str, Any]]],
    names: Mapping[str, str],
    title: str,
    machine: dict[str, Any],
    path: Path,
) -> None:
    """Write one bar per group and contender; a group is its label and its series."""
    figure, axes = untyped.subplots(figsize=(8, 4.6), layout="constrained")
    for order, (label, name) in enumerate(names.items()):
        offset = (order - (len(names) - 1) / 2) * _WIDTH
        places = [place + offset for place in range(len(groups))]
        series = [row[label] for _, row in groups]
        medians = [each["median_s"] for each in series]
        below = [each["median_s"] - each["min_s"] for each in series]
        above = [each["max_s"] - each["median_s"] for each in series]
        axes.bar(
            places,
            medians,
            0.92 * _WIDTH,
            yerr=[below, above],
            label=name,
            color=_COLOURS[label],
            error_kw={"elinewidth": 1},
            capsize=3,
        )
        colour = "black" if label == "gloo_switch" else "white"
        for place, each in zip(places, series, strict=True):
            place_in = {"xy": (place, 0), "xytext": (0, 5), "textcoords": "offset points"}
            axes.annotate(_bar_text(each), **place_in, color=colour, fontsize=9, ha="center")
        axes.hlines(
            [each["limit_s"] for each in series],
            [place - _WIDTH / 2 for place in places],
            [place + _WIDTH / 2 for place in places],
            color="#d62728",
            linewidth=1.5,
            label="limit of the links" if order == len(names) - 1 else None,
        )
    axes.set_xticks(range(len(groups)), [text for text, _ in groups])
    axes.set_ylabel("allreduce, s (median; whiskers: all repeats)")
    axes.set_title(
        f"{title} ({machine['cpu']}, {machine['cores']} cores, "
        f"{machine['commit']})\nin the bars: share of the limit; CPU: processor-bound",
        fontsize=10,
    )
    figure.legend(loc="outside lower center", ncols=len(names) + 1)
    figure.savefig(path, dpi=150)
    untyped.close(figure)


def _bar_text(each: dict[str, Any]) -> str:
    return ("CPU\n" if each["is_cpu_bound"] else "") + f"{100 * each['share_of_limit']:.0f} %"
