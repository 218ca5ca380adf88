# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Errors that the tables of a server give workers, with what to do."""

from __future__ import annotations

from ...errors import ExchangeTimeoutError, PeerRefusedError, ServerRestartedError
from .state import TableState


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
