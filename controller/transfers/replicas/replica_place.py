# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The replica of one server: who it is, how far its joining is, and what it lacks."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field

from ....hostlib.control.transfers_api import transfers_pb2 as pb
from ...jobs.punctual_timer import PunctualTimer
from ..live_station import LiveStation, StationRole
from ..transfer_record import TransferRecord, TransferState


class ReplicaState(enum.StrEnum):
    """How far a replica is."""

    WAITING = "waits for its server, or for workers"
    """Not all workers have given it the model that they know. Nothing is granted meanwhile."""
    COMPARING = "is compared with its server"
    """Likewise."""
    CATCHING_UP = "catches up with its server"
    """It has a place to begin from. It takes the updates before it from its server's log, and those
    from there on come from the workers. Commits do not wait for it."""
    SETTLING = "comes near to its server"
    """It has all updates up to there, and is still farther from its server than div_max. Commits
    wait for it."""
    IN_PLACE = "in place"
    """It may take its server's place."""


@dataclass(kw_only=True)
class ReplicaPlace:
    """What is known of a server's replica."""

    server_id: int
    station: LiveStation
    address: str
    """Where workers reach it, with `port`."""
    port: int
    name: str
    """At the scheduler."""
    catches_up: bool = False
    """It can read its server's log, so that updates go on while it joins."""
    state: ReplicaState = ReplicaState.WAITING
    ready: set[int] = field(default_factory=set[int])
    """Workers that have given it the model."""
    reports: dict[StationRole, pb.StateReported] = field(
        default_factory=dict[StationRole, pb.StateReported]
    )
    """While it is compared: what it and its server have said."""
    is_asked: bool = False
    """Both have been asked."""
    places: dict[int, TransferRecord | None] = field(
        default_factory=dict[int, TransferRecord | None]
    )
    """By place of the server's sequence, in order: what the replica has not applied. None: nothing
    comes."""
    allowed: int = 0
    """The server may apply the places below it."""
    applied: int = 0
    """The places below it are over at the server, so the replica may apply them."""
    timer: PunctualTimer | None = None
    """Ends the wait for answers, or for updates that are late."""

    @property
    def is_in_place(self) -> bool:
        """Whether it may take its server's place."""
        return self.state is ReplicaState.IN_PLACE

    @property
    def is_served(self) -> bool:
        """Whether workers send it what is granted, and commits need the scheduler's word."""
        return self.state is ReplicaState.CATCHING_UP or self.takes_updates

    @property
    def takes_updates(self) -> bool:
        """Whether it lets workers in, and hears of places."""
        return self.state in (ReplicaState.SETTLING, ReplicaState.IN_PLACE)

    def num_lacked_of(self, worker_id: int) -> int:
        """Return how many of a worker's updates are on their path to it."""
        records = _records(self.places.values())
        return sum(each.worker_id == worker_id and not each.is_at_replica for each in records)

    def stop_timer(self) -> None:
        """End no wait any more."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def forget_applied(self, next_sequence: int) -> None:
        """Note that the places below are over at the replica."""
        for sequence in [each for each in self.places if each < next_sequence]:
            del self.places[sequence]

    def first_lost(self, next_sequence: int) -> int:
        """Return the first place whose update the replica cannot apply if the server is gone.

        `next_sequence` if it has all that the server may have applied.
        """
        for sequence, record in self.places.items():
            if record is None:
                continue
            if record.state is not TransferState.COMMITTED or not record.is_at_replica:
                return sequence
        return next_sequence

    def lacks_of(self, worker_id: int) -> bool:
        """Whether updates of a worker are at the server, or applied there, but not here."""
        there = (TransferState.ARRIVED, TransferState.COMMITTED)
        return any(
            record.worker_id == worker_id and record.state in there and not record.is_at_replica
            for record in _records(self.places.values())
        )

    def is_late(self, now_s: float) -> bool:
        """Whether an update should have come by its plan."""
        for record in _records(self.places.values()):
            transfer = record.grant and record.grant.replica_transfer
            if transfer and not record.is_at_replica and transfer.end_s <= now_s:
                return True
        return False


def _records(places: Iterable[TransferRecord | None]) -> list[TransferRecord]:
    return [record for record in places if record is not None]
