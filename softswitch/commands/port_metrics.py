# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of a switch: the counters of its ports, which the data plane keeps anyway."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ...hostlib.observing import metric_table as table
from ...hostlib.observing.metric import MetricSamples

_TRAFFIC: Final = {
    "rx_packets": (table.PORT_PACKETS, "in"),
    "tx_packets": (table.PORT_PACKETS, "out"),
    "rx_bytes": (table.PORT_BYTES, "in"),
    "tx_bytes": (table.PORT_BYTES, "out"),
}
_HARMLESS: Final = ("_super_frames", "_duplicated", "_reordered", "_delayed")
"""Counters of packets that went on."""


def fill_port_metrics(
    read: Callable[[], Mapping[int, Mapping[str, int]]], samples: MetricSamples
) -> None:
    """Put the counters that `Ports.all_statistics` returns, by port number."""
    for number, counters in read().items():
        port = str(number)
        for name, count in counters.items():
            if name in _TRAFFIC:
                metric, direction = _TRAFFIC[name]
                samples.put(metric, count, port=port, direction=direction)
            elif not name.endswith(_HARMLESS):
                samples.put(table.PORT_LOSSES, count, port=port, cause=name)
