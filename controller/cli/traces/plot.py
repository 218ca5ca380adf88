# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Draws traces: for each rank a row of computing, and rows of tensors on the network."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.patches import Patch

from ....hostlib.tracing.timeline import Span, Transfer
from ....hostlib.tracing.trace_files import assign_rows
from ...errors import ConfigError
from .alignment import RankEvents, Trace
from .summary import summarize

_KINDS: Final = (".svg", ".png", ".pdf")
_COLOURS: Final[Mapping[str, str]] = {
    "forward": "#1b9e77",
    "backward": "#d95f02",
    "wait": "#dddddd",
    "other": "#7570b3",
    "waits to be sent": "#c6dbef",
    "on the network": "#4292c6",
    "is converted": "#9e9ac8",
    "failed": "#de2d26",
}
_LABELS: Final[Mapping[str, str]] = {
    "forward": "forward pass",
    "backward": "backward pass",
    "wait": "waits",
    "other": "other computing",
    "waits to be sent": "ready, not sent",
    "on the network": "first packet to last result",
    "is converted": "last result to done",
    "failed": "failed",
}
_ROW: Final = 0.8
"""Height of a bar; rows are 1 apart."""
_RANK_GAP: Final = 0.6
_MOST_DEPTH: Final = 3
"""Spans that are nested deeper are not drawn."""
_LABEL_SHARE: Final = 0.035
"""Share of the picture's width that a bar needs for each 4 letters of its text."""

_EDGE_SHARE: Final = 0.004
"""Share of the picture's width above which a bar has a white edge."""


def draw_trace(
    trace: Trace, path: Path, *, begin_s: float = 0.0, end_s: float | None = None
) -> None:
    """Write a picture of what happened between two moments, counted from the first event.

    Raises ConfigError for an unknown kind of file, a file that cannot be written, and an empty
    period.
    """
    if path.suffix not in _KINDS:
        raise ConfigError(f"{path} does not end in {', '.join(_KINDS)}")
    last_s = max(events.end_s for events in trace.ranks)
    until_s = last_s if end_s is None else min(end_s, last_s)
    if not begin_s < until_s:
        raise ConfigError(
            f"nothing lies between {begin_s:g} and {until_s:g} s: the trace ends at {last_s:.3f} s"
        )
    picture = _Picture(begin_s, until_s)
    for events in trace.ranks:
        picture.add_rank(events)
    picture.finish(trace)
    try:
        # Text stays text in an SVG: it can be searched, and read aloud.
        settings: Any = mpl
        with settings.rc_context({"svg.fonttype": "none"}):
            picture.figure.savefig(path, dpi=150, metadata={"Title": picture.title})
    except OSError as exc:
        raise ConfigError(f"cannot write {path}: {exc.strerror}") from exc
    finally:
        plt.close(picture.figure)


class _Picture:
    """Rows from top to bottom; the y axis points down."""

    def __init__(self, begin_s: float, end_s: float) -> None:
        # pyright cannot follow matplotlib's stubs, which leave keywords open.
        self.figure: Any
        self._axes: Any
        self.figure, self._axes = plt.subplots(figsize=(12, 4), layout="constrained")
        self._begin_s = begin_s
        self._end_s = end_s
        self._y = 0.0
        self._ticks: list[tuple[float, str]] = []
        self._used: set[str] = set()
        self.title = ""

    def add_rank(self, events: RankEvents) -> None:
        """Add the rows of one rank."""
        spans = [span for span in events.spans if self._is_shown(span.begin_s, span.end_s)]
        transfers = [each for each in events.transfers if self._is_shown(each.ready_s, each.done_s)]
        if not spans and not transfers:
            return
        summary = summarize(replace(events, spans=tuple(spans), transfers=tuple(transfers)))
        if self._ticks:
            self._axes.axhline(self._y - (1 + _RANK_GAP) / 2, color="#999999", linewidth=0.8)
        depths = _depths(spans)
        rows = assign_rows([(each.ready_s, each.done_s) for each in transfers])
        share = f", {100 * summary.overlap_share:.0f} % hidden" if transfers else ""
        for depth in range(max(depths, default=-1) + 1):
            self._ticks.append(
                (self._y + depth, f"rank {events.rank}: compute" if not depth else "")
            )
        for span, depth in zip(spans, depths, strict=True):
            kind = span.category if span.category in _COLOURS else "other"
            self._bar(self._y + depth, span.begin_s, span.end_s, kind, span.name)
        self._y += max(depths, default=-1) + 1
        for row in range(max(rows, default=-1) + 1):
            name = f"rank {events.rank}: network{share}" if not row else ""
            self._ticks.append((self._y + row, name))
        for each, row in zip(transfers, rows, strict=True):
            self._transfer(self._y + row, each)
        self._y += max(rows, default=-1) + 1 + _RANK_GAP

    def _transfer(self, y: float, each: Transfer) -> None:
        """Draw the three parts of a transfer, as far as they happened."""
        moments = [each.ready_s]
        for moment in (each.first_packet_s, each.last_result_s, each.done_s):
            moments.append(moments[-1] if math.isnan(moment) else moment)
        kinds = ("waits to be sent", "on the network", "is converted")
        for kind, begin_s, end_s in zip(kinds, moments[:3], moments[1:], strict=True):
            self._bar(y, begin_s, end_s, "failed" if each.error else kind, "")
        self._text(y, each.ready_s, each.done_s, f"{each.name}\n{_size(each.num_bytes)}")

    def _is_shown(self, begin_s: float, end_s: float) -> bool:
        return begin_s < self._end_s and end_s > self._begin_s

    def _bar(self, y: float, begin_s: float, end_s: float, kind: str, text: str) -> None:
        self._used.add(kind)
        # A white edge would hide a bar that is hardly wider than the edge.
        is_wide = end_s - begin_s > _EDGE_SHARE * (self._end_s - self._begin_s)
        self._axes.broken_barh(
            [(1e3 * begin_s, 1e3 * (end_s - begin_s))],
            (y - _ROW / 2, _ROW),
            facecolors=_COLOURS[kind],
            edgecolor="white" if is_wide else _COLOURS[kind],
            linewidth=0.5,
        )
        if text:
            self._text(y, begin_s, end_s, text)

    def _text(self, y: float, begin_s: float, end_s: float, text: str) -> None:
        """Write a text into a bar if there is room."""
        begin_s, end_s = max(begin_s, self._begin_s), min(end_s, self._end_s)
        room = (end_s - begin_s) / (self._end_s - self._begin_s)
        width = max(len(line) for line in text.splitlines())
        if room < _LABEL_SHARE * width / 4:
            return
        middle_ms = 1e3 * (begin_s + end_s) / 2
        self._axes.text(middle_ms, y, text, ha="center", va="center", fontsize=7, clip_on=True)

    def finish(self, trace: Trace) -> None:
        """Set axes, legend and title."""
        axes = self._axes
        self.figure.set_figheight(min(1.5 + 0.42 * (self._y + 1), 30))
        axes.set_xlim(1e3 * self._begin_s, 1e3 * self._end_s)
        axes.set_ylim(self._y - _RANK_GAP, -0.7)
        axes.set_yticks([y for y, _ in self._ticks], [text for _, text in self._ticks], fontsize=8)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("ms since the first event", fontsize=9)
        axes.grid(axis="x", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        jobs = sorted({events.job for events in trace.ranks if events.job})
        self.title = f"{', '.join(jobs) or 'trace'}: {len(trace.ranks)} ranks"
        if len(trace.ranks) > 1:
            self.title += f", aligned by {trace.alignment}"
        axes.set_title(self.title, fontsize=10, loc="left")
        handles: list[Any] = [
            Patch(color=colour, label=_LABELS[kind])
            for kind, colour in _COLOURS.items()
            if kind in self._used
        ]
        self.figure.legend(
            handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8
        )


def _depths(spans: Sequence[Span]) -> list[int]:
    """Return the nesting depth of each span; spans come in the order in which they began."""
    depths: list[int] = []
    open_ends_s: list[float] = []
    for span in spans:
        while open_ends_s and open_ends_s[-1] <= span.begin_s:
            open_ends_s.pop()
        depths.append(min(len(open_ends_s), _MOST_DEPTH - 1))
        open_ends_s.append(span.end_s)
    return depths


def _size(num_bytes: int) -> str:
    for unit, factor in (("MB", 10**6), ("kB", 10**3)):
        if num_bytes >= factor:
            return f"{num_bytes / factor:.3g} {unit}"
    return f"{num_bytes} B"
