# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tables and curves of what was measured, the gain over selective repair first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

HEADING: Final = (
    "| contender | p50, p99 against repair | against TCP | against no loss | p50, ms | p99, ms"
    " | mean, ms | of the link limit | MB | coverage, least | sent again | processor | rounds |\n"
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
)
_MOST_PANELS: Final = 6
_COLOURS: Final = {
    "repair": "#1f77b4",
    "tolerant": "#d62728",
    "all": "#9467bd",
    "server": "#2ca02c",
    "server-tolerant": "#98df8a",
    "shards": "#8c564b",
    "shards-tolerant": "#c49c94",
    "ring": "#7f7f7f",
    "ring-dropping": "#bcbd22",
    "ring-cubic": "#17becf",
    "ring-dctcp": "#e377c2",
    "ps": "#000000",
}


def title_of(condition: str, rows: Mapping[str, Mapping[str, Any]], *, has_traffic: bool) -> str:
    """Return a line on a condition: what was lost by the counters, and the other traffic."""
    shares = [each["lost_share"] for each in rows.values()]
    lost = "nothing was lost"
    if max(shares) > 0:
        lost = f"{100 * min(shares):.2f} to {100 * max(shares):.2f} % of packets were lost"
    if has_traffic:
        rates = [each["traffic_bits_per_s"] / 1e6 for each in rows.values()]
        lost += f"; other traffic had {min(rates):.1f} to {max(rates):.1f} Mbit/s meanwhile"
    return f"condition {condition}: {lost}"


def line_of(title: str, row: Mapping[str, Any]) -> str:
    """Return a contender's line of the table."""
    ratios = row["ratios"]
    return (
        f"| {title} | {_pair(ratios, 'repair')} | {_pair(ratios, 'ring')}"
        f" | {_pair(ratios, 'lossless')} | {1e3 * row['p50_s']:.0f} | {1e3 * row['p99_s']:.0f}"
        f" | {1e3 * row['mean_s']:.0f} | {ratios['limit_p50']:.2f} | {row['link_bytes'] / 1e6:.2f}"
        f" | {row['coverage']:.3f}, {row['least_coverage']:.3f} | {100 * row['sent_again']:.1f} %"
        f" | {100 * row['busy_share']:.0f} % | {row['rounds']} |"
    )


def _pair(ratios: Mapping[str, float | None], what: str) -> str:
    pair = [ratios[f"{what}_p50"], ratios[f"{what}_p99"]]
    return ", ".join("-" if each is None else f"{each:.2f}" for each in pair)


def aims(rows: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[str]:
    """Return what became of the aims that the measured conditions allow to judge."""
    lines: list[str] = []
    for condition in ("0.05", "0.05:up"):
        ratio = _ratio_of_tolerant(rows, condition, "lossless_p99")
        if ratio is not None:
            lines.append(
                f"aim: p99 with tolerance at loss {condition} at most 1.1 of the lossless one:"
                f" {ratio:.2f}, {'met' if ratio <= 1.1 else 'missed'}"
            )
    ratio = _ratio_of_tolerant(rows, "0.01", "ring_p99")
    if ratio is not None:
        lines.append(
            "aim: p99 with tolerance at loss 0.01 at least twice better than TCP's:"
            f" {ratio:.2f}, {'met' if ratio >= 2 else 'missed'}"
        )
    return lines


def _ratio_of_tolerant(
    rows: Mapping[str, Mapping[str, Mapping[str, Any]]], condition: str, name: str
) -> float | None:
    found = rows.get(condition, {}).get("tolerant")
    return None if found is None else found["ratios"][name]


def shares(times: Sequence[float]) -> tuple[Any, Any]:
    """Return the points of the share of rounds that ended within a time."""
    ordered = np.sort(np.asarray(times))
    return ordered, np.arange(1, ordered.size + 1) / ordered.size


def draw(
    times: Mapping[str, Mapping[str, Sequence[float]]], titles: Mapping[str, str], path: Path
) -> None:
    """Write the distribution of round times, a panel for each condition."""
    from matplotlib import ticker  # noqa: PLC0415 - takes time to load

    from benchmarks.support.plot import untyped  # noqa: PLC0415

    conditions = list(times)[:_MOST_PANELS]
    columns = min(3, len(conditions))
    lines = -(-len(conditions) // columns)
    figure, panels = untyped.subplots(
        lines,
        columns,
        figsize=(4.2 * columns, 3.2 * lines),
        squeeze=False,
        sharex=True,
        sharey=True,
        layout="constrained",
    )
    for axes in panels.flat[len(conditions) :]:
        axes.set_axis_off()
    for axes, condition in zip(panels.flat, conditions, strict=False):
        for name, seconds in times[condition].items():
            if not seconds:
                continue
            places, share = shares(seconds)
            axes.step(
                [*places[:1], *places],
                [0, *share],
                where="post",
                label=titles[name],
                color=_COLOURS[name],
                linewidth=1.4,
            )
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("")
        axes.set_title(f"loss {condition}", fontsize=10)
        axes.grid(alpha=0.3, which="both")
    for axes in panels[-1]:
        axes.set_xlabel("seconds of a sum")
    for axes in panels[:, 0]:
        axes.set_ylabel("share of rounds")
    found: dict[str, Any] = {}
    for axes in panels.flat:
        handles, labels = axes.get_legend_handles_labels()
        found.update(zip(labels, handles, strict=True))
    ordered = [title for title in titles.values() if title in found]
    figure.legend(
        [found[title] for title in ordered],
        ordered,
        loc="outside lower center",
        ncols=3,
        fontsize=8,
    )
    figure.savefig(path, dpi=110)
    untyped.close(figure)
