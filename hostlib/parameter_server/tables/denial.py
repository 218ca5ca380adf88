# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of a server as its workers see them: the same class with the same text."""

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
    RowMemoryError,
    RowTableFullError,
    ServerRestartedError,
    StaleUpdateError,
    StorageError,
    UnplannedUpdateError,
)

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
