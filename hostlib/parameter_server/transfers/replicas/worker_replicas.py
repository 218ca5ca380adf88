# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's part in replication: copies of its updates to replicas, and servers that move."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import final

from ....control.stations.replica_terms import (
    MOST_COPIES,
    ReplicaEvent,
    ReplicaKnown,
    ReplicaReady,
    ServerMoved,
)
from ....errors import HostlibError, PeerClosedError
from ...rows import GradientSum, Optimiser, Sgd
from ...tables.dense import DenseTensor
from ..grant_requests import GrantRequests
from ..outgoing import OutgoingUpdate, PartOutcome
from ..update_link import UpdateLink
from .replica_path import ReplicaPath


@final
class WorkerReplicas:
    """Runs in the loop's thread. `links` are those to the servers; moved servers get others."""

    def __init__(
        self,
        tensor: DenseTensor,
        links: list[UpdateLink],
        requests: GrantRequests[OutgoingUpdate],
        counters: Counter[str],
    ) -> None:
        self._tensor = tensor
        self._links = links
        self._requests = requests
        self._counters = counters
        self._paths: dict[int, ReplicaPath] = {}
        """By server, the connections to its replica."""
        self._ready: set[int] = set()
        self._servers: dict[int, ReplicaPath] = {}
        """By server: the replica that has taken its place."""
        self._room_calls: deque[Callable[[], None]] = deque()
        requests.must_wait = self._paths.__contains__

    def granted(self, update: OutgoingUpdate) -> None:
        """Send an update, which is on its path to the server, to the replica as well."""
        path = self._paths.get(update.shard)
        if path is not None and update.grant and update.grant.replica_spans is not None:
            path.copy(update)

    def when_room(self, call: Callable[[], None]) -> None:
        """Call when replicas are not too far behind."""
        self._room_calls.append(call)
        self._give_room()

    def on_event(self, event: ReplicaEvent) -> None:
        """Learn what the scheduler tells of replicas."""
        match event:
            case ReplicaKnown() if event.server_id < len(self._links):
                self._on_known(event.server_id, event.address)
            case ServerMoved() if event.server_id < len(self._links):
                self._on_moved(event.server_id, event.address)
            case _:
                pass  # for servers and replicas

    def close(self, error: PeerClosedError) -> None:
        """End all connections to replicas."""
        for path in [*self._paths.values()]:
            path.close(error)
        self._paths.clear()
        self._give_room()

    def _on_known(self, shard: int, address: tuple[str, int] | None) -> None:
        known = self._paths.get(shard)
        if known is not None and known.address == address:
            if shard in self._ready:
                self._tell_ready(shard)
            return
        if known is not None:
            del self._paths[shard]
            self._ready.discard(shard)
            known.close(PeerClosedError(f"server {shard} has no replica there any more"))
        if address is not None:
            self._paths[shard] = self._new_path(shard, address)
        self._give_room()

    def _new_path(self, shard: int, address: tuple[str, int]) -> ReplicaPath:
        return ReplicaPath(
            self._tensor,
            shard,
            address,
            numbers=self._links[shard].numbers,
            on_ready=lambda: self._tell_ready(shard),
            on_copy_done=self._on_copy_done,
        )

    def _tell_ready(self, shard: int) -> None:
        path = self._paths.get(shard)
        if path is not None:
            self._ready.add(shard)
            self._requests.report(ReplicaReady(shard, *path.address))

    def _on_moved(self, shard: int, address: tuple[str, int]) -> None:
        """Go on with the replica, which is the server now."""
        client = self._tensor.client
        if client.sessions[shard].address == address:
            return
        path = self._paths.pop(shard, None)
        self._ready.discard(shard)
        if path is None or path.address != address:
            if path is not None:
                path.close(PeerClosedError(f"server {shard} has another replica"))
            path = self._new_path(shard, address)
        self._servers[shard] = path
        self._counters["moved_servers"] += 1
        orphans = self._links[shard].give_up()
        self._links[shard] = path.link
        path.become_server()
        client.replace_session(path.session)
        for update in orphans:
            if update.early is not None:
                update.settle(update.early)
            elif not path.has_copy(update.number):
                self._ask_again(update)

    def _on_copy_done(self, update: OutgoingUpdate, outcome: PartOutcome | HostlibError) -> None:
        is_applied = isinstance(outcome, PartOutcome) and not outcome.drop_reason
        has_moved = update.shard in self._servers
        if update.is_settled:
            self._counters["lost_updates"] += has_moved and not is_applied
        elif has_moved and not is_applied:
            self._ask_again(update)
        elif has_moved:
            update.settle(outcome)
        elif isinstance(outcome, PartOutcome) and is_applied:
            update.early = outcome
        self._give_room()

    def _ask_again(self, update: OutgoingUpdate) -> None:
        self._counters["repeated_requests"] += 1
        update.ask_again()
        self._requests.ask(update)

    def _give_room(self) -> None:
        while self._room_calls and all(
            path.num_copies < MOST_COPIES for path in self._paths.values()
        ):
            self._room_calls.popleft()()


def momentum_of(optimiser: Optimiser) -> float | None:
    """Return the momentum with which norms bound an optimiser's steps; None: they do not."""
    if isinstance(optimiser, GradientSum):
        return 0.0
    return optimiser.momentum if isinstance(optimiser, Sgd) else None


def step_scale(optimiser: Optimiser) -> float:
    """Return by what an update's norm is multiplied to give that of the optimiser's step."""
    return optimiser.learning_rate if isinstance(optimiser, Sgd) else 1.0
