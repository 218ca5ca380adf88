# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A scheduler in the stations' own process that grants one group of all who wait."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from switchfold.hostlib.control.stations.model_terms import ModelRequested
from switchfold.hostlib.control.stations.station import (
    CommitExpected,
    CommitSkipped,
    ExpectedMember,
    GrantedSpan,
    GroupHop,
    GroupLeft,
    ServerProgress,
    StationEvent,
    StationKind,
    StationRegistered,
    StationReport,
    StationRequest,
    SwitchGroupExpected,
    SwitchMembers,
    TransferDelivered,
    TransferGranted,
    TransferRequested,
)
from time_bound import wait_until

FAST = (GrantedSpan(0.0, 0.001, 10_000_000_000),)


class SceneStation:
    """In place of a TransferStation."""

    def __init__(
        self,
        scheduler: SceneScheduler,
        request: StationRequest,
        *,
        on_event: Callable[[StationEvent], None],
        progress: Callable[[], ServerProgress] = ServerProgress,
        **rest: Any,
    ) -> None:
        self.request, self.on_event, self.progress = request, on_event, progress
        self._scheduler = scheduler

    def start(self) -> None:
        self._scheduler.register(self)

    def send(self, report: StationReport, registration: int) -> None:
        self._scheduler.take(self, report)

    def become_server(self) -> None:
        raise AssertionError("there are no replicas")

    def close(self) -> None:
        self._scheduler.leave(self)


class SceneScheduler:
    """Grants when all workers wait, or by `gather`, one update of each; models at once."""

    def __init__(self) -> None:
        self.members: set[int] = set()
        """Workers whose updates the server's switch can add up, as it says."""
        self.left: list[GroupLeft] = []
        self.spans = FAST
        self.factor = 1.0
        self.gather_s = 60.0
        self.next_sequence = 0
        self._num_groups = 0
        self._lock = threading.RLock()
        self._workers: dict[int, SceneStation] = {}
        self._server: SceneStation | None = None
        self._waiting: dict[int, list[TransferRequested]] = {}
        self._open: dict[tuple[int, int], int] = {}
        """Places of updates that have not come, by worker and transfer."""

    def station(self, request: StationRequest, **callbacks: Any) -> SceneStation:
        return SceneStation(self, request, **callbacks)

    def register(self, station: SceneStation) -> None:
        with self._lock:
            if station.request.kind is StationKind.SERVER:
                self._server = station
                self.members = set()
            else:
                self._workers[station.request.station_id] = station
                self._waiting[station.request.station_id] = []
            told = StationRegistered(
                grant_wait_s=600.0, next_transfer_id=1, next_sequence=self.next_sequence
            )
            station.on_event(told)

    def leave(self, station: SceneStation) -> None:
        with self._lock:
            if station is self._server:
                self._server = None
                return
            gone = station.request.station_id
            if self._workers.get(gone) is station:
                del self._workers[gone], self._waiting[gone]
            for key in [key for key in self._open if key[0] == gone]:
                self._tell_server(CommitSkipped(self._open.pop(key)))

    def take(self, station: SceneStation, report: StationReport) -> None:
        with self._lock:
            if isinstance(report, TransferRequested):
                self._waiting[station.request.station_id].append(report)
                if all(self._waiting.values()):
                    self._grant()
            elif isinstance(report, ModelRequested):
                station.on_event(TransferGranted(report.transfer_id, (), 0, 1.0))
            elif isinstance(report, SwitchMembers):
                self.members = set(report.worker_ids)
            elif isinstance(report, GroupLeft):
                self.left.append(report)
            elif isinstance(report, TransferDelivered):
                self._open.pop((report.worker_id, report.transfer_id), None)

    def gather(self, count: int) -> None:
        """Wait until so many workers wait, and grant a group of them."""
        wait_until(lambda: self._num_waiting() >= count, f"{count} requests")
        with self._lock:
            self._grant()

    def _num_waiting(self) -> int:
        with self._lock:
            return sum(map(bool, self._waiting.values()))

    def _grant(self) -> None:
        first = {worker: found.pop(0) for worker, found in self._waiting.items() if found}
        grouped = sorted(self.members & first.keys())
        grouped = grouped if len(grouped) > 1 else []
        order = [*grouped, *sorted(first.keys() - set(grouped))]
        self._num_groups += 1
        hop = GroupHop(self._num_groups, len(grouped), 0, ("", 0), 0.0, is_switch=True)
        grants: list[tuple[int, TransferGranted]] = []
        for worker in order:
            asked, sequence = first[worker], self.next_sequence
            self.next_sequence += 1
            self._open[worker, asked.transfer_id] = sequence
            self._tell_server(
                CommitExpected(sequence, worker, asked.transfer_id, self.factor, 0.0, 0.0, 0)
            )
            own_hop = hop if worker in grouped else None
            grants.append(
                (
                    worker,
                    TransferGranted(asked.transfer_id, self.spans, sequence, self.factor, own_hop),
                )
            )
        if grouped:
            members = tuple(ExpectedMember(each, first[each].transfer_id) for each in grouped)
            start_s = self.spans[0].start_s
            self._tell_server(
                SwitchGroupExpected(self._num_groups, members, start_s, start_s + self.gather_s)
            )
        for worker, grant in grants:
            self._workers[worker].on_event(grant)

    def _tell_server(self, event: StationEvent) -> None:
        if self._server is not None:
            self._server.on_event(event)
