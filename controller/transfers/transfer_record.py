# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One transfer from its request to its end, and the transfers of one worker."""

from __future__ import annotations

import enum
from collections import OrderedDict
from dataclasses import dataclass, field, fields
from typing import Final

from ...hostlib.control.transfers_api import transfers_pb2 as pb
from ..errors import NoRoomError, TransferRefusedError
from ..jobs.punctual_timer import PunctualTimer
from ..scheduler.tally import WorkerTally
from ..scheduler.transfers import TransferDrop, TransferGrant
from .live_station import LiveStation

REMEMBERED: Final = 256
"""Transfers of a worker that are remembered, so that messages about ended ones are known."""


class TransferState(enum.StrEnum):
    """How far a transfer is."""

    PARKED = "parked"
    """Not at the scheduler: its server is not there, or has not reported the update's version."""
    WAITING = "waiting"
    """The scheduler has not decided."""
    GRANTED = "granted"
    ARRIVED = "arrived"
    """At its server, which waits for the places before it."""
    COMMITTED = "committed"
    """Applied, or next to be."""
    DROPPED = "dropped"
    WITHDRAWN = "withdrawn"
    """Given up; it may still come without a grant."""

    @property
    def is_open(self) -> bool:
        """Whether the worker or the server still waits for something."""
        return self in _OPEN

    @property
    def is_waiting(self) -> bool:
        """Whether nobody has decided."""
        return self in (TransferState.PARKED, TransferState.WAITING)


_OPEN: Final = frozenset(
    (
        TransferState.PARKED,
        TransferState.WAITING,
        TransferState.GRANTED,
        TransferState.ARRIVED,
    )
)


@dataclass(kw_only=True)
class WorkerCounts:
    """What has become of a worker's updates, since its job began."""

    pushes: int = 0
    """Requests that were taken."""
    grants: int = 0
    commits: int = 0
    """Granted updates that their servers have applied, or apply next."""
    drops: int = 0
    withdrawn: int = 0
    """Given up by the worker, with the worker, or because they were overdue."""
    overdue: int = 0
    """Those that were overdue."""
    ungranted: int = 0
    """Updates that servers applied without a grant."""
    refused: int = 0
    """Updates that servers did not apply."""
    early: int = 0
    """Granted updates that came long before their times, as servers say."""
    refused_commits: int = 0
    """Of those refused: were counted in `commits` before, and are not any more."""
    refused_ungranted: int = 0
    """Likewise of `ungranted`."""

    def refuse_late(self, *, is_direct: bool) -> None:
        """Count an update as refused that was counted as applied."""
        if is_direct:
            self.ungranted -= 1
            self.refused_ungranted += 1
        else:
            self.commits -= 1
            self.refused_commits += 1

    def add(self, other: WorkerCounts) -> None:
        """Add the counts of another worker."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


@dataclass(kw_only=True, eq=False)
class TransferRecord:
    """What is known of a transfer."""

    worker_id: int
    request: pb.TransferRequested
    state: TransferState = TransferState.PARKED
    parked_for: str = ""
    """What a parked request waits for."""
    number: int | None = None
    """Its id at the scheduler."""
    requested_s: float = 0.0
    """On the loop's clock, as all times here."""
    decided_s: float = 0.0
    grant: TransferGrant | None = None
    sequence: int = 0
    """Of a grant: its place in the server's commit sequence."""
    drop: TransferDrop | None = None
    drop_reason: str = ""
    rate_factor: float = 0.0
    """Of a grant: the server scales the update by it; 0: by 1."""
    headroom: float = 1.0
    """Of a grant: how many times as fast as planned the worker may send."""
    hop: pb.GroupHop | None = None
    """Of a grant: the aggregator; None: the update goes to its server."""
    is_direct: bool = False
    """It came without a grant, or after that was given up."""
    is_refused: bool = False
    """Its server does not apply it."""
    is_at_replica: bool = False
    """The replica of its server has its bytes."""
    ended_s: float = 0.0
    timer: PunctualTimer | None = None
    """Ends the wait of a parked request, or of a granted update."""

    @property
    def transfer_id(self) -> int:
        """The worker's number for it."""
        return self.request.transfer_id

    @property
    def key(self) -> tuple[int, int]:
        """Its worker, and the worker's number for it."""
        return self.worker_id, self.transfer_id

    @property
    def server_id(self) -> int:
        """Where it goes."""
        return self.request.server_id

    @property
    def name(self) -> str:
        """What errors call it."""
        return f"transfer {self.transfer_id} of worker {self.worker_id}"

    def stop_timer(self) -> None:
        """End no wait any more."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


@dataclass(kw_only=True)
class WorkerPlace:
    """A worker's place in its job: who has it, and its transfers."""

    worker_id: int
    station: LiveStation | None = None
    """None: it is lost."""
    identity: bytes = b""
    """Of the last process that had the place."""
    first_id: int
    """Ids of that process should begin here."""
    floor_id: int = 0
    """They must: earlier processes had those below. What an earlier controller has not answered
    may lie between the two."""
    last_id: int = -1
    """Highest id of that process since it registered."""
    highest_id: int = -1
    """That any process has used."""
    records: OrderedDict[int, TransferRecord] = field(
        default_factory=OrderedDict[int, TransferRecord]
    )
    """By id, in the order of requests: all that are open, and the last that have ended."""
    counts: WorkerCounts = field(default_factory=WorkerCounts)
    achieved_bits_per_s: float = 0.0
    """Rate of its last granted update, as it says; 0: not known."""
    granted_bits_per_s: float = 0.0
    """Mean rate by the plan of that update."""

    @property
    def open_records(self) -> list[TransferRecord]:
        """What waits or is under way."""
        return [record for record in self.records.values() if record.state.is_open]

    @property
    def tally(self) -> WorkerTally:
        """Its updates as the scheduler counts them; those that servers refused are left out."""
        counts, open_records = self.counts, self.open_records
        waiting = sum(record.state.is_waiting for record in open_records)
        return WorkerTally(
            pushes=counts.pushes,
            waiting=waiting,
            granted=len(open_records) - waiting,
            commits=counts.commits,
            drops=counts.drops,
            withdrawn=counts.withdrawn,
        )

    @property
    def next_id(self) -> int:
        """The least id of a new request."""
        return max(self.first_id, self.last_id + 1)

    def take_place(self, station: LiveStation) -> None:
        """Give the place to a process; ids of another one than before follow all earlier ids.

        A process that was lost and comes back may ask again for what was withdrawn.
        """
        if station.identity != self.identity:
            self.floor_id = self.highest_id + 1
            self.first_id = max(self.first_id, self.floor_id)
        for record in [*self.records.values()]:
            if record.state is TransferState.WITHDRAWN:
                del self.records[record.transfer_id]
        self.last_id = self.floor_id - 1
        self.identity = station.identity
        self.station = station

    def check_new(self, request: pb.TransferRequested, most_open: int) -> None:
        """Raise TransferRefusedError or NoRoomError unless a request may be taken."""
        if request.transfer_id <= self.last_id:
            raise TransferRefusedError(
                f"transfer {request.transfer_id} of worker {self.worker_id}: its id is not above "
                f"{self.last_id}, the last one; number a worker's transfers upwards from the "
                "next_transfer_id of Registered"
            )
        if len(self.open_records) >= most_open:
            raise NoRoomError(
                f"worker {self.worker_id} has {most_open} transfers that wait or are under way, "
                "and no more are taken; ask for fewer at a time, or raise max_open_per_worker of "
                "[transfers]"
            )

    def add(self, record: TransferRecord) -> None:
        """Keep a transfer; ended ones beyond the last few are forgotten."""
        self.last_id = record.transfer_id
        self.highest_id = max(self.highest_id, self.last_id)
        self.records[record.transfer_id] = record
        while len(self.records) > REMEMBERED:
            oldest = next((each for each in self.records.values() if not each.state.is_open), None)
            if oldest is None:
                return
            del self.records[oldest.transfer_id]
