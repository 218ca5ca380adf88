# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark's picture: times of both ways of summing beside their limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt


def draw_allreduce(rows: list[dict[str, Any]], machine: dict[str, Any], path: Path) -> None:
    """Write bars of median seconds per number of workers; whiskers span all repeats."""
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    width = 0.36
    for offset, label, colour in ((-0.5, "switchfold", "#1f77b4"), (0.5, "gloo", "#999999")):
        places = [place + offset * width for place in range(len(rows))]
        series = [row[label] for row in rows]
        medians = [each["median_s"] for each in series]
        below = [each["median_s"] - each["min_s"] for each in series]
        above = [each["max_s"] - each["median_s"] for each in series]
        name = "Switchfold" if label == "switchfold" else "Gloo ring"
        bars = axes.bar(
            places, medians, width, yerr=[below, above], label=name, color=colour, capsize=3
        )
        shares = [f"{100 * each['share_of_limit']:.0f} %" for each in series]
        axes.bar_label(bars, shares, label_type="center", color="white")
        for place, each in zip(places, series, strict=True):
            is_first = place == places[0] and offset < 0
            axes.hlines(
                each["limit_s"],
                place - width / 2,
                place + width / 2,
                color="black",
                linestyle="--",
                label="physical limit" if is_first else None,
            )
    axes.set_xticks(range(len(rows)), [f"{row['num_workers']} workers" for row in rows])
    axes.set_ylabel("allreduce, s (median)")
    axes.set_title(f"Allreduce, every sum verified ({machine['cpu']}, {machine['cores']} cores)")
    axes.legend()
    figure.savefig(path, dpi=150)
    plt.close(figure)
