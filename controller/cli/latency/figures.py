# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The figures of the report, as SVG texts."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any, Final

import matplotlib as mpl

mpl.use("Agg")
import numpy as np
from matplotlib.figure import Figure

from .statistics import PARTS, Numbers, PartSummary, Windows

_SIZE: Final = (6.2, 3.4)
_POINTS: Final = 600
"""Most points of a curve."""
_COLOURS: Final = dict(
    zip(
        PARTS.values(),
        ("#4477aa", "#66ccee", "#ee6677", "#ccbb44", "#228833", "#aa3377", "#bbbbbb"),
        strict=True,
    )
)
_KINDS: Final = {
    "push": "#ee6677",
    "pull": "#4477aa",
    "hot push": "#ccbb44",
    "hot pull": "#66ccee",
    "all": "#bbbbbb",
}
_STYLE: Final = {
    "font.size": 9.0,
    "svg.fonttype": "none",
    "svg.hashsalt": "switchfold",
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def _figure(draw: Callable[[Any], None], size: tuple[float, float] = _SIZE) -> str:
    # pyright cannot follow matplotlib's stubs, which leave keywords open.
    library: Any = mpl
    with library.rc_context(_STYLE):
        figure: Any = Figure(figsize=size, layout="constrained")
        draw(figure.add_subplot())
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def _curve(values: Numbers) -> tuple[Numbers, Numbers]:
    """Return places and shares of a cumulative distribution."""
    shares = np.linspace(0, 1, min(_POINTS, max(2, values.size)))
    return np.quantile(values, shares), shares


def distributions(values: dict[str, Numbers], label: str, *, is_log: bool = True) -> str:
    """Return cumulative distributions by kind of requests."""

    def draw(axes: Any) -> None:
        for name, found in values.items():
            if found.size:
                places, shares = _curve(np.maximum(found, 1) if is_log else found)
                axes.step(places, shares, where="post", label=name, color=_KINDS.get(name))
        if is_log:
            axes.set_xscale("log")
        axes.set(xlabel=label, ylabel="share of requests", ylim=(0, 1.02))
        axes.legend(frameon=False)
        axes.grid(alpha=0.3)

    return _figure(draw)


def stacked_parts(parts: dict[str, list[PartSummary]]) -> str:
    """Return a bar of parts by kind of requests, each of 100 %."""

    def draw(axes: Any) -> None:
        names = [name for name, found in parts.items() if found][::-1]  # the first one on top
        left = np.zeros(len(names))
        for index, part in enumerate(PARTS.values()):
            shares = np.array([100 * parts[name][index].share for name in names])
            if shares.any():
                axes.barh(names, shares, left=left, label=part, color=_COLOURS[part], height=0.55)
            for row, share in enumerate(shares):
                if share >= 6:
                    axes.text(left[row] + share / 2, row, f"{share:.0f}", ha="center", va="center")
            left += shares
        axes.set(xlabel="share of the time of all requests (%)", xlim=(0, 100))
        axes.legend(frameon=False, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))

    return _figure(draw, (6.2, 2.6))


def interval_histogram(intervals: dict[str, Numbers]) -> str:
    """Return histograms over logarithms of the intervals."""

    def draw(axes: Any) -> None:
        most = max((found.max() for found in intervals.values() if found.size), default=1)
        edges = np.geomspace(1, max(10, most), 60)
        for name, found in intervals.items():
            axes.hist(
                np.maximum(found, 1),
                edges,
                histtype="step",
                label=name,
                color=_KINDS.get(name),
            )
        axes.set_xscale("log")
        axes.set(xlabel="time since the request before (µs)", ylabel="requests")
        axes.legend(frameon=False)
        axes.grid(alpha=0.3)

    return _figure(draw)


def concurrency(windows: dict[int, Windows], senders: str, window_us: int) -> str:
    """Return the distribution of senders per window, by server."""

    def draw(axes: Any) -> None:
        for server, found in windows.items():
            shares = np.arange(1, found.counts.size + 1) / found.counts.size
            counts = np.sort(found.counts)
            last = np.flatnonzero(np.r_[counts[1:] != counts[:-1], True])
            axes.step(
                np.r_[counts[0], counts[last]],
                np.r_[0, shares[last]],
                where="post",
                label=f"server {server}",
            )
        axes.set(
            xlabel=f"different {senders} in {window_us} µs",
            ylabel="share of windows with requests",
            ylim=(0, 1.02),
        )
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.legend(frameon=False)
        axes.grid(alpha=0.3)

    return _figure(draw)


def skew(totals: Numbers) -> str:
    """Return the share of all updates that the most updated parameters have."""

    def draw(axes: Any) -> None:
        running = np.cumsum(totals) / totals.sum()
        ranks = np.unique(np.geomspace(1, totals.size, _POINTS).astype(np.int64))
        axes.plot(ranks, running[ranks - 1], color="#228833")
        axes.set_xscale("log")
        axes.set(
            xlabel="parameters, the most updated first",
            ylabel="share of all updates",
            ylim=(0, 1.02),
        )
        axes.grid(alpha=0.3)

    return _figure(draw)


def load_over_time(
    load: dict[int, tuple[Numbers, Numbers, Numbers]], index: int, label: str
) -> str:
    """Return processors in use (1) or memory (2) of each server over time."""

    def draw(axes: Any) -> None:
        for server, found in load.items():
            at_s, values = found[0], found[index]
            thin = slice(None, None, -(-at_s.size // _POINTS) or 1)
            axes.plot(at_s[thin], values[thin], marker=".", label=f"server {server}")
        axes.set(xlabel="time since the server's first sample (s)", ylabel=label)
        axes.set_ylim(0, 1.1 * max(found[index].max() for found in load.values()) or 1)
        axes.legend(frameon=False)
        axes.grid(alpha=0.3)

    return _figure(draw)


def load_over_scale(names: Sequence[str], processors: Sequence[float]) -> str:
    """Return the mean of processors in use of a server, by run."""

    def draw(axes: Any) -> None:
        axes.bar(names, processors, color="#4477aa", width=0.5)
        axes.set(xlabel="workers, servers", ylabel="processors in use by a server (mean)")

    return _figure(draw)
