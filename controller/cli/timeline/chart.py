# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The chart of a window: grants over time, a row for each worker, and queues below.

It is two SVG elements of one height: labels, which stay, and the plot, which may be scrolled.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from typing import Final

from .figures import Steps, replica_backlog, waits_for_grants, waits_for_links, waits_for_places
from .marks import MODEL_HEIGHT, UPDATE_HEIGHT, allreduce_marks, line, rect, transfer_marks
from .records import TransferTimeline
from .window import TimelineWindow, WorkerRow

LABELS_WIDTH: Final = 104
_LEAST_WIDTH: Final = 1120
_MOST_WIDTH: Final = 8000
_WIDTH_OF_TRANSFER: Final = 16
"""Of the plot, for each transfer of the worker with the most."""
_MARGIN: Final = 10
_AXIS: Final = 24
_LANE_GAP: Final = 3
_ROW_GAP: Final = 11
_PANEL: Final = 44
_PANEL_GAP: Final = 16
_TICK_WIDTH: Final = 80
"""Least distance of two ticks."""


@dataclass
class _Drawing:
    """What is drawn so far, from the top down."""

    width: int
    window: TimelineWindow
    top: float = _AXIS
    labels: list[str] = field(default_factory=list[str])
    plot: list[str] = field(default_factory=list[str])

    def x(self, time_s: float) -> float:
        """Return where a time is, at the edge if it is outside the window."""
        share = (self.window.clip(time_s) - self.window.from_s) / self.window.length_s
        return _MARGIN + share * (self.width - 2 * _MARGIN)

    def label(self, y: float, text: str, kind: str = "") -> None:
        """Write a label at the height of something."""
        known = f' class="{kind}"' if kind else ""
        self.labels.append(f'<text x="0" y="{y:g}"{known}>{escape(text)}</text>')

    def rule(self) -> None:
        """Draw a line over the whole width, and go on below."""
        self.plot.append(line(0, self.width, self.top, "rule"))
        self.labels.append(line(0, LABELS_WIDTH, self.top, "rule"))


def chart(timeline: TransferTimeline, window: TimelineWindow) -> str:
    """Return the chart as HTML."""
    most = max((len(row.updates) + len(row.models) for row in window.rows), default=0)
    width = min(_MOST_WIDTH, max(_LEAST_WIDTH, _WIDTH_OF_TRANSFER * most))
    drawing = _Drawing(width, window)
    for row in window.rows:
        _draw_worker(drawing, row)
    _draw_allreduces(drawing, timeline)
    for name, steps, kind in _panels(timeline):
        _draw_panel(drawing, name, steps, kind)
    height = drawing.top + _AXIS
    axes = _axes(drawing, height)
    promotions = _promotions(drawing, timeline, height)
    labels = f'<text x="0" y="14" class="small">seconds</text>{"".join(drawing.labels)}'
    plot = "".join([axes, *drawing.plot, *promotions])
    return (
        f'<div class="chart"><svg class="labels" aria-hidden="true" width="{LABELS_WIDTH}"'
        f' height="{height:g}">{labels}</svg>'
        f'<div class="wide" tabindex="0" role="region" aria-label="Transfers over time">'
        f'<svg role="img" aria-label="A row for each worker; the tables below have the numbers"'
        f' width="{width}" height="{height:g}">{plot}</svg></div></div>'
    )


def _draw_worker(drawing: _Drawing, row: WorkerRow) -> None:
    drawing.rule()
    top = drawing.top + _ROW_GAP / 2
    drawing.label(top + 10, f"worker {row.worker}", "name")
    for lane, transfer in row.updates:
        y = top + lane * (UPDATE_HEIGHT + _LANE_GAP)
        drawing.plot.append(transfer_marks(transfer, y, drawing.x, drawing.window))
    below = top + row.num_update_lanes * (UPDATE_HEIGHT + _LANE_GAP)
    for lane, transfer in row.models:
        y = below + lane * (MODEL_HEIGHT + _LANE_GAP)
        drawing.plot.append(transfer_marks(transfer, y, drawing.x, drawing.window))
    if row.models:
        drawing.label(below + 9, "models", "small")
    models = row.num_model_lanes * (MODEL_HEIGHT + _LANE_GAP)
    drawing.top = max(below + models, top + 14) + _ROW_GAP / 2


def _draw_allreduces(drawing: _Drawing, timeline: TransferTimeline) -> None:
    """Draw one row of all sums of members; nothing if there are none."""
    if not timeline.allreduces and not timeline.failed:
        return
    drawing.rule()
    drawing.label(drawing.top + _ROW_GAP / 2 + 10, "allreduces", "name")
    top = drawing.top + _ROW_GAP / 2
    drawing.plot.append(allreduce_marks(timeline, top, drawing.x, drawing.window))
    drawing.top += UPDATE_HEIGHT + _ROW_GAP


def _panels(timeline: TransferTimeline) -> Iterable[tuple[tuple[str, str], Steps, str]]:
    """Yield numbers over time with their names in two lines and their CSS classes."""
    yield ("updates wait", "for a grant"), waits_for_grants(timeline.updates), "asked"
    yield ("granted, before", "the first byte"), waits_for_links(timeline.updates), "granted"
    yield ("updates wait", "for their place"), waits_for_places(timeline.updates), "placed"
    if timeline.models:
        yield ("models wait", "for a grant"), waits_for_grants(timeline.models), "asked"
    for server in sorted({each.server for each in timeline.replicas}):
        name = f"replica of {server}", "is behind by"
        yield name, replica_backlog(timeline.replicas, server), "copied"


def _draw_panel(drawing: _Drawing, name: tuple[str, str], steps: Steps, kind: str) -> None:
    """Draw a number over time; its axis goes from 0 to the most in the window."""
    window = drawing.window
    first = max(0, bisect.bisect_right(steps.times_s, window.from_s) - 1)
    last = bisect.bisect_right(steps.times_s, window.until_s)
    points = list(zip(steps.times_s[first:last], steps.values[first:last], strict=True))
    most = max((value for _, value in points), default=0)
    drawing.rule()
    top = drawing.top + _PANEL_GAP / 2
    bottom = top + _PANEL
    for number, words in enumerate((*name, f"most: {most}")):
        drawing.label(top + 10 + 14 * number, words, "small")
    path = [f"M{drawing.x(points[0][0] if points else window.from_s):.1f} {bottom:g}"]
    for time_s, value in points:
        y = bottom - _PANEL * value / max(1, most)
        path.append(f"H{drawing.x(time_s):.1f}V{y:.1f}")
    path.append(f"H{drawing.x(window.until_s):.1f}V{bottom:g}")
    drawing.plot.append(f'<path class="{kind}" d="{"".join(path)}"/>')
    drawing.plot.append(line(0, drawing.width, bottom, "base"))
    drawing.top = bottom + _PANEL_GAP / 2


def _axes(drawing: _Drawing, height: float) -> str:
    """Return ticks with their seconds, above and below, and lines between them."""
    window, found = drawing.window, list[str]()
    step_s = tick_step(window.length_s, (drawing.width - 2 * _MARGIN) / _TICK_WIDTH)
    digits = max(0, -_exponent(step_s))
    number = -int(-window.from_s // step_s)
    while number * step_s <= window.until_s:
        x = drawing.x(number * step_s)
        text = f"{number * step_s:.{digits}f}"
        found.append(f'<path class="tick" d="M{x:.1f} {_AXIS - 5}V{height - _AXIS + 5:g}"/>')
        for y in (14, height - 8):
            found.append(f'<text x="{x:.1f}" y="{y:g}" class="time">{text}</text>')
        number += 1
    return "".join(found)


def tick_step(length_s: float, most: float) -> float:
    """Return the least of 1, 2 or 5 times a power of ten with at most so many steps in a time."""
    exponent = _exponent(length_s / max(1.0, most))
    for factor in (1, 2, 5):
        if length_s / (factor * 10.0**exponent) <= most:
            return factor * 10.0**exponent
    return 10.0 ** (exponent + 1)


def _exponent(value: float) -> int:
    """Return the decimal exponent of a number above 0."""
    return int(f"{value:e}".partition("e")[2])


def _promotions(drawing: _Drawing, timeline: TransferTimeline, height: float) -> Iterable[str]:
    for each in timeline.promotions:
        if drawing.window.from_s <= each.time_s <= drawing.window.until_s:
            x = drawing.x(each.time_s)
            text = f"{each.time_s:.3f} s: the replica takes the place of server {each.server}"
            bar = rect((x - 1, x + 1), _AXIS - 4, height - 2 * _AXIS + 8, "promoted")
            yield f"<g><title>{escape(text)}</title>{bar}</g>"
