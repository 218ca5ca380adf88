# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Serves a process's metrics by HTTP, in Prometheus' text format."""

from __future__ import annotations

import ipaddress
import logging
import selectors
import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import HTTPServer
from typing import TYPE_CHECKING, Any, Final

from ..closable import Closable
from ..errors import MetricsError
from .listening_address import listening_address, shown_address
from .metric import MetricKind, MetricSamples

if TYPE_CHECKING:
    from prometheus_client import Metric

_REQUEST_S: Final = 5.0
"""How long a caller may take to send its request, and to take a part of the answer."""
_logger = logging.getLogger(__name__)
Fill = Callable[[MetricSamples], None]
"""Puts the present values; called in the server's thread, once per scrape."""


def metrics_address(text: str) -> tuple[str, int]:
    """Return host and port of PORT, HOST:PORT or [IPV6]:PORT; without a host it is 127.0.0.1.

    Raises MetricsError.
    """
    try:
        return listening_address(text, "metrics")
    except ValueError as exc:
        raise MetricsError(str(exc)) from None


class MetricsServer(Closable):
    """Answers scrapes in a thread of its own, one at a time, until it is closed.

    Whoever reaches the address can read the metrics: there is neither TLS nor a token.
    """

    def __init__(self, address: str, fill: Fill) -> None:
        """Listen at once; port 0 takes a free one. Raises MetricsError."""
        host, port = metrics_address(address)
        try:
            from prometheus_client import CollectorRegistry, MetricsHandler  # noqa: PLC0415
            from prometheus_client.process_collector import ProcessCollector  # noqa: PLC0415
        except ModuleNotFoundError as exc:
            raise MetricsError(
                f"metrics need the Python module {exc.name}, which is missing; run"
                " pip install '.[controller]' in a checkout"
            ) from exc
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(_FilledCollector(fill))
        handler: Any = MetricsHandler.factory(registry)
        handler.timeout = _REQUEST_S
        try:
            self._server = _ScrapeServer((host, port), handler)
        except OSError as exc:
            raise MetricsError(
                f"cannot serve metrics at {address}: {exc.strerror}; choose a free port of an"
                " address of this machine, or 0 for any port"
            ) from exc
        self.address = shown_address(host, self._server.server_address[1])
        """Where it listens, with the port that was taken."""
        self._waker, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="switchfold-metrics", daemon=True)
        self._thread.start()
        _logger.info("metrics at http://%s/metrics", self.address)
        if not ipaddress.ip_address(host).is_loopback:
            _logger.warning("whoever reaches %s can read the metrics of this process", self.address)

    def close(self) -> None:
        """Stop listening; an answer under way is finished. A second call does nothing."""
        if self._waker.fileno() < 0:
            return
        self._waker.close()
        self._thread.join()

    def _serve(self) -> None:
        """Answer until the other end of `_woken` is closed; between scrapes, nothing runs."""
        with self._server, self._woken, selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select()]
                if self._woken in ready:
                    return
                self._server.handle_request()


class _ScrapeServer(HTTPServer):
    """A server without threads per caller: slow callers wait for each other, and for nothing else.

    It looks up no names, which could wait for a name service.
    """

    def __init__(self, address: tuple[str, int], handler: Any) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Bind without the look-up of this host's name that HTTPServer makes."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log a failure as one line: callers that vanish are no defect of this process."""
        _logger.warning("a scrape by %s failed: %r", client_address[0], sys.exception())


class _FilledCollector:
    """Asks the process for its values at each scrape."""

    def __init__(self, fill: Fill) -> None:
        self._fill = fill

    def collect(self) -> Iterator[Metric]:
        """Yield the families of one scrape."""
        from prometheus_client.core import (  # noqa: PLC0415 - as above
            CounterMetricFamily,
            GaugeMetricFamily,
        )

        samples = MetricSamples()
        try:
            self._fill(samples)
        except TimeoutError as exc:  # which the handler would take for a slow caller
            raise MetricsError("this process did not tell its values in time") from exc
        for metric, values in samples:
            is_counter = metric.kind is MetricKind.COUNTER
            kind = CounterMetricFamily if is_counter else GaugeMetricFamily
            family = kind(metric.name, metric.help, labels=metric.labels)
            for labels, value in values.items():
                family.add_metric(labels, value)
            yield family
