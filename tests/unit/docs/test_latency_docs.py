# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""docs/latency.md against the schema, the errors and the options."""

from __future__ import annotations

import re
from pathlib import Path

from switchfold.controller import errors
from switchfold.controller.cli.latency.statistics import PARTS
from switchfold.hostlib.latency import ARRIVALS, REQUESTS, SAMPLES, UPDATES, parquet_log
from switchfold.hostlib.latency.schema import METADATA_KEY, OUTCOMES, PATHS

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "latency.md").read_text("utf-8")


def rows(after: str) -> list[list[str]]:
    """The cells of the first table after a text."""
    lines = PAGE.partition(after)[2].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|---"))
    table: list[list[str]] = []
    for line in lines[start + 1 :]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in line.strip("|").split("|")])
    return table


def test_all_columns_are_documented_in_their_order() -> None:
    documented: dict[str, list[str]] = {}
    name = ""
    for file, columns, _ in rows("<!-- columns:"):
        name = file.strip("` ") or name
        documented.setdefault(name, []).extend(re.findall(r"`(\w+)`", columns))
    assert documented == {
        kind.name: [column.name for column in kind.columns]
        for kind in (REQUESTS, ARRIVALS, SAMPLES, UPDATES)
    }


def test_all_metrics_are_defined() -> None:
    defined = {re.sub(r"[`]", "", row[0]) for row in rows("## What is measured")}
    assert defined == {*PARTS.values()}


def test_errors_and_names_exist() -> None:
    for name, _ in rows("## If the report refuses"):
        assert issubclass(getattr(errors, name.strip("`")), errors.ControllerError)
    for name in (*OUTCOMES, *PATHS):
        assert f"`{name}`" in PAGE
    assert METADATA_KEY.decode() in PAGE
    assert f"{parquet_log.FILE_ROWS:,} records" in PAGE
    assert f"every {parquet_log.FLUSH_S:g} s" in PAGE
