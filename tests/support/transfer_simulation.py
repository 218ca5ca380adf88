# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Asynchronous training in simulated time: workers get, compute and push; plans come true.

Models travel beside the updates, each alone on its worker's link: the scheduler does not plan them.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from switchfold.controller.scheduler.network import TransferNetwork
from switchfold.controller.scheduler.scheduler import TransferScheduler
from switchfold.controller.scheduler.transfers import TransferDrop, TransferGrant
from transfer_cases import SERVER, UPDATE_BYTES, push

COMPUTE_S = 0.1


@dataclass
class TrainingRecord:
    """What a simulation saw."""

    delays: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """By worker, the delay of each commit, counted at the server."""
    sequences: list[int] = field(default_factory=list)
    """Of commits, in their order."""
    drops: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    grants: list[TransferGrant] = field(default_factory=list)
    pushes: int = 0


class TransferSimulation:
    """One server and all other hosts of a star as workers."""

    def __init__(
        self,
        network: TransferNetwork,
        scheduler: TransferScheduler,
        lateness: Callable[[], float] = lambda: 0.0,
        *,
        idle: Collection[str] = (),
        size_bytes: int = UPDATE_BYTES,
        compute_s: float = COMPUTE_S,
    ) -> None:
        """`lateness` returns how late a delivery is; `idle` hosts push nothing."""
        self._network = network
        self._scheduler = scheduler
        self._lateness = lateness
        self._idle = idle
        self._size_bytes = size_bytes
        self._compute_s = compute_s
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._num_events = 0
        self._num_transfers = 0
        self.record = TrainingRecord()

    def run(self, until_s: float) -> TrainingRecord:
        for worker in sorted(self._network.hosts - {SERVER, *self._idle}):
            self._get(worker, 0.0)
        while self._events and self._events[0][0] <= until_s:
            now_s, _, act = heapq.heappop(self._events)
            act(now_s)
        return self.record

    def _at(self, time_s: float, act: Callable[[float], None]) -> None:
        self._num_events += 1
        heapq.heappush(self._events, (time_s, self._num_events, act))

    def _get(self, worker: str, now_s: float) -> None:
        """Send the newest model to a worker, which pushes an update on it."""
        version = self._scheduler.version(SERVER)
        rate = self._network.capacities_bits_per_s[f"s1>{worker}"]
        ready_s = now_s + 8 * self._size_bytes / rate + self._compute_s
        self._at(ready_s, lambda time_s: self._push(worker, version, time_s))

    def _push(self, worker: str, version: int, now_s: float) -> None:
        self._num_transfers += 1
        self.record.pushes += 1
        request = push(
            self._num_transfers, size_bytes=self._size_bytes, version=version, worker=worker
        )
        self._scheduler.submit(request, now_s)
        self._decide(now_s)

    def _decide(self, now_s: float) -> None:
        due_s = self._scheduler.next_due_s()
        if due_s is not None and due_s > now_s:
            self._at(due_s, self._decide)
            return
        for decision in self._scheduler.decide(now_s):
            worker = decision.request.worker
            if isinstance(decision, TransferDrop):
                self.record.drops[worker] += 1
                self._get(worker, now_s)
                continue
            self.record.grants.append(decision)
            if decision.group is None:
                self._deliver_at(decision.planned.end_s, [decision.request.transfer_id])
            elif decision.request is decision.group.members[0].request:
                ids = [member.request.transfer_id for member in decision.group.members]
                self._deliver_at(decision.group.end_s, ids)

    def _deliver_at(self, end_s: float, transfer_ids: list[int]) -> None:
        self._at(end_s + self._lateness(), lambda time_s: self._deliver(transfer_ids, time_s))

    def _deliver(self, transfer_ids: list[int], now_s: float) -> None:
        applied = self._scheduler.version(SERVER)
        for grant in self._scheduler.delivered(transfer_ids, now_s):
            self.record.sequences.append(grant.sequence)
            worker = grant.request.worker
            self.record.delays[worker].append(applied - grant.request.version)
            applied += 1
            self._get(worker, now_s)
        self._decide(now_s)
