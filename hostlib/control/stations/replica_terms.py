# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the scheduler and the stations tell each other of replicas."""

from __future__ import annotations

from typing import Final, NamedTuple

MOST_COPIES: Final = 64
"""Updates of a worker to a replica that it has not applied; with more, further pushes wait."""


class ReplicaKnown(NamedTuple):
    """To a worker: where a server's replica is."""

    server_id: int
    address: tuple[str, int] | None
    """None: the server has no replica any more."""


class ServerMoved(NamedTuple):
    """To a worker: the replica is the server now."""

    server_id: int
    address: tuple[str, int]


class StateWanted(NamedTuple):
    """To a server and a replica: apply nothing more for now, and report the state."""

    next_sequence: int = 0
    """To a server: first apply what has a place below."""


class CatchUpWanted(NamedTuple):
    """To a replica: apply what the server's log has up to a record, and report the state."""

    log: bytes
    """Identity of the log."""
    lsn: int
    """Of that record."""
    next_sequence: int
    """The first place whose update comes from its worker."""


class ReplicaJoined(NamedTuple):
    """To a server and a replica: commits need CommitAllowed from now on."""

    next_sequence: int
    """The first place that both have not applied."""
    hold_s: float
    """A server that hears nothing waits so long, and then goes on without a replica."""


class ReplicaLeft(NamedTuple):
    """To a server: it goes on without a replica."""

    reason: str


class CommitAllowed(NamedTuple):
    """To a server and a replica: the places below may be applied."""

    next_sequence: int


class ReplicaPromoted(NamedTuple):
    """To a replica: it is the server now."""

    first_lost: int
    """The first place that it does not apply."""
    next_sequence: int
    """The first place that is still open; nothing comes for those between."""


ReplicaEvent = (
    ReplicaKnown
    | ServerMoved
    | StateWanted
    | CatchUpWanted
    | ReplicaJoined
    | ReplicaLeft
    | CommitAllowed
    | ReplicaPromoted
)


class ReplicaReady(NamedTuple):
    """A worker has given a replica the model that it knows."""

    server_id: int
    address: str
    port: int


class StateReported(NamedTuple):
    """What a server or a replica has."""

    version: int
    """Number of updates that the model contains."""
    checksum: int
    """64 bits, of keys, values and the optimiser's state."""
    next_sequence: int
    """The first place of the commit sequence that is not over."""
    lsn: int = 0
    """Of the last record of the log that the model contains; 0: there is none."""
    log: bytes = b""
    """Identity of the log; empty: there is none."""
    step: float = 0.0
    """The most by which the optimiser's momentum can move the model at once: its norm times the
    learning rate."""


class ReplicaReceived(NamedTuple):
    """A replica has an update's bytes."""

    worker_id: int
    transfer_id: int


class ReplicaFailed(NamedTuple):
    """A replica cannot follow its server any more."""

    reason: str


ReplicaReport = ReplicaReady | StateReported | ReplicaReceived | ReplicaFailed
