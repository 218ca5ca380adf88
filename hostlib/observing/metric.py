# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A metric's definition, and the samples of one scrape."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass


class MetricKind(enum.StrEnum):
    """Types of the exposition format that the project uses."""

    COUNTER = "counter"
    GAUGE = "gauge"


class Exporter(enum.StrEnum):
    """Which processes export a metric."""

    CONTROLLER = "controller"
    SWITCH = "softswitch"
    SERVER = "parameter server"
    WORKER = "worker"


@dataclass(frozen=True, kw_only=True)
class MetricDefinition:
    """Name, type and labels of one metric; `metric_table` has all of them."""

    name: str
    """With its unit; a counter's ends in _total."""
    kind: MetricKind
    help: str
    exporter: Exporter
    labels: tuple[str, ...] = ()
    """Each has few values: names of configured things, jobs, workers, causes."""


class MetricSamples:
    """The values that one process has at one scrape."""

    def __init__(self) -> None:
        self._values: dict[MetricDefinition, dict[tuple[str, ...], float]] = {}

    def put(self, metric: MetricDefinition, value: float, **labels: str) -> None:
        """Add one value; ValueError unless it has exactly the metric's labels."""
        if set(labels) != set(metric.labels):
            raise ValueError(f"{metric.name} has the labels {metric.labels}, not {tuple(labels)}")
        of_metric = self._values.setdefault(metric, {})
        of_metric[tuple(labels[name] for name in metric.labels)] = float(value)

    def __iter__(self) -> Iterator[tuple[MetricDefinition, dict[tuple[str, ...], float]]]:
        """Yield each metric with its values by label values."""
        yield from self._values.items()
