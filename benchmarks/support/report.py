# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Report of the allreduce benchmark: a block of lines for each number of workers."""

from __future__ import annotations

from typing import Any

NAMES = {
    "switchfold": "Switchfold",
    "gloo_switch": "Gloo, same switch",
    "gloo_bridge": "Gloo, kernel bridge",
}
"""Contenders in the order of the rows and bars."""
PEERS = ("gloo_switch", "gloo_bridge")
HEADING = (
    f"{'workers, contender':<29} {'median':>7} {'min':>7} {'max':>7} {'limit':>7} {'share':>6} |"
    f" {'CPU s: workers':>14} {'switch':>6} {'busy':>5}"
)


def compare(row: dict[str, Any]) -> dict[str, Any]:
    """Return the ratios of a row: against the faster Gloo, which is the one to quote, and each.

    A ratio is Gloo's median divided by Switchfold's.
    """
    faster = min(PEERS, key=lambda peer: row[peer]["median_s"])
    ours = row["switchfold"]
    return {
        "faster_gloo": faster,
        "ratio": row[faster]["median_s"] / ours["median_s"],
        "ratios": {peer: row[peer]["median_s"] / ours["median_s"] for peer in PEERS},
        "ratio_of_limits": row[faster]["limit_s"] / ours["limit_s"] if ours["limit_s"] else 0.0,
    }


def series_line(first: str, name: str, each: dict[str, Any]) -> str:
    """Return one contender's line under HEADING."""
    return (
        f"{first:>7}  {name:<20} {each['median_s']:7.3f} {each['min_s']:7.3f}"
        f" {each['max_s']:7.3f} {each['limit_s']:7.3f} {100 * each['share_of_limit']:5.1f}% |"
        f" {each['worker_cpu_s']:14.2f} {each['switch_cpu_s']:6.2f}"
        f" {100 * each['busy_share']:4.0f}%"
    )


def bound_lines(row: dict[str, Any], names: dict[str, str]) -> list[str]:
    """Return a line that names the contenders limited by the processor, if there are any."""
    bound = [name for label, name in names.items() if row[label]["is_cpu_bound"]]
    if not bound:
        return []
    return [
        f"{'':>9}CPU-bound (over 90 % of all cores busy, or the switch over 75 % of one): "
        f"{'; '.join(bound)}: may measure this processor, not the links"
    ]


def chunk_costs(row: dict[str, Any]) -> dict[str, float]:
    """Return the processor time of one chunk in microseconds, from a row with `num_chunks`.

    `worker_us`: at one worker, sent and received; `switch_us`: in the switch, per contribution.
    """
    passed = row["num_chunks"] * row["num_workers"]
    ours = row["switchfold"]
    return {
        "worker_us": 1e6 * ours["worker_cpu_s"] / passed,
        "switch_us": 1e6 * ours["switch_cpu_s"] / passed,
    }


def describe_row(row: dict[str, Any]) -> str:
    """Return the block of one number of workers; `row` also holds the result of `compare`."""
    lines: list[str] = []
    for label, name in NAMES.items():
        number = row["num_workers"] if label == "switchfold" else ""
        lines.append(series_line(str(number), name, row[label]))
    other = next(peer for peer in PEERS if peer != row["faster_gloo"])
    lines.append(
        f"{'':>9}{row['ratio']:.2f} times the faster Gloo ({NAMES[row['faster_gloo']][6:]}), "
        f"{row['ratios'][other]:.2f} times the other"
    )
    if row["ratio_of_limits"]:
        lines[-1] += f"; {row['ratio_of_limits']:.2f} if all were at their limits"
    if "num_chunks" in row:
        costs = chunk_costs(row)
        lines.append(
            f"{'':>9}processor time of a chunk: {costs['worker_us']:.1f} us at a worker, sent and "
            f"received; {costs['switch_us']:.1f} us in the switch for each contribution"
        )
    lines += bound_lines(row, NAMES)
    return "\n".join(lines)
