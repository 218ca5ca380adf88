# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What stations are told of replicas."""

from __future__ import annotations

from ....hostlib.control.transfers_api import transfers_pb2 as pb
from ..transfer_record import TransferRecord
from .replica_place import ReplicaPlace


def known_message(replica: ReplicaPlace) -> pb.SchedulerMessage:
    """Return where a replica is, for workers."""
    return pb.SchedulerMessage(
        replica_known=pb.ReplicaKnown(
            server_id=replica.server_id, address=replica.address, port=replica.port
        )
    )


def gone_message(server_id: int) -> pb.SchedulerMessage:
    """Return that a server has no replica any more, for workers."""
    return pb.SchedulerMessage(replica_known=pb.ReplicaKnown(server_id=server_id))


def moved_message(server_id: int, address: str, port: int) -> pb.SchedulerMessage:
    """Return where a server is now, for workers."""
    return pb.SchedulerMessage(
        server_moved=pb.ServerMoved(server_id=server_id, address=address, port=port)
    )


def catch_up_message(state: pb.StateReported) -> pb.SchedulerMessage:
    """Return the state of its server in which a replica is to join."""
    return pb.SchedulerMessage(
        catch_up=pb.CatchUp(log=state.log, lsn=state.lsn, next_sequence=state.next_sequence)
    )


def joined_message(next_sequence: int, hold_s: float) -> pb.SchedulerMessage:
    """Return that a replica has joined, for it and its server."""
    return pb.SchedulerMessage(
        replica_joined=pb.ReplicaJoined(next_sequence=next_sequence, hold_s=hold_s)
    )


def left_message(reason: str) -> pb.SchedulerMessage:
    """Return that a server goes on without a replica."""
    return pb.SchedulerMessage(replica_left=pb.ReplicaLeft(reason=reason))


def allowed_message(next_sequence: int) -> pb.SchedulerMessage:
    """Return how far a server or a replica may apply updates."""
    return pb.SchedulerMessage(allowed=pb.CommitAllowed(next_sequence=next_sequence))


def promoted_message(first_lost: int, next_sequence: int) -> pb.SchedulerMessage:
    """Return that a replica is the server now."""
    return pb.SchedulerMessage(
        promoted=pb.ReplicaPromoted(first_lost=first_lost, next_sequence=next_sequence)
    )


def expected_replica_message(record: TransferRecord, now_s: float) -> pb.SchedulerMessage:
    """Return what a replica is told of a grant."""
    assert record.grant is not None, "a granted record has its grant"
    transfer = record.grant.replica_transfer
    spans = transfer.spans if transfer else ()
    return pb.SchedulerMessage(
        expected=pb.CommitExpected(
            sequence=record.sequence,
            worker_id=record.worker_id,
            transfer_id=record.transfer_id,
            learning_rate_factor=record.rate_factor,
            due_s=max(transfer.end_s - now_s, 0.0) if transfer else 0.0,
            begins_s=max(spans[0].start_s - now_s, 0.0) if spans else 0.0,
        )
    )
