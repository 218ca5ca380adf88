# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of a server, with what to do, and as its workers see them: same class, same text."""

from __future__ import annotations

from typing import Any

from ...errors import (
    ConfigurationError,
    DiskFullError,
    ExchangeTimeoutError,
    HostlibError,
    LogBrokenError,
    LogBusyError,
    LogClosedError,
    NonFiniteGradientError,
    PeerMismatchError,
    PeerProtocolError,
    PeerRefusedError,
    RowMemoryError,
    RowTableFullError,
    ServerRestartedError,
    StaleUpdateError,
    StorageError,
    UnplannedUpdateError,
)
from .state import TableState

_PLAIN: dict[str, type[HostlibError]] = {
    kind.__name__: kind
    for kind in (
        ConfigurationError,
        DiskFullError,
        LogBrokenError,
        LogBusyError,
        LogClosedError,
        PeerMismatchError,
        PeerProtocolError,
        RowMemoryError,
        RowTableFullError,
        ServerRestartedError,
        StorageError,
        UnplannedUpdateError,
    )
}


def describe(error: HostlibError) -> dict[str, Any]:
    """Return what to send of an error, for JSON."""
    described: dict[str, Any] = {"kind": type(error).__name__, "text": str(error)}
    if isinstance(error, NonFiniteGradientError):
        described |= {"position": error.position, "key": error.key}
    elif isinstance(error, ExchangeTimeoutError):
        described["worker_ids"] = error.worker_ids
    elif isinstance(error, StaleUpdateError):
        described |= {"delay": error.delay, "tau_max": error.tau_max}
    return described


def error_of(described: dict[str, Any], server: str) -> HostlibError:
    """Return the error of a server; `server` names it."""
    kind, text = str(described["kind"]), f"{server}: {described['text']}"
    if kind == NonFiniteGradientError.__name__:
        return NonFiniteGradientError(text, int(described["position"]), int(described["key"]))
    if kind == ExchangeTimeoutError.__name__:
        return ExchangeTimeoutError(text, [int(one) for one in described["worker_ids"]])
    if kind == StaleUpdateError.__name__:
        return StaleUpdateError(text, int(described["delay"]), int(described["tau_max"]))
    return _PLAIN.get(kind, PeerProtocolError)(text)


def too_late(
    state: TableState, worker_id: int, table: int, clock: int, timeout_s: float
) -> ExchangeTimeoutError:
    """Return why a pull, made at the worker's clock, could not be answered in time."""
    name = state.tables[table].definition.name
    if state.may_pull(clock, table):
        return ExchangeTimeoutError(
            f"table {name!r}: the pushes before a pull of worker {worker_id} were not"
            f" durable in {timeout_s:g} s. Is the disk of the log too slow?",
            [],
        )
    slowest = [w for w, worker in enumerate(state.workers) if worker.clock == state.clock]
    return ExchangeTimeoutError(
        f"table {name!r}: worker {', '.join(map(str, slowest))} has ended {state.clock}"
        f" iterations, worker {worker_id} {clock}; in {timeout_s:g} s no pull"
        " was possible. Do all workers call `advance` after each iteration?",
        slowest,
    )


def was_denied(number: int) -> ServerRestartedError:
    """Return what a request of an earlier run of the server has become."""
    return ServerRestartedError(
        f"request {number} had no effect: the server denied it before it was restarted. Its"
        " messages of that time give the reason"
    )


def is_replaced(worker_id: int) -> PeerRefusedError:
    """Return why an older process of a worker is refused."""
    return PeerRefusedError(
        f"another process is worker {worker_id} now; end one of the two, or give them different ids"
    )
