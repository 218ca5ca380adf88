# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Synchronous and stale synchronous training: nothing is dropped, and other orders hold.

MLfabric names both; its rules for them were not available to us. These are ours. Without a mode,
training is asynchronous.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..checks import check_whole
from ..errors import InvalidTransferError
from ..network import ResidualNetwork
from ..ordering import order_transfers
from ..transfers import ModelRequest, PlannedTransfer, TransferRequest


@dataclass(frozen=True, kw_only=True)
class SynchronousTraining:
    """The server needs the updates of all workers: the last one should arrive soonest."""


@dataclass(frozen=True, kw_only=True)
class StaleSynchronousTraining:
    """No worker may be far ahead of the slowest one.

    A worker's clock is the number of its updates that the server has applied, by the `clock` of
    the last one. A model for iteration c waits while c exceeds the slowest clock by more than
    `staleness`.
    """

    staleness: int
    workers: frozenset[str] | None
    """Hosts of all workers; None: servers let models wait, and the scheduler does not."""

    def __post_init__(self) -> None:
        check_whole("staleness", self.staleness, 0)
        if self.workers is not None and not self.workers:
            raise InvalidTransferError("workers is empty; name the hosts of all workers")


TrainingMode = SynchronousTraining | StaleSynchronousTraining


def order_for_makespan(
    residual: ResidualNetwork, requests: Sequence[TransferRequest], now_s: float
) -> list[PlannedTransfer]:
    """Return the batch so that its last update arrives soon, reserved in `residual`.

    Either shortest first, or slowest first: the updates that alone would take longest are
    planned first, and others use what they leave of the server's link. The one with the earlier
    last arrival is taken. In the order of arrival. Cost: that of `order_transfers`, and O(n) plans.
    """
    shortest_first = residual.fork()
    short, _ = order_transfers(shortest_first, requests, now_s)
    slowest_first = residual.fork()
    slow: list[PlannedTransfer] = []
    by_version = sorted(requests, key=lambda r: (r.version, r.worker, r.transfer_id))
    for request in sorted(by_version, key=lambda r: -_plan(residual, r, now_s).end_s):
        planned = _plan(slowest_first, request, now_s)
        slowest_first.reserve(planned.links, planned.spans)
        slow.append(planned)
    if _last_s(slow) < _last_s(short):
        residual.adopt(slowest_first)
        return sorted(slow, key=lambda each: each.end_s)
    residual.adopt(shortest_first)
    return short


def order_by_clock(
    residual: ResidualNetwork, requests: Sequence[TransferRequest], now_s: float
) -> list[PlannedTransfer]:
    """Return the batch, slowest clock first and shortest first within a clock, and reserve it."""
    order: list[PlannedTransfer] = []
    for clock in sorted({request.clock for request in requests}):
        members = [request for request in requests if request.clock == clock]
        order += order_transfers(residual, members, now_s)[0]
    return order


class WorkerClocks:
    """How far each worker of a stale synchronous training is."""

    def __init__(self, mode: StaleSynchronousTraining) -> None:
        self._staleness = mode.staleness
        self._clocks = dict.fromkeys(mode.workers or (), 0)

    def applied(self, request: TransferRequest) -> None:
        """Note that the server has applied an update."""
        if request.worker in self._clocks:
            clock = max(self._clocks[request.worker], request.clock + 1)
            self._clocks[request.worker] = clock

    def leave(self, worker: str) -> None:
        """Wait for a worker no longer."""
        self._clocks.pop(worker, None)

    def may_get(self, request: ModelRequest) -> bool:
        """Return whether a worker may compute the iteration for which it wants the model."""
        slowest = min(self._clocks.values(), default=request.clock)
        return request.clock - slowest <= self._staleness


def _plan(residual: ResidualNetwork, request: TransferRequest, now_s: float) -> PlannedTransfer:
    links = residual.network.route(request.worker, request.server)
    spans = residual.plan(links, request.bits, now_s)
    end_s = round(spans[-1].end_s, 9) if spans else now_s
    return PlannedTransfer(request=request, links=links, spans=spans, end_s=end_s)


def _last_s(planned: Sequence[PlannedTransfer]) -> float:
    return max((round(each.end_s, 9) for each in planned), default=0.0)
