# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Messages about replicas on a station's stream; gRPC's become ours here."""

from __future__ import annotations

import math

from ..transfers_api import transfers_pb2 as api
from .replica_terms import (
    CatchUpWanted,
    CommitAllowed,
    ReplicaEvent,
    ReplicaFailed,
    ReplicaJoined,
    ReplicaKnown,
    ReplicaLeft,
    ReplicaPromoted,
    ReplicaReady,
    ReplicaReceived,
    ReplicaReport,
    ServerMoved,
    StateWanted,
)


def replica_message(report: ReplicaReport) -> api.StationMessage:
    """Return what to send of a report."""
    fields = report._asdict()
    if isinstance(report, ReplicaReady):
        return api.StationMessage(replica_ready=api.ReplicaReady(**fields))
    if isinstance(report, ReplicaReceived):
        return api.StationMessage(replica_received=api.ReplicaReceived(**fields))
    if isinstance(report, ReplicaFailed):
        return api.StationMessage(replica_failed=api.ReplicaFailed(**fields))
    return api.StationMessage(state=api.StateReported(**fields))


def replica_event(message: api.SchedulerMessage) -> ReplicaEvent | None:
    """Return what a message says of replicas; None if this release cannot use it."""
    event: ReplicaEvent | None = None  # of a later release
    match message.WhichOneof("message"):
        case "replica_known":
            known = message.replica_known
            address = (known.address, known.port) if known.address else None
            event = ReplicaKnown(known.server_id, address)
        case "server_moved":
            moved = message.server_moved
            event = ServerMoved(moved.server_id, (moved.address, moved.port))
        case "report_state":
            event = StateWanted(message.report_state.next_sequence)
        case "catch_up":
            wanted = message.catch_up
            event = CatchUpWanted(wanted.log, wanted.lsn, wanted.next_sequence)
        case "replica_joined":
            joined = message.replica_joined
            hold_s = max(0.0, joined.hold_s) if math.isfinite(joined.hold_s) else 0.0
            event = ReplicaJoined(joined.next_sequence, hold_s)
        case "replica_left":
            event = ReplicaLeft(message.replica_left.reason)
        case "allowed":
            event = CommitAllowed(message.allowed.next_sequence)
        case "promoted":
            promoted = message.promoted
            event = ReplicaPromoted(promoted.first_lost, promoted.next_sequence)
        case _:
            pass
    return event
