# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Draws published curves as points, and what the project's models give as lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.simulator import published
from benchmarks.simulator.grid_plot import plain_number
from benchmarks.support.plot import untyped
from switchfold.controller.cli.workloads.zipf import ZipfRanks

_COLOURS = {
    "PS, no overlap": "#d62728",
    "PS, overlap": "#ff7f0e",
    "two-way, overlap": "#1f77b4",
    "switch, overlap": "#2ca02c",
    "best of three, overlap": "#9467bd",
}
_POINTS = {
    "Poseidon": "two-way, overlap",
    "overlap only": "PS, overlap",
    "Caffe with PS": "PS, no overlap",
}
"""By published curve, the strategy of ours that it is compared with."""


def draw_shapes(
    curves: Mapping[int, Mapping[str, Sequence[float]]],
    inception: Mapping[str, Sequence[float]],
    rates: Mapping[str, Sequence[float]],
    libra: Mapping[float, float],
    path: Path,
) -> None:
    """Write six charts: Poseidon's three, SwitchML's rates, coverage of hot keys, Libra's range.

    `libra` has by share of hot updates how many times fewer a server's writes are.
    """
    figure, charts = untyped.subplots(3, 2, figsize=(11, 12.5), layout="constrained")
    for axes, (rate, found) in zip(charts[0], curves.items(), strict=True):
        _draw_poseidon(axes, rate, found)
    _draw_inception(charts[1][0], inception)
    _draw_switchml(charts[1][1], rates)
    _draw_hot_keys(charts[2][0])
    _draw_libra(charts[2][1], libra)
    figure.suptitle("Lines: models of this project. Points: published figures.", fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    untyped.close(figure)


def _draw_poseidon(axes: Any, rate: int, found: Mapping[str, Sequence[float]]) -> None:
    nodes = published.POSEIDON_NODES
    _draw_curves(axes, found)
    if rate == 40:
        for name, values in published.POSEIDON_CURVES.items():
            axes.plot(nodes, values, "o", color=_COLOURS[_POINTS[name]], label=f"published: {name}")
    else:
        _draw_point(axes, 16, published.POSEIDON_10G.value, "two-way, overlap", "Poseidon")
    _finish_speed_ups(axes, f"VGG19-22K, {rate} GbE")


def _draw_inception(axes: Any, found: Mapping[str, Sequence[float]]) -> None:
    _draw_curves(axes, found)
    _draw_point(axes, 32, published.POSEIDON_INCEPTION.value, "two-way, overlap", "Poseidon")
    _draw_point(axes, 32, published.TENSORFLOW_INCEPTION.value, "PS, no overlap", "TensorFlow")
    _finish_speed_ups(axes, "Inception-V3; ours at 40 GbE, computing time assumed")


def _draw_curves(axes: Any, found: Mapping[str, Sequence[float]]) -> None:
    for name, values in found.items():
        style = "--" if name == "best of three, overlap" else "-"
        axes.plot(published.POSEIDON_NODES, values, style, color=_COLOURS[name], label=name)


def _draw_point(axes: Any, nodes: int, value: float, ours: str, name: str) -> None:
    axes.plot([nodes], [value], "o", color=_COLOURS[ours], label=f"published: {name}")


def _finish_speed_ups(axes: Any, title: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(plain_number)
    axes.set_xlabel("nodes")
    axes.set_ylabel("speed-up over one node")
    axes.set_title(title, fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)


def _draw_switchml(axes: Any, rates: Mapping[str, Sequence[float]]) -> None:
    workers = published.SWITCHML_WORKERS
    axes.plot(workers, [each / 1e9 for each in rates["switch"]], label="switch, limit", color="C2")
    axes.plot(workers, [each / 1e9 for each in rates["ring"]], label="ring, limit", color="C3")
    for values, label, colour in (
        (published.SWITCHML_ELEMENTS_PER_S, "published: SwitchML", "C2"),
        (published.NCCL_ELEMENTS_PER_S, "published: NCCL's ring", "C3"),
    ):
        axes.plot(workers, [each / 1e9 for each in values], "o", color=colour, label=label)
    axes.set_xscale("log", base=2)
    axes.set_xticks(workers)
    axes.xaxis.set_major_formatter(plain_number)
    axes.set_ylim(0, 3.2)
    axes.set_xlabel("workers")
    axes.set_ylabel("billion float32 values/s of a worker")
    axes.set_title("Sums at 100 Gbit/s", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)


def _draw_hot_keys(axes: Any) -> None:
    counts = np.unique(np.geomspace(10, 800_000, 60).astype(int))
    for number, (name, (keys, share, exponent)) in enumerate(published.HOT_SHARES.items()):
        ranks = ZipfRanks(keys, exponent)
        shares = [100 * ranks.share(int(count)) for count in counts]
        axes.plot(counts, shares, color=f"C{number}", label=f"{name}: Zipf, exponent {exponent}")
        axes.plot(
            [published.HOT_KEYS],
            [100 * share],
            "o",
            color=f"C{number}",
            label=f"published: {name}",
        )
    axes.set_xscale("log")
    axes.set_xlabel("hottest parameters")
    axes.set_ylabel("share of all updates, %")
    axes.set_title("Hot parameters", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)


def _draw_libra(axes: Any, libra: Mapping[float, float]) -> None:
    least, most = published.LIBRA_RANGE
    axes.axhspan(least, most, color="C0", alpha=0.2, label="published: Libra, faster by")
    axes.plot([100 * share for share in libra], libra.values(), color="C1", label="fewer writes")
    for name, (_, share, _) in published.HOT_SHARES.items():
        axes.axvline(100 * share, color="0.5", linestyle=":")
        axes.annotate(name, (100 * share, 1.05), rotation=90, fontsize=7)
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter(plain_number)
    axes.set_xlabel("share of updates that are hot, %")
    axes.set_ylabel("times")
    axes.set_title("A server's writes, hot rows in the switch; no time", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
