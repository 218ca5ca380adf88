# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Markdown table of schemes.py."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MOST_RATIO = 1.1
"""Aim for the chosen scheme's time over the best one's."""
MOST_DIFFERENCE = 0.02
"""Aim for the difference of measured bytes from the formula, as a share."""
NAMES = {"ps": "PS", "sfb": "SFB", "sfb-copied": "SFB multicast", "ina": "INA"}
_COLUMNS = (
    "layer",
    "link bit/s",
    *(f"{name} ms (predicted)" for name in NAMES.values()),
    "two-way",
    "chosen",
    "best",
    "chosen / best",
    "with multicast",
    "bytes / formula",
    "busy cores",
)
HEADING = f"| {' | '.join(_COLUMNS)} |\n{'|---' * len(_COLUMNS)}|"
"""Column "with multicast": chosen, best and their ratio if the switch multicasts factors."""


def describe_row(row: dict[str, Any]) -> str:
    """Return a vector's line."""
    if "error" in row:
        return f"| {row['vector']} | {row['rate']} | not measured: {row['error'][-2000:]} |"
    schemes: dict[str, dict[str, Any]] = row["schemes"]
    times = [
        f"{1e3 * schemes[name]['seconds']:.4g} ({1e3 * schemes[name]['predicted_s']:.4g})"
        if name in schemes
        else "-"
        for name in NAMES
    ]
    shares = [
        f"{100 * schemes[name]['largest_difference']:+.1f} %" for name in NAMES if name in schemes
    ]
    busy = [f"{schemes[name]['busy_cores']:.1f}" for name in NAMES if name in schemes]
    choices = [NAMES[row[key]] for key in ("two_way", "chosen", "best")]
    multicast = row["with_copies"]
    cells = [row["vector"], row["rate"], *times, *choices, f"{row['ratio']:.2f}"]
    cells.append(
        f"{NAMES[multicast['chosen']]}, {NAMES[multicast['best']]}, {multicast['ratio']:.2f}"
    )
    return f"| {' | '.join((*cells, ', '.join(shares), ', '.join(busy)))} |"


def summary(rows: Iterable[dict[str, Any]]) -> str:
    """Return the worst figures beside their aims."""
    measured = [row for row in rows if "error" not in row]
    if not measured:
        return "nothing was measured"
    ratio = max(max(row["ratio"], row["with_copies"]["ratio"]) for row in measured)
    difference = max(
        abs(scheme["largest_difference"]) for row in measured for scheme in row["schemes"].values()
    )
    return (
        f"chosen / best at most {ratio:.2f} (aim {MOST_RATIO}); bytes within"
        f" {100 * difference:.1f} % of the formula (aim {100 * MOST_DIFFERENCE:g} %)"
    )
