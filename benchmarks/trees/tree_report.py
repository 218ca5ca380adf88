# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Report of the tree benchmark: times of each fabric, then bytes of each link."""

from __future__ import annotations

from typing import Any

from benchmarks.support import link_check, report

NAMES = {"switchfold": "Switchfold", "gloo_switch": "Gloo, same switches"}
HEADING = report.HEADING.replace("workers, contender", "fabric, contender ")


def describe_row(row: dict[str, Any]) -> str:
    """Return the block of one fabric."""
    lines = [
        report.series_line(
            row["fabric"].replace("-", " ") if label == "switchfold" else "", name, row[label]
        )
        for label, name in NAMES.items()
    ]
    lines.append(
        f"{'':>9}{row['ratio']:.2f} times Gloo; {row['ratio_of_limits']:.2f} if both were at their "
        f"limits ({row['spread_ring_limit_s'] / row['switchfold']['limit_s']:.2f} if the ring's "
        "streams could be split over all uplinks)"
    )
    lines.append(
        f"{'':>9}{row['trees']} tree{'s' if row['trees'] > 1 else ''}, {row['slots']} slots, "
        f"window {row['window']} chunks; bytes per link within "
        f"{100 * abs(row['largest_difference']):.2f} % of the prediction"
    )
    return "\n".join(lines + report.bound_lines(row, NAMES))


def describe_links(row: dict[str, Any]) -> str:
    """Return the bytes of each direction of a link for one Switchfold allreduce, and Gloo's."""
    lines = [
        f"{row['fabric'].replace('-', ' ')}, bytes of one allreduce: "
        f"{'link':<9} {'predicted':>11} {'measured':>11} {'differ':>7} | {'Gloo':>11}"
    ]
    indent = " " * (len(lines[0]) - 54)
    for each in row["links"]:
        difference = each["measured"] / each["predicted"] - 1
        lines.append(
            f"{indent}{each['link']:<9} {each['predicted']:11.0f} {each['measured']:11.0f} "
            f"{100 * difference:+6.2f}% | {row['gloo_bytes'][each['link']]:11.0f}"
        )
    verdict = "met" if abs(row["largest_difference"]) <= link_check.AGREEMENT else "MISSED"
    lines.append(
        f"{indent}largest difference {100 * row['largest_difference']:+.2f} %, aim within "
        f"{100 * link_check.AGREEMENT:.0f} %: {verdict}"
    )
    return "\n".join(lines)


def tick_text(row: dict[str, Any]) -> str:
    """Return the label under a fabric's bars."""
    return f"{row['fabric'].replace('-', ' ')}\n{row['ratio']:.2f} times Gloo"
