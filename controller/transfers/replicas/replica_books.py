# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the replicas of a job, and their servers, are told of updates that are under way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ..server_place import ServerPlace
from ..transfer_messages import skipped_message
from ..transfer_record import TransferRecord
from .replica_messages import allowed_message, expected_replica_message
from .replica_place import ReplicaPlace


class ReplicaBooks:
    """The replicas by the id of their server; JobReplicas decides which there are."""

    def __init__(self) -> None:
        self.replicas: Final[dict[int, ReplicaPlace]] = {}
        self.on_idle: Callable[[ServerPlace], None] = lambda _server: None
        """Called when a server has applied all that was granted."""
        self.on_granted: Callable[[ReplicaPlace, TransferRecord], None] = lambda _to, _what: None
        """Called when an update is on its path to a replica."""

    def served(self, server_id: int) -> ReplicaPlace | None:
        """Return a server's replica if updates go to it."""
        replica = self.replicas.get(server_id)
        return replica if replica is not None and replica.is_served else None

    def is_in_place(self, server_id: int) -> bool:
        """Return whether a server has a replica that may take its place."""
        replica = self.replicas.get(server_id)
        return replica is not None and replica.is_in_place

    def problem(self, server_id: int) -> str:
        """Return why nothing is granted to a server now, "" if something may be."""
        replica = self.replicas.get(server_id)
        if replica is None or replica.is_served or replica.catches_up:
            return ""
        return f"the replica of server {server_id} {replica.state}"

    def granted(self, record: TransferRecord) -> None:
        """Tell a replica of a grant."""
        replica = self.served(record.server_id)
        if replica is None:
            return
        replica.places[record.sequence] = record
        if replica.takes_updates:
            replica.station.send(expected_replica_message(record, record.decided_s))
        self.on_granted(replica, record)

    def skipped(self, server_id: int, sequence: int) -> None:
        """Tell a replica that its server applies nothing for a place."""
        replica = self.served(server_id)
        if replica is not None and sequence in replica.places:
            replica.places[sequence] = None
            if replica.takes_updates:
                replica.station.send(skipped_message(sequence))

    def allow(self, server: ServerPlace, records: Iterable[TransferRecord]) -> None:
        """Let a server apply updates, which are the next in its sequence."""
        replica = self.served(server.server_id)
        sequences = [record.sequence for record in records]
        if replica is not None and sequences:
            replica.allowed = max(replica.allowed, max(sequences) + 1)
            if server.station is not None:
                server.station.send(allowed_message(replica.allowed))
        if not server.num_ahead:
            self.on_idle(server)

    def server_applied(self, server_id: int, next_sequence: int) -> None:
        """Let a replica apply what its server has applied, or will never apply."""
        replica = self.served(server_id)
        if replica is not None and next_sequence > replica.applied:
            replica.applied = next_sequence
            if replica.takes_updates:
                replica.station.send(allowed_message(next_sequence))
