# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of a parameter server: its counters, by event."""

from __future__ import annotations

from scraped_metrics import put_values, scrape
from switchfold.hostlib.observing import metric_table as table
from switchfold.hostlib.observing.metric import Exporter, MetricSamples
from switchfold.hostlib.parameter_server import ParameterServer, ServerOptions
from switchfold.hostlib.parameter_server.metrics import put_counters, serve_metrics

LABELS = {"job": "9", "server": "1"}


def test_counters_are_put_by_event_and_floats_as_bytes() -> None:
    samples = MetricSamples()
    put_counters(samples, LABELS, {"updates": 3, "sent_floats": 10, "received_floats": 20})
    assert put_values(samples) == {
        table.SERVER_EVENTS.name: {("9", "1", "updates"): 3},
        table.SERVER_SENT.name: {("9", "1"): 40},
        table.SERVER_RECEIVED.name: {("9", "1"): 80},
    }


def test_server_answers_with_the_counters_of_all_its_parts() -> None:
    options = ServerOptions(num_workers=2, shard=1)
    with ParameterServer(options, insecure=True, job=9) as server:
        server.counters["updates"] += 2
        server.tables.counters["pushes"] += 3
        server.updates.counters["pushes"] += 4
        with serve_metrics(server, "0", job=9) as metrics:
            answer = scrape(metrics.address)
    exported = {metric.name for metric in table.METRICS if metric.exporter is Exporter.SERVER}
    assert answer.names == exported | {*table.PROCESS_METRICS}
    assert answer.value(table.SERVER_EVENTS, event="updates", **LABELS) == 2
    assert answer.value(table.SERVER_EVENTS, event="pushes", **LABELS) == 7
    assert answer.value(table.SERVER_VERSION, **LABELS) == server.tables.version
