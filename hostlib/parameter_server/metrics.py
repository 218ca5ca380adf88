# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of a parameter server: its counters, read at each scrape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Final

from ..observing import metric_table as table
from ..observing.metric import MetricSamples
from ..observing.metrics_server import MetricsServer
from ..slots.wire import VALUE_BYTES
from .server import ParameterServer

_FLOATS: Final = {"sent_floats": table.SERVER_SENT, "received_floats": table.SERVER_RECEIVED}


def serve_metrics(server: ParameterServer, address: str, *, job: int) -> MetricsServer:
    """Serve the metrics of a server until closed; raises MetricsError."""
    labels = {"job": str(job), "server": str(server.options.shard)}
    return MetricsServer(address, partial(_fill, server, labels))


def _fill(server: ParameterServer, labels: Mapping[str, str], samples: MetricSamples) -> None:
    counts: Counter[str] = Counter(dict.fromkeys(_FLOATS, 0))
    for counters in (server.counters, server.tables.counters, server.updates.counters):
        for event, count in list(counters.items()):  # the server's loop goes on counting
            counts[event] += count
    put_counters(samples, labels, counts)
    samples.put(table.SERVER_VERSION, server.tables.version, **labels)


def put_counters(
    samples: MetricSamples, labels: Mapping[str, str], counts: Mapping[str, int]
) -> None:
    """Put counters by event; those of values count float32."""
    for event, count in counts.items():
        if event in _FLOATS:
            samples.put(_FLOATS[event], count * VALUE_BYTES, **labels)
        else:
            samples.put(table.SERVER_EVENTS, count, **labels, event=event)
