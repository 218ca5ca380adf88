# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Models that travel from servers to workers: shortest transfer first on each server's uplink.

That the scheduler plans them is MLfabric's; its rule was not available to us. Ours is that of
updates, without groups and bounds. Models and updates share links only where a route does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ..errors import DuplicateTransferError, UnknownTransferError
from ..ordering import order_models
from ..planning.model_relays import plan_relays
from ..training.options import SchedulerOptions
from ..training.training_modes import WorkerClocks
from ..transfers import ModelGrant, ModelRequest
from .batch_queue import BatchQueue
from .coming_updates import ComingUpdates
from .open_transfers import Carried, OpenTransfers
from .returning_workers import ReturningWorkers

_FREE_SHARE: Final = 0.05
"""A link of which less is free is full."""


class ModelTransfers:
    """Requests of models at all servers of a job, and the grants that are open."""

    def __init__(
        self,
        servers: Iterable[str],
        open_transfers: OpenTransfers,
        clocks: WorkerClocks | None = None,
        most_queued: float | None = None,
    ) -> None:
        """With `clocks`, models wait for slower workers; with `most_queued`, for the updates that
        theirs would wait for (see ComingUpdates).
        """
        self._open = open_transfers
        self._clocks = clocks
        self._servers: dict[str, BatchQueue[ModelRequest, ModelGrant]] = {
            server: BatchQueue() for server in servers
        }
        self._most_queued = most_queued
        self._coming: dict[str, ComingUpdates] = {}
        """By server, if models wait for updates."""
        self._returning = {server: ReturningWorkers() for server in self._servers}
        for server in self._servers:
            self._expect(server)
        self._server_of: dict[int, str] = {}
        """By id of each request that waits or is granted."""
        self._last_ids: dict[str, int] = {}
        """By worker."""

    def submit(self, request: ModelRequest, now_s: float) -> None:
        """Let a request wait; its hosts are known to exist. NoRouteError."""
        last = self._last_ids.get(request.worker, -1)
        if request.transfer_id <= last or request.transfer_id in self._server_of:
            raise DuplicateTransferError(
                f"model {request.transfer_id} for {request.worker} was requested before, or "
                f"follows a higher id ({last}): number a worker's requests upwards, and give no "
                "two workers the same number"
            )
        self._open.residual.network.route(request.server, request.worker)
        self._servers[request.server].enqueue(request, now_s)
        self._returning[request.server].requested(request.worker, now_s)
        self._last_ids[request.worker] = request.transfer_id
        self._server_of[request.transfer_id] = request.server
        if self._clocks:
            self._servers[request.server].sort_out(self._may_go)

    def next_due_s(self, options: SchedulerOptions, now_s: float) -> float | None:
        """Return when a batch is due, None if nothing waits."""
        due = [self._due_s(queue, options, now_s) for queue in self._servers.values()]
        return min((each for each in due if each is not None), default=None)

    def grant(
        self, now_s: float, options: SchedulerOptions, num_waiting: Mapping[str, int]
    ) -> list[ModelGrant]:
        """Plan and reserve the batches that are due; return the grants, by server and in order.

        `num_waiting`: by server, updates that wait there for their grants.
        """
        grants: list[ModelGrant] = []
        residual = self._open.residual
        for server, queue in self._servers.items():
            due_s = self._due_s(queue, options, now_s)
            if due_s is None or due_s > now_s:
                continue
            coming, waiting = self._coming.get(server), list(queue.waiting.values())
            if options.relay_max > 1:
                planned = plan_relays(
                    residual, waiting, now_s, options.relay_max, options.join_ratio
                )
            elif coming is None:
                planned = order_models(residual, waiting, now_s)
            else:
                ordered = order_models(residual.fork(), waiting, now_s)
                planned = coming.grants(residual, ordered, num_waiting[server], now_s)
            for grant in planned:
                transfer_id = grant.request.transfer_id
                queue.remove(transfer_id)
                queue.granted[transfer_id] = grant
                self._open.hold((Carried.MODEL, transfer_id), grant.links, grant.spans)
                self._returning[server].granted(grant.request.worker, now_s, grant.end_s - now_s)
                grants.append(grant)
        return grants

    def update_requested(self, worker: str, server: str, now_s: float) -> None:
        """Note that a worker has an update of the model that it got."""
        coming = self._coming.get(server)
        if coming is not None:
            coming.requested(worker, now_s)

    def withdraw(self, transfer_id: int, now_s: float) -> None:
        """Forget a request that waits, or a grant whose model does not come."""
        coming = self._coming.get(self._server_of.get(transfer_id, ""))
        request = self.end(transfer_id, now_s)
        self._returning[request.server].gone(request.worker)
        if coming is not None:
            coming.withdrawn(transfer_id)

    def end(self, transfer_id: int, now_s: float) -> ModelRequest:
        """Forget a request that waits, or a grant, and give back its reservation; return it."""
        server = self._server_of.pop(transfer_id, None)
        if server is None:
            raise UnknownTransferError(
                f"no model {transfer_id} is requested: it is unknown, has arrived, or was withdrawn"
            )
        queue = self._servers[server]
        if transfer_id in queue:
            return queue.remove(transfer_id)
        self._open.release((Carried.MODEL, transfer_id), now_s)
        return queue.granted.pop(transfer_id).request

    def leave(self, worker: str) -> None:
        """Note that a worker is gone: nobody waits for it any longer."""
        for returning in self._returning.values():
            returning.gone(worker)
        self.sort_out()

    def check_granted(self, transfer_id: int) -> None:
        """Raise UnknownTransferError unless a model is on its way."""
        server = self._server_of.get(transfer_id)
        if server is None or transfer_id not in self._servers[server].granted:
            raise UnknownTransferError(
                f"model {transfer_id} is not on its way: it is unknown, waits for a grant, has "
                "arrived, or was withdrawn"
            )

    def replace_server(self, old: str, new: str, now_s: float) -> None:
        """Forget all requests at a server that is gone, and take requests for another one."""
        gone = [number for number, server in self._server_of.items() if server == old]
        for transfer_id in gone:
            self.withdraw(transfer_id, now_s)
        del self._servers[old], self._returning[old]
        self._coming.pop(old, None)
        self._servers[new] = BatchQueue()
        self._returning[new] = ReturningWorkers()
        self._expect(new)

    def sort_out(self) -> None:
        """Look again at which requests have a route and need not wait for slower workers."""
        for queue in self._servers.values():
            queue.sort_out(self._may_go)

    def _due_s(
        self, queue: BatchQueue[ModelRequest, ModelGrant], options: SchedulerOptions, now_s: float
    ) -> float | None:
        """Return when a server's batch is due.

        With relays, that is not long before the server's link is free, and when no more workers are
        to come than wait, or could share a model with them.
        """
        due_s = queue.due_s(options.batch_max, options.batch_wait_s)
        first_s = queue.due_s(1, 0.0)
        if due_s is None or first_s is None or options.relay_max == 1:
            return due_s
        if not any(request.may_relay for request in queue.waiting.values()):
            return due_s
        oldest = next(iter(queue.waiting.values()))
        residual = self._open.residual
        links = residual.network.route(oldest.server, oldest.worker)
        if not links:
            return due_s
        least = max(1, round(_FREE_SHARE * residual.network.capacities_bits_per_s[links[0]]))
        free_s = residual.rate(links[0]).free_from(now_s, least)
        wanted_s = free_s - options.batch_wait_s
        num_waiting = len(queue.waiting)
        if num_waiting < min(options.relay_max, options.batch_max):
            returning = self._returning[oldest.server]
            wanted_s = max(wanted_s, returning.at_most_s(num_waiting, now_s))
            if num_waiting > 1:
                wanted_s = max(wanted_s, queue.last_s + options.batch_wait_s)
        return max(due_s, min(wanted_s, first_s + options.relay_wait_s))

    def _expect(self, server: str) -> None:
        if self._most_queued is not None:
            self._coming[server] = ComingUpdates(self._most_queued)

    def _may_go(self, request: ModelRequest) -> bool:
        is_joined = self._open.residual.network.joins(request.server, request.worker)
        return is_joined and (self._clocks is None or self._clocks.may_get(request))
