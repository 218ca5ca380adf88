# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Draws how many times fewer bytes reach a server's host, by how many updates are merged."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.scheduler.group_figures import KINDS, Compression
from benchmarks.support.plot import untyped

COLOURS: Final = {"switch": "#e6550d", "hosts": "#31a354"}


def draw_compression(found: Sequence[Compression], path: Path) -> None:
    """Write a point for each number of members, with the range over rounds, and the ideal."""
    figure, axes = untyped.subplots(figsize=(7, 4.6), layout="constrained")
    for kind in COLOURS:
        rows = [each for each in found if each.kind == kind]
        if not rows:
            continue
        members = [each.num_members for each in rows]
        medians = [statistics.median(each.measured) for each in rows]
        below = [m - min(each.measured) for m, each in zip(medians, rows, strict=True)]
        above = [max(each.measured) - m for m, each in zip(medians, rows, strict=True)]
        axes.plot(members, [each.ideal for each in rows], "--", color=COLOURS[kind], linewidth=1)
        axes.errorbar(
            members,
            medians,
            yerr=[below, above],
            fmt="o",
            color=COLOURS[kind],
            label=KINDS[kind],
            capsize=3,
        )
    axes.plot([], [], "--", color="black", linewidth=1, label="full packets, nothing sent again")
    axes.set_xlabel("updates in a sum")
    axes.set_ylabel("times fewer bytes into the server's host")
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    untyped.close(figure)
