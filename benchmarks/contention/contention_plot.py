# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Draws goodput per job and of all jobs, beside the formulas."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from benchmarks.contention.contention_report import best_effort, static_split
from benchmarks.support.plot import untyped

_SERIES = (
    ("shared", "adjusted slot shares", "o", "#1f77b4"),
    ("fixed", "fixed slots", "s", "#2ca02c"),
)


def draw_contention(content: dict[str, Any], path: Path) -> None:
    """Write two charts against the number of jobs: goodput of each job, and of all together."""
    figure, (each, together) = untyped.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
    most = max(row["num_jobs"] for row in content["shared"]["rows"])
    numbers = range(1, most + 1)
    workers = content["workers_per_job"]
    curves = [
        ("static split of the slots", "-", "#d62728", [static_split(content, n) for n in numbers]),
        (
            f"best effort, {workers} workers",
            "--",
            "#ff7f0e",
            [best_effort(content, n, workers) for n in numbers],
        ),
        ("best effort, 8 workers", ":", "#ff7f0e", [best_effort(content, n, 8) for n in numbers]),
    ]
    for label, style, colour, rates in curves:
        each.plot(numbers, [r / 1e6 for r in rates], style, color=colour, label=label)
        totals = [n * r / 1e6 for n, r in zip(numbers, rates, strict=True)]
        together.plot(numbers, totals, style, color=colour)
    for key, label, marker, colour in _SERIES:
        rows = content[key]["rows"]
        _draw_jobs(each, rows, label, marker, colour)
        totals = [sum(job["bits_per_s"] for job in row["jobs"]) / 1e6 for row in rows]
        together.plot([row["num_jobs"] for row in rows], totals, marker, color=colour)
    for axes, what in ((each, "of each job"), (together, "of all jobs together")):
        axes.set_xlabel("jobs on the switch")
        axes.set_ylabel(f"goodput {what}, Mbit/s of values")
        axes.set_xticks(sorted({row["num_jobs"] for row in content["shared"]["rows"]}))
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    machine = content["machine"]
    figure.suptitle(
        f"{content['shared_slots']} slots shared, RTT "
        f"{1000 * content['round_trip_s']:.1f} ms, every sum verified "
        f"({machine['cpu']}, {machine['cores']} cores, {machine['commit']})",
        fontsize=10,
    )
    figure.legend(loc="outside lower center", ncols=3, fontsize=9)
    figure.savefig(path, dpi=150)
    untyped.close(figure)


def _draw_jobs(axes: Any, rows: list[dict[str, Any]], label: str, marker: str, colour: str) -> None:
    for is_on_switch, suffix, filled in ((True, "", colour), (False, ", host allreduce", "none")):
        points = [
            (
                row["num_jobs"],
                [
                    job["bits_per_s"] / 1e6
                    for job in row["jobs"]
                    if job["is_on_switch"] == is_on_switch
                ],
            )
            for row in rows
        ]
        points = [(number, rates) for number, rates in points if rates]
        if not points:
            continue
        means = [statistics.mean(rates) for _, rates in points]
        below = [mean - min(rates) for mean, (_, rates) in zip(means, points, strict=True)]
        above = [max(rates) - mean for mean, (_, rates) in zip(means, points, strict=True)]
        axes.errorbar(
            [number for number, _ in points],
            means,
            yerr=[below, above],
            fmt=marker,
            color=colour,
            markerfacecolor=filled,
            capsize=3,
            label=f"measured, {label}{suffix}",
        )
