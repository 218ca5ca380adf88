# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""docs/metrics.md and the dashboard have the metrics that the code exports, and no others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from switchfold.hostlib.observing.metric_table import METRICS, PROCESS_METRICS

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = (DOCS / "metrics.md").read_text("utf-8")
DASHBOARD: dict[str, Any] = json.loads((DOCS / "grafana_dashboard.json").read_text("utf-8"))
LABELS = {metric.name: set(metric.labels) for metric in METRICS} | {
    name: set[str]() for name in PROCESS_METRICS
}
METRIC = re.compile(r"\b(?:switchfold|process)_[a-z_]+\b")
SELECTOR = re.compile(r"((?:switchfold|process)_[a-z_]+)(?:\{([^}]*)\})?")
OF_PROMETHEUS = {"instance"}
"""Labels that Prometheus adds to what it scrapes."""


def expressions(part: Any = DASHBOARD) -> Iterator[str]:
    """Yield every expression and query of the dashboard."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key in ("expr", "query") and isinstance(value, str):
                yield value
            else:
                yield from expressions(value)
    elif isinstance(part, list):
        for item in part:
            yield from expressions(item)


EXPRESSIONS = [text for text in expressions() if text != "prometheus"]


def test_table_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| `(switchfold_\w+)` \| (\w+) \| ([^|]*) \| ([^|]+) \| ([^|]+) \|$", PAGE, re.M)  # fmt: skip # noqa: E501
    written = [(name, kind, re.findall(r"`(\w+)`", labels), *rest) for name, kind, labels, *rest in rows]  # fmt: skip # noqa: E501
    assert written == [
        (metric.name, str(metric.kind), list(metric.labels), str(metric.exporter), metric.help)
        for metric in METRICS
    ]


def test_page_names_what_every_process_has() -> None:
    assert set(re.findall(r"`(process_\w+)`", PAGE)) == set(PROCESS_METRICS)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_expression_asks_for_metrics_and_labels_that_exist(expression: str) -> None:
    names = METRIC.findall(expression)
    assert names
    assert set(names) <= LABELS.keys()
    for name, selector in SELECTOR.findall(expression):
        assert set(re.findall(r"(\w+)=~?\"", selector)) <= LABELS[name]


def test_dashboard_shows_every_metric_of_ours() -> None:
    shown = {name for expression in EXPRESSIONS for name in METRIC.findall(expression)}
    assert {metric.name for metric in METRICS} <= shown


@pytest.mark.parametrize("panel", DASHBOARD["panels"], ids=lambda panel: panel["title"])
def test_legend_names_labels_of_the_panels_metrics(panel: dict[str, Any]) -> None:
    for target in panel["targets"]:
        known = set.union(*(LABELS[name] for name in METRIC.findall(target["expr"])))
        assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= known | OF_PROMETHEUS


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
