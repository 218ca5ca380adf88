# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's membership in a job: allreduce, barrier, close."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import Counter
from types import TracebackType
from typing import Any, Self, final

from numpy.typing import NDArray

from hostlib.controller_seam import ControllerLink
from hostlib.engine import Engine
from hostlib.errors import ConfigurationError, HostlibError, SessionClosedError, SessionError
from hostlib.future import AllreduceFuture
from hostlib.job_view import JobView, check_worker
from hostlib.options import NonfinitePolicy, ReduceOperation, SessionOptions
from hostlib.transports.base import Transport
from hostlib.wire import datagram_bytes

_logger = logging.getLogger(__name__)


@final
class Session:
    """Sums tensors with the other workers of a job. Use `join`, or `direct` without a controller.

    One thread moves packets; all methods may be called from any thread. A session that failed stays
    broken: every later allreduce raises SessionBrokenError until the job is joined anew.
    """

    def __init__(
        self,
        view: JobView,
        transport: Transport,
        options: SessionOptions,
        link: ControllerLink | None,
    ) -> None:
        self.view = view
        """Job, generation, slots and addresses of this session."""
        self.options = options
        self._transport = transport
        self._link = link
        self._lock = threading.Lock()
        self._is_closed = False
        transport.open(view.switch, datagram_bytes(view.values_per_packet))
        self._engine = Engine(view, transport, options)
        _logger.info("session of worker %d: %s, %s", view.worker_id, view, options)

    @classmethod
    def direct(
        cls, view: JobView, transport: Transport, options: SessionOptions | None = None
    ) -> Self:
        """Start on a switch that somebody else has set up; for tests and experiments."""
        return cls(view, transport, options or SessionOptions(), None)

    @classmethod
    def join(
        cls,
        *,
        controller: str,
        job: str,
        worker_id: int,
        num_workers: int,
        transport: Transport,
        options: SessionOptions | None = None,
        ingress_port: int | str = 0,
        slots_wanted: int = 0,
        allow_partial: bool = False,
        token: str = "",
        switch_name: str = "",
        values_per_packet: int = 0,
    ) -> Self:
        """Join a job at the controller ("host:port") and wait for all of its workers.

        `ingress_port` is the switch port that this worker hangs on, by P4 number or by interface
        name; 0 lets the controller find it. Zero for `slots_wanted` and `values_per_packet` means
        any.
        Raises JoinError and its kinds; the transport is closed when joining fails.
        """
        # grpc is needed by those who join, not by those who import.
        from hostlib.controller_link import GrpcControllerLink, JoinRequest  # noqa: PLC0415

        options = options or SessionOptions()
        with contextlib.ExitStack() as undo:
            undo.callback(transport.close)
            check_worker(worker_id, num_workers)
            request = JoinRequest(
                job=job,
                worker_id=worker_id,
                num_workers=num_workers,
                local=transport.local,
                ingress_port=ingress_port,
                slots_wanted=slots_wanted,
                allow_partial=allow_partial,
                token=token,
                switch_name=switch_name,
                values_per_packet=values_per_packet,
                timeout_s=options.join_timeout_s,
            )
            link = GrpcControllerLink(controller, request)
            undo.callback(link.close)
            session = cls(link.join(options.join_timeout_s), transport, options, link)
            undo.pop_all()
        link.on_job_ended(session.fail)
        return session

    def allreduce(
        self,
        array: NDArray[Any],
        op: ReduceOperation = "sum",
        *,
        timeout_s: float | None = None,
        nonfinite: NonfinitePolicy | None = None,
    ) -> AllreduceFuture:
        """Sum (or average) an array of any shape over all workers; return a future at once.

        Takes float16, float32, float64 (`hostlib.quantization` states the error bound) and int32.
        Every worker must submit the same sequence of shapes, dtypes and operations. The array must
        not change until the future is done. `timeout_s` and `nonfinite` override the session's
        options.
        """
        if timeout_s is None:
            timeout_s = self.options.timeout_s
        if not timeout_s > 0:  # NaN would wait for ever
            raise ConfigurationError(f"timeout_s is {timeout_s}; it must be positive")
        return self._engine.submit(array, op, timeout_s, nonfinite or self.options.nonfinite)

    def barrier(self, name: str, timeout_s: float = 60.0) -> None:
        """Wait until every worker of the job has called this with the same name.

        Raises BarrierTimeoutError, SessionClosedError, or SessionError without a controller.
        """
        if self._is_closed:
            raise SessionClosedError(f"barrier {name!r}: the session is closed")
        if self._link is None:
            raise SessionError(f"barrier {name!r}: this session has no controller; use join")
        self._link.barrier(name, timeout_s)

    def fail(self, error: HostlibError) -> None:
        """Break the session: allreduces under way end with `error`."""
        self._engine.fail(error)

    @property
    def statistics(self) -> dict[str, int | float]:
        """Packet counts since the start, and the smoothed round-trip time in seconds."""
        engine = self._engine
        result: dict[str, int | float] = {}
        for name, stream in (("exponent", engine.exponents), ("value", engine.values)):
            for key, number in vars(stream.counters).items():
                result[f"{name}_packets_{key}"] = number
        result["probe_packets_sent"] = engine.probe.sent
        result["round_trip_s"] = engine.values.round_trip_s
        refused = Counter(engine.counters)
        for key, number in (refused + self._transport.counters).items():
            result[f"refused_{key}"] = number
        return result

    def close(self) -> None:
        """End the session; allreduces under way end with SessionClosedError. Never hangs."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        self._engine.close()
        self._transport.close()
        if self._link is not None:
            self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
