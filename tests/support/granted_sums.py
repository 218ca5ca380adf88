# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A transfer scheduler that grants allreduces, for the scripted one of fake_transfers."""

from __future__ import annotations

import threading
from collections.abc import Collection

from fake_transfers import Caller, FakeTransfers, worker
from switchfold.hostlib.control.transfers_api import transfers_pb2 as api
from switchfold.hostlib.parameter_server.transfers.allreduces.vector_pieces import (
    equal_pieces,
    legs_of,
)

RATE = 10_000_000_000


class SumPolicy:
    """Gathers the requests of all members, and grants equal pieces at one rate."""

    def __init__(
        self, num_members: int, *, rate_bits_per_s: int = RATE, silent_to: Collection[int] = ()
    ) -> None:
        """`silent_to`: members whose requests count, and who hear nothing."""
        self.num_members, self.rate_bits_per_s = num_members, rate_bits_per_s
        self.silent_to = frozenset(silent_to)
        self.needed = num_members
        """So many requests are gathered."""
        self.span = (0.0, 1.0)
        self._waiting: dict[int, api.AllreduceRequested] = {}
        self._lock = threading.Lock()

    def __call__(self, fake: FakeTransfers, caller: Caller, message: api.StationMessage) -> None:
        """Take what a station says."""
        if not message.HasField("allreduce_requested"):
            return
        request = message.allreduce_requested
        if caller.station_id not in self.silent_to:
            noted = api.AllreduceNoted(transfer_id=request.transfer_id)
            fake.tell(caller, api.SchedulerMessage(allreduce_noted=noted))
        with self._lock:
            self._waiting[caller.station_id] = request
            if len(self._waiting) < self.needed:
                return
            waiting, self._waiting = self._waiting, {}
        for worker_id, asked in waiting.items():
            if worker_id not in self.silent_to:
                granted = self.grant(worker_id, asked)
                fake.tell(worker(worker_id), api.SchedulerMessage(allreduce_granted=granted))

    def grant(self, worker_id: int, asked: api.AllreduceRequested) -> api.AllreduceGranted:
        """Return the grant of a member."""
        pieces = equal_pieces(asked.size_bytes // 4, self.num_members)
        start_s, end_s = self.span
        span = api.RateSpan(start_s=start_s, end_s=end_s, rate_bits_per_s=self.rate_bits_per_s)
        return api.AllreduceGranted(
            transfer_id=asked.transfer_id,
            pieces=[api.VectorPiece(**piece._asdict()) for piece in pieces],
            legs=[
                api.PieceLeg(piece=piece, receiver_id=receiver, spans=[span])
                for piece, receiver in legs_of(pieces, worker_id, self.num_members)
            ],
            end_s=1.0,
        )


def failed(
    asked: api.AllreduceRequested, reason: api.AllreduceFailed.Reason, text: str, *worker_ids: int
) -> api.SchedulerMessage:
    """Return the word that there is no sum."""
    return api.SchedulerMessage(
        allreduce_failed=api.AllreduceFailed(
            transfer_id=asked.transfer_id, reason=reason, text=text, worker_ids=worker_ids
        )
    )
