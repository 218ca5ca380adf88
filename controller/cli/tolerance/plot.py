# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
# matplotlib leaves its keyword arguments untyped.
"""Draws measured tolerances: for each model, its final metric and the epochs to the target."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

mpl.use("Agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ....hostlib.errors import ToleranceFileError
from ...errors import ConfigError
from .outcome import result_of

KINDS: Final = (".svg", ".png", ".pdf")
_BLUE, _ORANGE, _RED = "#2b6cb0", "#dd6b20", "#c53030"
_GREY, _BAND = "#a0aec0", "#d8edfa"
_MOST_COLUMNS: Final = 2
_WIDTH, _HEIGHT = 5.0, 2.7
_VERDICTS: Final = {
    (True, True): (_BLUE, "o", "equal epochs, equal metric"),
    (True, False): (_ORANGE, "s", "equal epochs, lower metric"),
    (False, True): (_ORANGE, "^", "more epochs, equal metric"),
    (False, False): (_RED, "X", "more epochs, lower metric"),
}


def draw_tolerances(models: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Draw all models of a file of tolerances.

    Raises ConfigError for an unknown kind of file and one that cannot be written, and
    ToleranceFileError for a model without measurements.
    """
    if path.suffix not in KINDS:
        raise ConfigError(f"{path} does not end in {', '.join(KINDS)}")
    columns = min(_MOST_COLUMNS, len(models))
    rows = -(-len(models) // columns)
    figure = Figure(figsize=(_WIDTH * columns, _HEIGHT * rows + 0.5), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat[len(models) :]:
        axes.set_axis_off()
    for axes, (name, entry) in zip(grid.flat, models.items(), strict=False):
        _draw_model(axes, name, entry)
    handles: list[Line2D | Patch] = [
        Line2D([], [], color=colour, marker=mark, linestyle="", label=text)
        for colour, mark, text in _VERDICTS.values()
    ]
    handles += [
        Patch(color=_BAND, label="a standard deviation without loss"),
        Line2D([], [], color=_GREY, linestyle=":", label="target"),
    ]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=columns,
        fontsize=8,
        title="across: tolerated share, and below it the epochs to the target",
        title_fontsize=8,
    )
    figure.supylabel("metric in the end, mean and standard deviation", fontsize=8)
    try:
        with mpl.rc_context({"svg.fonttype": "none"}):
            figure.savefig(path, dpi=120, metadata={"Title": "Tolerated loss by model"})
    except OSError as exc:
        raise ConfigError(f"cannot write {path}: {exc.strerror}") from exc


def _draw_model(axes: Axes, name: str, entry: Mapping[str, Any]) -> None:
    try:
        results = [result_of(fields) for fields in entry["rates"]]
    except (KeyError, TypeError) as exc:
        raise ToleranceFileError(
            f"model {name!r} has no measurements to draw ({exc}); measure it again"
        ) from exc
    places = range(len(results))
    means = [each.mean_metric for each in results]
    whole, deviation = results[0].mean_metric, results[0].deviation or 0.0
    axes.axhspan(whole - deviation, whole + deviation, color=_BAND, linewidth=0)
    axes.axhline(float(entry["target"]), color=_GREY, linestyle=":", linewidth=1)
    axes.plot(places, means, color=_GREY, linewidth=1, zorder=1)
    for place, each in zip(places, results, strict=True):
        verdict = (each.has_equal_epochs, each.has_equal_metric is not False)
        colour, mark, _ = _VERDICTS[verdict]
        axes.errorbar(
            place, each.mean_metric, each.deviation or 0.0,
            color=colour, marker=mark, markersize=5, capsize=3, linestyle="",
        )  # fmt: skip
    ticks = [f"{each.rate:g}\n{each.shown_epochs}" for each in results]
    axes.set_xticks(list(places), ticks, fontsize=7)
    axes.set_title(f"{name}: tolerates {entry['loss']:g}", fontsize=9, loc="left")
    axes.tick_params(axis="y", labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.06, y=0.15)
