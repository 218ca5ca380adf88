# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Messages about allreduces on a worker's stream; gRPC's become ours here."""

from __future__ import annotations

import math
from typing import Final

from ..transfers_api import transfers_pb2 as api
from .allreduce_terms import (
    AllreduceEvent,
    AllreduceFailed,
    AllreduceGranted,
    AllreduceNoted,
    AllreduceProblem,
    AllreduceReport,
    AllreduceRequested,
    PieceLeg,
    VectorPiece,
)
from .granted_spans import granted_spans

_PROBLEMS: Final = {
    api.AllreduceFailed.REFUSED: AllreduceProblem.REFUSED,
    api.AllreduceFailed.MISMATCH: AllreduceProblem.MISMATCH,
    api.AllreduceFailed.MISSING: AllreduceProblem.MISSING,
    api.AllreduceFailed.LOST: AllreduceProblem.LOST,
}


def allreduce_message(report: AllreduceReport) -> api.StationMessage:
    """Return what to send of a report."""
    fields = report._asdict()
    if isinstance(report, AllreduceRequested):
        return api.StationMessage(allreduce_requested=api.AllreduceRequested(**fields))
    return api.StationMessage(allreduce_ended=api.AllreduceEnded(**fields))


def allreduce_event(message: api.SchedulerMessage) -> AllreduceEvent:
    """Return what a message says of an allreduce.

    A schedule that cannot be used leaves out its leg, so that the member finds the grant unusable.
    """
    if message.HasField("allreduce_noted"):
        return AllreduceNoted(message.allreduce_noted.transfer_id)
    if message.HasField("allreduce_failed"):
        failed = message.allreduce_failed
        problem = _PROBLEMS.get(failed.reason, AllreduceProblem.REFUSED)
        return AllreduceFailed(failed.transfer_id, problem, failed.text, tuple(failed.worker_ids))
    granted = message.allreduce_granted
    legs: list[PieceLeg] = []
    for leg in granted.legs:
        spans = granted_spans(leg.spans, f"a leg of allreduce {granted.transfer_id}")
        if spans is not None:
            legs.append(PieceLeg(leg.piece, leg.receiver_id, spans))
    return AllreduceGranted(
        granted.transfer_id,
        tuple(
            VectorPiece(piece.root_id, piece.start_byte, piece.stop_byte)
            for piece in granted.pieces
        ),
        tuple(legs),
        max(0.0, granted.end_s) if math.isfinite(granted.end_s) else 0.0,
    )
