# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Report of the contention benchmark: rates and slots for each number of jobs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.contention import contention_model

HEADING = (
    f"{'jobs':>4} {'together':>9} {'each':>7} {'min':>7} {'max':>7} | {'slots of each':<13}"
    f" {'on switch':>9} | {'static':>7} {'best effort':>11} | {'busy':>5}   (Mbit/s)"
)


def static_split(content: dict[str, Any], num_jobs: int, slots: int = 0) -> float:
    """Return the static split's bits/s for each job, with equal shares or with `slots` each."""
    return contention_model.static_split(
        1 if slots else num_jobs,
        slots or content["shared_slots"],
        link_bits_per_s=content["link_bits_per_s"],
        round_trip_s=content["round_trip_s"],
        values_per_packet=content["values_per_packet"],
    )


def best_effort(content: dict[str, Any], num_jobs: int, num_workers: int) -> float:
    """Return best effort's bits/s for each job; packets without a slot go to a server."""
    fallback = contention_model.best_effort_fallback(
        num_jobs,
        content["shared_slots"],
        link_bits_per_s=content["link_bits_per_s"],
        round_trip_s=content["round_trip_s"],
        values_per_packet=content["values_per_packet"],
    )
    return contention_model.best_effort(content["link_bits_per_s"], fallback, num_workers)


def describe(content: dict[str, Any]) -> str:
    """Return both tables."""
    slots_wanted = content["fixed"]["slots_wanted"]
    return "\n".join(
        [
            f"links carry {content['link_bits_per_s'] / 1e6:.2f} Mbit/s of values, RTT of "
            f"one packet {1000 * content['round_trip_s']:.2f} ms",
            "\nslot shares adjusted as jobs start and end",
            HEADING,
            *(_row(content, row, 0) for row in content["shared"]["rows"]),
            f"\n{slots_wanted} fixed slots per job, enough for four jobs",
            HEADING,
            *(_row(content, row, slots_wanted) for row in content["fixed"]["rows"]),
            *_paths(content["fixed"]["rows"][-1]["jobs"]),
        ]
    )


def _row(content: dict[str, Any], row: dict[str, Any], slots_wanted: int) -> str:
    number, jobs = row["num_jobs"], row["jobs"]
    rates = [job["bits_per_s"] / 1e6 for job in jobs]
    slots = sorted({job["slots"] for job in jobs if job["is_on_switch"]})
    shown = f"{slots[0]}" if len(slots) == 1 else f"{slots[0]} to {slots[-1]}" if slots else "none"
    split = f"{static_split(content, number, slots_wanted) / 1e6:7.2f}"
    effort = best_effort(content, number, content["workers_per_job"]) / 1e6
    formulas = f"{split} {'' if slots_wanted else f'{effort:.2f}':>11}"
    return (
        f"{number:>4} {sum(rates):9.2f} {statistics.mean(rates):7.2f} {min(rates):7.2f}"
        f" {max(rates):7.2f} | {shown:<13} {sum(job['is_on_switch'] for job in jobs):>9} |"
        f" {formulas} | {100 * row['busy_share']:4.0f}%"
        f"{'' if row['has_settled'] else '   slots still changing'}"
    )


def _paths(jobs: Sequence[dict[str, Any]]) -> list[str]:
    lines: list[str] = []
    for is_on_switch, place in ((True, "on the switch"), (False, "among their hosts")):
        rates = [job["bits_per_s"] / 1e6 for job in jobs if job["is_on_switch"] == is_on_switch]
        if rates:
            lines.append(
                f"of {len(jobs)} jobs {len(rates)} {place}: {statistics.mean(rates):.2f} Mbit/s "
                f"each ({min(rates):.2f} to {max(rates):.2f})"
            )
    return lines
