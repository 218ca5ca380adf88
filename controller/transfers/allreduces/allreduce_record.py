# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One granted allreduce of a job's workers, and what each of them is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ....hostlib.control.transfers_api import transfers_pb2 as pb
from ...jobs.punctual_timer import PunctualTimer
from ...scheduler.state.open_allreduces import AllreduceGrant
from ..transfer_messages import spans_from


@dataclass(kw_only=True)
class AllreduceTally:
    """What has become of a job's allreduces since it began."""

    granted: int = 0
    ended: int = 0
    """Of those granted: no member waits for them any more."""
    overdue: int = 0
    """Likewise, but some member had said nothing for too long, and what was reserved is free."""
    failed: int = 0
    """Not granted: members disagreed, were missing or lost, or it could not be planned."""


@dataclass(kw_only=True, eq=False)
class AllreduceRecord:
    """An allreduce from its grant until all members have ended it; times are the loop's."""

    requests: Mapping[int, pb.AllreduceRequested]
    """By worker, from 0."""
    hosts: tuple[str, ...]
    """Of the workers, in the order of their ids."""
    grant: AllreduceGrant
    running: set[int] = field(default_factory=set[int])
    """Workers that have not ended it."""
    timer: PunctualTimer | None = None
    """Ends the wait for them."""

    @property
    def number(self) -> int:
        """Of the members' count."""
        return self.requests[0].number

    @property
    def size_bytes(self) -> int:
        """Of the vector."""
        return self.requests[0].size_bytes

    @property
    def name(self) -> str:
        """What the log calls it."""
        return f"allreduce {self.number} of {len(self.hosts)} members"

    def pieces(self) -> list[pb.VectorPiece]:
        """Return the pieces of the vector in order."""
        ids = {host: worker_id for worker_id, host in enumerate(self.hosts)}
        roots = {(leg.start_byte, leg.stop_byte): ids[leg.receiver] for leg in self.grant.plan.up}
        return [
            pb.VectorPiece(root_id=roots[start, stop], start_byte=start, stop_byte=stop)
            for start, stop in sorted(roots)
        ]

    def message(self, worker_id: int, now_s: float) -> pb.SchedulerMessage:
        """Return the grant of one worker: all pieces, and its own legs."""
        plan, pieces = self.grant.plan, self.pieces()
        places = {piece.start_byte: place for place, piece in enumerate(pieces)}
        ids = {host: number for number, host in enumerate(self.hosts)}
        legs = [
            pb.PieceLeg(
                piece=places[leg.start_byte],
                receiver_id=ids[leg.receiver],
                spans=spans_from(leg.spans, now_s),
            )
            for leg in (*plan.up, *plan.down)
            if leg.sender == self.hosts[worker_id]
        ]
        return pb.SchedulerMessage(
            allreduce_granted=pb.AllreduceGranted(
                transfer_id=self.requests[worker_id].transfer_id,
                pieces=pieces,
                legs=legs,
                end_s=max(plan.end_s - now_s, 0.0),
            )
        )

    def stop_timer(self) -> None:
        """End no wait any more."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
