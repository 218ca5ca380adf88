# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of a worker: one server per process and address, for all of its sessions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Final

from . import metric_table as table
from .metric import MetricSamples
from .metrics_server import MetricsServer
from .transfer_clock import TransferClock

Statistics = Callable[[], Mapping[str, int | float]]
"""`Session.statistics`."""
_REFUSED: Final = "refused_"
_PACKETS: Final = "_packets_"


class SessionMeter:
    """One session's metrics, from before it joins until it is closed."""

    def __init__(self, address: str, job: str, worker_id: int) -> None:
        """Listen at the address, unless a session of this process does. Raises MetricsError."""
        self.clock = TransferClock()
        self._labels = {"job": job, "worker": str(worker_id)}
        self._statistics: Statistics | None = None
        self._leave = _enter(address, self._fill)

    def attach(self, statistics: Statistics) -> None:
        """Show a session's statistics, too."""
        self._statistics = statistics

    def close(self) -> None:
        """Show this session no longer; the last one stops the server."""
        self._leave()

    def _fill(self, samples: MetricSamples) -> None:
        labels, totals = self._labels, self.clock.totals()
        for outcome in ("completed", "failed"):
            count = getattr(totals, outcome)
            samples.put(table.WORKER_TENSORS, count, **labels, outcome=outcome)
        samples.put(table.WORKER_TENSOR_BYTES, totals.num_bytes, **labels)
        samples.put(table.WORKER_EXCHANGE, totals.exchange_s, **labels)
        samples.put(table.WORKER_WAIT, totals.first_packet_wait_s, **labels)
        if self._statistics is not None:
            put_statistics(samples, labels, self._statistics())


def put_statistics(
    samples: MetricSamples, labels: Mapping[str, str], statistics: Mapping[str, int | float]
) -> None:
    """Put what `Session.statistics` returns; `labels` are those of the session."""
    trips = {"value": "round_trip_s", "exponent": "exponent_round_trip_s"}
    for stream, name in trips.items():
        samples.put(table.WORKER_RTT, statistics[name], **labels, stream=stream)
    samples.put(table.WORKER_WINDOW, statistics["window"], **labels)
    for name, count in statistics.items():
        stream, separator, event = name.partition(_PACKETS)
        if name.startswith(_REFUSED):
            cause = name.removeprefix(_REFUSED)
            samples.put(table.WORKER_REFUSED, count, **labels, cause=cause)
        elif separator:
            samples.put(table.WORKER_PACKETS, count, **labels, stream=stream, event=event)


class _SharedServer:
    """The server of one address, and who fills its answers."""

    def __init__(self, address: str) -> None:
        self.fills: list[Callable[[MetricSamples], None]] = []
        self.server = MetricsServer(address, self._fill)

    def _fill(self, samples: MetricSamples) -> None:
        for fill in tuple(self.fills):
            fill(samples)


_lock = threading.Lock()
_servers: Final[dict[str, _SharedServer]] = {}
"""By the address as it was given: the process has one port, not each session."""


def served_address(address: str) -> str:
    """Return where the metrics of an address are served, with the port; KeyError if nowhere."""
    with _lock:
        return _servers[address].server.address


def _enter(address: str, fill: Callable[[MetricSamples], None]) -> Callable[[], None]:
    with _lock:
        if address not in _servers:
            _servers[address] = _SharedServer(address)
        _servers[address].fills.append(fill)

    def leave() -> None:
        with _lock:
            shared = _servers.get(address)
            if shared is None or fill not in shared.fills:
                return
            shared.fills.remove(fill)
            if shared.fills:
                return
            del _servers[address]
        shared.server.close()

    return leave
