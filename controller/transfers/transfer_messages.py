# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What stations are told of grants, drops and places."""

from __future__ import annotations

from collections.abc import Sequence

from ...hostlib.control.transfers_api import transfers_pb2 as pb
from ..scheduler.residual_rate import RateSpan
from .transfer_record import TransferRecord


def spans_from(spans: Sequence[RateSpan], now_s: float, headroom: float = 1.0) -> list[pb.RateSpan]:
    """Return a schedule that counts from now; one that would have begun is moved as a whole.

    Its rates are `headroom` times as high as planned.
    """
    begin_s = max(spans[0].start_s, now_s) - spans[0].start_s if spans else 0.0
    return [
        pb.RateSpan(
            start_s=span.start_s + begin_s - now_s,
            end_s=span.end_s + begin_s - now_s,
            rate_bits_per_s=round(headroom * span.rate_bits_per_s),
        )
        for span in spans
    ]


def granted_message(record: TransferRecord, now_s: float) -> pb.SchedulerMessage:
    """Return the grant of a record."""
    grant = record.grant
    assert grant is not None, "a granted record has its grant"
    replica = grant.replica_transfer
    return pb.SchedulerMessage(
        granted=pb.TransferGranted(
            transfer_id=record.transfer_id,
            spans=spans_from(grant.spans, now_s, record.headroom),
            has_replica=replica is not None,
            replica_spans=spans_from(replica.spans, now_s) if replica is not None else [],
            sequence=record.sequence,
            delay=grant.delay,
            learning_rate_factor=record.rate_factor,
            hop=record.hop,
        )
    )


def expected_message(record: TransferRecord, now_s: float) -> pb.SchedulerMessage:
    """Return what a server is told of a grant."""
    grant = record.grant
    assert grant is not None, "a granted record has its grant"
    end_s = (grant.group or grant.planned).end_s
    start_s = grant.spans[0].start_s if grant.spans else end_s
    return pb.SchedulerMessage(
        expected=pb.CommitExpected(
            sequence=record.sequence,
            worker_id=record.worker_id,
            transfer_id=record.transfer_id,
            learning_rate_factor=record.rate_factor,
            due_s=max(end_s - now_s, 0.0),
            size_bytes=record.request.size_bytes,
            earliest_s=max(start_s + (end_s - start_s) / record.headroom - now_s, 0.0),
            begins_s=max(start_s - now_s, 0.0),
        )
    )


def dropped_message(record: TransferRecord) -> pb.SchedulerMessage:
    """Return the drop of a record."""
    return pb.SchedulerMessage(
        dropped=pb.TransferDropped(
            transfer_id=record.transfer_id,
            reason=record.drop_reason,
            delay=record.drop.delay if record.drop else 0,
        )
    )


def refused_message(transfer_id: int, error: Exception) -> pb.SchedulerMessage:
    """Return which request an error is about; the stream ends with it then."""
    refused = pb.TransferRefused(transfer_id=transfer_id, reason=str(error))
    return pb.SchedulerMessage(refused=refused)


def skipped_message(sequence: int) -> pb.SchedulerMessage:
    """Return that nothing comes for a place."""
    return pb.SchedulerMessage(skipped=pb.CommitSkipped(sequence=sequence))
