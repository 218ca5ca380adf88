# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes what `switchfold tolerance` measured, docs/measured_tolerance.json, into tolerance.md."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from switchfold.controller.cli.tolerance.outcome import RateResult, result_of
from switchfold.controller.cli.tolerance.plot import draw_tolerances
from switchfold.hostlib.tolerance_file import read_models

DOCS: Final = Path(__file__).resolve().parent
PAGE: Final = DOCS / "tolerance.md"
MEASURED: Final = DOCS / "measured_tolerance.json"
PICTURE: Final = DOCS / "images" / "tolerance.png"
_TABLE: Final = re.compile(r"(<!-- measured: .*-->\n)((?:\|.*\n)+)")


def table_of(models: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a row for each model: epochs and final metric by rate, and what it bears."""
    rates = sorted({fields["rate"] for entry in models.values() for fields in entry["rates"]})
    heads = ["model", *(f"P = {rate:g}" for rate in rates), "x1", "x2", "missing at both"]
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)]]
    for name, entry in models.items():
        results = {each.rate: each for each in map(result_of, entry["rates"])}
        cells = [_cell(results.get(rate)) for rate in rates]
        bounds = [f"{entry['x1']:g}", f"{entry['x2']:g}", f"{results[entry['loss']].missing:.3f}"]
        lines.append([f"`{name}`", *cells, *bounds])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _cell(result: RateResult | None) -> str:
    """Return epochs and metric; what is not equal is bold."""
    if result is None:
        return "-"
    epochs = result.shown_epochs
    metric = f"{result.mean_metric:.3f}"
    if result.rate == 0 and result.deviation is not None:
        metric += f" ± {result.deviation:.3f}"
    return "; ".join(
        (
            epochs if result.has_equal_epochs else f"**{epochs}**",
            metric if result.has_equal_metric else f"**{metric}**",
        )
    )


def write_table(page: str, table: str) -> str:
    """Return a page with this table behind its comment."""
    if not _TABLE.search(page):
        raise SystemExit(f"error: {PAGE} has no comment '<!-- measured: ... -->' and table")
    return _TABLE.sub(lambda found: found[1] + table, page)


def main() -> int:
    """Write the table and the picture."""
    models = read_models(MEASURED)
    PAGE.write_text(write_table(PAGE.read_text("utf-8"), table_of(models)), "utf-8")
    draw_tolerances(models, PICTURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
