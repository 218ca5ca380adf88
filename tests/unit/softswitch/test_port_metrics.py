# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of a switch: the counters of its ports."""

from __future__ import annotations

from scraped_metrics import put_values
from switchfold.hostlib.observing import metric_table as table
from switchfold.hostlib.observing.metric import Exporter, MetricSamples
from switchfold.softswitch import Switch
from switchfold.softswitch.commands.port_metrics import fill_port_metrics


def test_counters_are_put_by_direction_and_cause() -> None:
    samples = MetricSamples()
    counters = {"rx_packets": 3, "rx_bytes": 300, "tx_packets": 2, "tx_bytes": 200}
    lost = {"tx_overflow": 7, "impaired_in_lost": 1}
    harmless = {"rx_super_frames": 1, "impaired_out_delayed": 5, "impaired_in_reordered": 2}
    fill_port_metrics(lambda: {4: {**counters, **lost, **harmless}}, samples)
    assert put_values(samples) == {
        table.PORT_PACKETS.name: {("4", "in"): 3, ("4", "out"): 2},
        table.PORT_BYTES.name: {("4", "in"): 300, ("4", "out"): 200},
        table.PORT_LOSSES.name: {("4", "tx_overflow"): 7, ("4", "impaired_in_lost"): 1},
    }


def test_switch_has_every_metric_of_a_switch() -> None:
    with Switch() as switch:
        switch.ports.add(1, "mem")
        samples = MetricSamples()
        fill_port_metrics(switch.ports.all_statistics, samples)
    exported = {metric.name for metric in table.METRICS if metric.exporter is Exporter.SWITCH}
    values = put_values(samples)
    assert set(values) == exported
    assert ("1", "dropped_by_program") in values[table.PORT_LOSSES.name]
    assert ("1", "in") in values[table.PORT_PACKETS.name]
