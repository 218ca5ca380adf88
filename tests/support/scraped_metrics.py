# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a process answers to a scrape, by Prometheus' own parser."""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

from switchfold.hostlib.observing.metric import MetricDefinition, MetricSamples

_TIMEOUT_S = 60.0


class ScrapedMetrics:
    """The samples of one answer."""

    def __init__(self, text: str) -> None:
        self.samples = [
            sample for family in text_string_to_metric_families(text) for sample in family.samples
        ]

    @property
    def names(self) -> set[str]:
        return {sample.name for sample in self.samples}

    def values(self, metric: MetricDefinition, **labels: str) -> list[float]:
        """Return the values of all samples that have these labels, among others."""
        return [
            sample.value
            for sample in self.samples
            if sample.name == metric.name and labels.items() <= sample.labels.items()
        ]

    def value(self, metric: MetricDefinition, **labels: str) -> float:
        (found,) = self.values(metric, **labels)
        return found


def scrape(address: str) -> ScrapedMetrics:
    """Return what is served at an address."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=_TIMEOUT_S) as answer:
        return ScrapedMetrics(answer.read().decode())


def put_values(samples: MetricSamples) -> dict[str, Mapping[tuple[str, ...], float]]:
    """Return the values that were put, by name and label values."""
    return {metric.name: values for metric, values in samples}
