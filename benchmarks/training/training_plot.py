# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the throughput of training by contender, workers, rate and model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

from benchmarks.training.training_models import WORKLOADS
from benchmarks.training.training_report import NAMES

untyped: Any = plt  # its functions are only partly typed

_COLOURS = {
    "switchfold": "#1f77b4",
    "switchfold_sequential": "#9ecae1",
    "gloo_switch": "#b5b5b5",
    "gloo_bridge": "#6e6e6e",
    "ps": "#d95f02",
}
_WIDTH = 0.17


def draw_training(rows: Sequence[dict[str, Any]], machine: dict[str, Any], path: Path) -> None:
    """Write one panel per model and rate: measured and predicted samples/s."""
    several = [row for row in rows if row["num_workers"] > 1]
    models = list(dict.fromkeys(row["model"] for row in several))
    rates = list(dict.fromkeys(row["rate"] for row in several))
    if not several:
        return
    figure, panels = untyped.subplots(
        len(models),
        len(rates),
        figsize=(4.2 * len(rates), 3.4 * len(models) + 0.6),
        squeeze=False,
        layout="constrained",
    )
    for line, model in enumerate(models):
        for column, rate in enumerate(rates):
            own = [row for row in several if (row["model"], row["rate"]) == (model, rate)]
            _draw_panel(panels[line][column], own)
            name = WORKLOADS[model].described.name
            panels[line][column].set_title(f"{name}, {rate / 1e6:g} Mbit/s", fontsize=9)
        panels[line][0].set_ylabel("samples/s of all workers", fontsize=8)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8)
    figure.suptitle(
        f"Training, weights verified ({machine['cpu']}, {machine['cores']} cores,"
        f" {machine['commit']}, busy before {machine['busy_before']})",
        fontsize=10,
    )
    figure.savefig(path, dpi=150)
    untyped.close(figure)


def _draw_panel(axes: Any, rows: Sequence[dict[str, Any]]) -> None:
    numbers = sorted({row["num_workers"] for row in rows})
    alone = {row["num_workers"]: row for row in rows if row["label"] == "alone"}
    for order, (label, colour) in enumerate(_COLOURS.items()):
        own = {row["num_workers"]: row for row in rows if row["label"] == label}
        offset = (order - (len(_COLOURS) - 1) / 2) * _WIDTH
        places = [place + offset for place in range(len(numbers))]
        heights = [own[number]["samples_per_s"] for number in numbers]
        axes.bar(places, heights, 0.92 * _WIDTH, label=NAMES[label], color=colour)
        predicted = [
            (place, height * own[number]["median_s"] / own[number]["predicted_s"])
            for place, height, number in zip(places, heights, numbers, strict=True)
            if own[number]["predicted_s"]
        ]
        if predicted:
            axes.plot(
                *zip(*predicted, strict=True),
                linestyle="none",
                marker="_",
                color="#d62728",
                label="predicted" if label == "ps" else None,
            )
    texts = [
        f"{number} workers\nno exchange: {alone[number]['samples_per_s']:.0f}" for number in numbers
    ]
    axes.set_xticks(range(len(numbers)), texts, fontsize=8)
    axes.tick_params(axis="y", labelsize=8)
