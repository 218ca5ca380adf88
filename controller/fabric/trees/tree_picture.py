# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Draws trees: roots on top, hosts at the bottom, busy links thicker."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

from ...api.operator_api import fabric_pb2 as pb
from ...errors import ConfigError
from .tree_text import amount, summary_lines

_COLOURS: Final = (
    "#1f77b4", "#d95f02", "#1b9e77", "#7570b3", "#e7298a", "#66a61e", "#a6761d", "#666666",
)  # fmt: skip
"""Colours of the trees, in turn."""
_KINDS: Final = (".svg", ".png", ".pdf")
_MOST_HOSTS: Final = 40
"""More hosts are drawn as one box per switch."""
_MOST_LABELS: Final = 24
"""Links between switches are labelled with their bytes up to this number of links."""
_LABEL_AT: Final = (0.26, 0.34, 0.42, 0.5, 0.58, 0.66)
"""Places for a label, as shares of a link from its lower end; the lowest free one is taken."""
_LABEL_INCHES: Final = 0.7
"""Labels this far apart do not touch."""
_FREE: Final = 0.99
"""A link carries other traffic if less than this share is free; smaller loads are noise."""
_TREE_GAP: Final = 0.16
"""Distance between the lines of two trees over one link, in widths of a host."""

Places = Mapping[str, tuple[float, float]]


def draw_trees(report: pb.TreeReport, path: Path) -> None:
    """Write the picture; ConfigError for an unknown kind of file, or if it cannot be written."""
    if path.suffix not in _KINDS:
        raise ConfigError(f"{path} does not end in {', '.join(_KINDS)}")
    if not report.trees:
        raise ConfigError("the job runs between the hosts: there is no tree to draw")
    places = _switch_places(report)
    hosts = _host_places(report, places)
    width = max(len(hosts) * 0.62, len(places) * 0.7, 7.5)
    top = max((y for _, y in places.values()), default=0.0)
    height = 2.0 + 1.55 * (top + 1)
    # pyright cannot follow matplotlib's stubs, which leave keywords open.
    figure: Any
    axes: Any
    figure, axes = plt.subplots(figsize=(min(width, 24), height), layout="constrained")
    axes.set_axis_off()
    _draw_links(axes, report, places)
    _draw_hosts(axes, report, places, hosts)
    _draw_switches(axes, report, places)
    axes.set_title("\n".join(_title(report)), fontsize=10, loc="left")
    axes.margins(0.04, 0.1)
    _draw_legend(axes, report)
    _label_links(figure, axes, report, places)
    try:
        figure.savefig(path, dpi=150)
    except OSError as exc:
        raise ConfigError(f"cannot write {path}: {exc.strerror}") from exc
    finally:
        plt.close(figure)


def _title(report: pb.TreeReport) -> list[str]:
    lines = [line.strip() for line in summary_lines(report)]
    shown = lines[:4] if report.trees else lines
    return [line if len(line) < 120 else line[:117] + "..." for line in shown]


def _switch_places(report: pb.TreeReport) -> Places:
    """Return (x, y) of every switch; y is 1 plus its links to the nearest switch with workers."""
    rows: dict[int, list[str]] = defaultdict(list)
    neighbours = _neighbours(report)
    for switch, level in _levels(report, neighbours).items():
        rows[level].append(switch)
    widest = max((_width(report, row) for row in rows.values()), default=1.0)
    places: dict[str, tuple[float, float]] = {}
    for level, row in sorted(rows.items()):
        below = {
            switch: [places[other][0] for other in neighbours[switch] if other in places]
            for switch in row
        }
        if level > 1:
            row.sort(key=lambda switch: (sum(below[switch]) / len(below[switch]), _natural(switch)))
        for position, switch in enumerate(row):
            places[switch] = ((position + 0.5) * widest / len(row), float(level))
    return places


def _natural(name: str) -> tuple[str | int, ...]:
    """Return a key that sorts s2 before s10: text and numbers take turns, text first."""
    return tuple(int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name))


def _neighbours(report: pb.TreeReport) -> Mapping[str, Sequence[str]]:
    """Return by switch the other ends of all links of the trees."""
    found: dict[str, list[str]] = defaultdict(list)
    for tree in report.trees:
        for node in tree.nodes:
            if node.parent:
                found[node.switch].append(node.parent)
                found[node.parent].append(node.switch)
    return found


def _levels(report: pb.TreeReport, neighbours: Mapping[str, Sequence[str]]) -> Mapping[str, int]:
    """Return by switch 1 plus the number of links to the nearest switch with workers."""
    first = report.trees[0].nodes if report.trees else ()
    levels = {node.switch: 1 for node in first if node.workers}
    reached = sorted(levels, key=lambda name: _first_worker(first, name))
    levels = dict.fromkeys(reached, 1)
    for switch in reached:
        for other in neighbours[switch]:
            if other not in levels:
                levels[other] = levels[switch] + 1
                reached.append(other)
    return levels


def _first_worker(nodes: Sequence[pb.ReportedNode], switch: str) -> int:
    return next(node.workers[0].worker_id for node in nodes if node.switch == switch)


def _width(report: pb.TreeReport, row: Sequence[str]) -> float:
    workers = _workers(report)
    return max(float(sum(len(workers.get(switch, ())) for switch in row)), 1.5 * len(row))


def _workers(report: pb.TreeReport) -> Mapping[str, Sequence[pb.ReportedWorker]]:
    """Return the workers by switch; if there are too many, one that stands for all."""
    first = report.trees[0].nodes if report.trees else ()
    found = {node.switch: list(node.workers) for node in first if node.workers}
    if sum(map(len, found.values())) <= _MOST_HOSTS:
        return found
    return {
        switch: [pb.ReportedWorker(host=f"{len(here)}\nhosts")] for switch, here in found.items()
    }


def _host_places(report: pb.TreeReport, places: Places) -> Mapping[tuple[str, str], float]:
    """Return x of every drawn (switch, host), below its switch."""
    found: dict[tuple[str, str], float] = {}
    for switch, workers in _workers(report).items():
        x, y = places[switch]
        row = [place[0] for place in places.values() if place[1] == y]
        span = 0.84 * min((abs(a - x) for a in row if a != x), default=max(len(workers), 1.5))
        for position, worker in enumerate(workers):
            found[switch, worker.host] = x + span * ((position + 0.5) / len(workers) - 0.5)
    return found


def _busiest(report: pb.TreeReport) -> float:
    return max((load.seconds for load in report.loads), default=1.0) or 1.0


def _draw_links(axes: Any, report: pb.TreeReport, places: Places) -> None:
    """Draw every link of every tree, side by side if trees share a link."""
    loads = {(load.sender, load.receiver): load for load in report.loads}
    for (low, high), trees in _links(report, places).items():
        (x_low, y_low), (x_high, y_high) = places[low], places[high]
        load = loads.get((low, high)) or loads[high, low]
        width = 1.0 + 4.0 * load.seconds / _busiest(report)
        for position, index in enumerate(trees):
            offset = (position - (len(trees) - 1) / 2) * _TREE_GAP
            axes.plot(
                [x_low + offset, x_high + offset],
                [y_low, y_high],
                color=_COLOURS[index % len(_COLOURS)],
                linewidth=width / len(trees) ** 0.5,
                alpha=0.75,
                zorder=1,
                solid_capstyle="round",
            )


def _label_links(figure: Any, axes: Any, report: pb.TreeReport, places: Places) -> None:
    """Label every link with its load, at a place without another label."""
    loads = {(load.sender, load.receiver): load for load in report.loads}
    users = _links(report, places)
    if len(users) > _MOST_LABELS:
        return
    figure.draw_without_rendering()  # after this, places are known in inches
    taken: list[tuple[float, float]] = []
    for low, high in users:
        (x_low, y_low), (x_high, y_high) = places[low], places[high]
        spots = [(x_low + at * (x_high - x_low), y_low + at * (y_high - y_low)) for at in _LABEL_AT]
        inches = {spot: tuple(axes.transData.transform(spot) / figure.dpi) for spot in spots}
        gaps = {
            spot: min((math.dist(inches[spot], other) for other in taken), default=math.inf)
            for spot in spots
        }
        clear = [spot for spot in spots if gaps[spot] >= _LABEL_INCHES]
        spot = clear[0] if clear else max(spots, key=lambda spot: gaps[spot])
        taken.append(inches[spot])
        slope = math.atan2(y_high - y_low, x_high - x_low)
        axes.text(
            *spot,
            _load_text(loads.get((low, high)) or loads[high, low]),
            fontsize=7,
            ha="center",
            va="center",
            zorder=3,
            rotation=math.degrees(slope if slope <= math.pi / 2 else slope - math.pi),
            rotation_mode="anchor",
            transform_rotates_text=True,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.9, "pad": 1},
        )


def _links(report: pb.TreeReport, places: Places) -> Mapping[tuple[str, str], Sequence[int]]:
    """Return by (lower switch, upper switch) the trees over the link between them."""
    users: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, tree in enumerate(report.trees):
        for node in tree.nodes:
            if node.parent:
                low, high = sorted((node.switch, node.parent), key=lambda name: places[name][1])
                users[low, high].append(index)
    return users


def _load_text(load: pb.ReportedLoad) -> str:
    text = amount(load.predicted_bytes, "B")
    if load.residual_bits_per_s < _FREE * load.rate_bits_per_s:
        text += f"\nfree {amount(load.residual_bits_per_s, 'bit/s')}"
    return text


def _draw_hosts(
    axes: Any, report: pb.TreeReport, places: Places, hosts: Mapping[tuple[str, str], float]
) -> None:
    by_station = {(load.sender, load.receiver): load for load in report.loads}
    for (switch, host), x in hosts.items():
        x_switch, y_switch = places[switch]
        y = 0.0 if y_switch <= 1 else y_switch - 0.75
        load = by_station.get((host, switch))
        width = 1.0 + 4.0 * load.seconds / _busiest(report) if load else 1.0
        axes.plot(
            [x, x_switch], [y, y_switch], color="#b0b0b0", linewidth=width, zorder=0,
            solid_capstyle="round",
        )  # fmt: skip
        axes.annotate(
            host,
            (x, y),
            fontsize=8,
            ha="center",
            va="center",
            zorder=4,
            bbox={"boxstyle": "round,pad=0.3", "facecolor": "#f4f4f4", "edgecolor": "#808080"},
        )


def _draw_switches(axes: Any, report: pb.TreeReport, places: Places) -> None:
    roots = {tree.nodes[0].switch: index for index, tree in reversed([*enumerate(report.trees)])}
    for switch, (x, y) in places.items():
        colour = _COLOURS[roots[switch] % len(_COLOURS)] if switch in roots else "#303030"
        axes.annotate(
            switch,
            (x, y),
            fontsize=10,
            color="white",
            fontweight="bold",
            ha="center",
            va="center",
            zorder=5,
            bbox={"boxstyle": "square,pad=0.5", "facecolor": colour, "edgecolor": "white"},
        )


def _draw_legend(axes: Any, report: pb.TreeReport) -> None:
    for index, tree in enumerate(report.trees):
        slots = f", {tree.slot_count} slots" if tree.slot_count else ""
        axes.plot(
            [],
            [],
            color=_COLOURS[index % len(_COLOURS)],
            linewidth=4,
            label=f"root {tree.nodes[0].switch}: {tree.share:.0%} of the bytes{slots}",
        )
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.5, 0.0), fontsize=8, frameon=False, ncols=4,
        title="figures: bytes of one allreduce in each direction; width: their time",
        title_fontsize=8,
    )  # fmt: skip
