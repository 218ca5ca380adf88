# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A transfer scheduler that grants all updates in groups at one worker."""

from __future__ import annotations

from fake_transfers import Caller, FakeTransfers, expected, server, worker
from switchfold.hostlib.control.transfers_api import transfers_pb2 as api

RATE = 10_000_000_000


class GroupPolicy:
    """Collects `size` requests, and grants them as one group at a worker that has registered."""

    def __init__(
        self,
        size: int,
        aggregator: int,
        *,
        factor: float = 0.0,
        gather_s: float = 60.0,
        outcome_s: float = 60.0,
    ) -> None:
        """`factor` is that of all members; 0 stands for 1."""
        self.size, self.aggregator = size, aggregator
        self.factor, self.gather_s, self.outcome_s = factor, gather_s, outcome_s
        self.withheld: set[int] = set()
        """Workers that are in groups, but get no grants."""
        self.tells_aggregator = True
        self.tells_server = True
        self.place: tuple[str, int] | None = None
        """Where the members are sent; None: where the aggregator listens."""
        self._waiting: list[tuple[int, api.TransferRequested]] = []
        self._next_sequence = 0
        self.num_groups = 0

    def __call__(self, fake: FakeTransfers, caller: Caller, message: api.StationMessage) -> None:
        """Take what a station says."""
        if not message.HasField("requested"):
            return
        self._waiting.append((caller.station_id, message.requested))
        if len(self._waiting) == self.size:
            members, self._waiting = self._waiting, []
            self._grant(fake, members)

    def _grant(self, fake: FakeTransfers, members: list[tuple[int, api.TransferRequested]]) -> None:
        told = fake.said(worker(self.aggregator), "register")[-1].aggregator
        address, port = self.place or (told.address, told.port)
        group_id, self.num_groups = self.num_groups, self.num_groups + 1
        first = self._next_sequence
        self._next_sequence += len(members)
        span = api.RateSpan(start_s=0.0, end_s=1.0, rate_bits_per_s=RATE)
        if self.tells_server:
            for sequence, (number, asked) in enumerate(members, first):
                fake.tell(server(asked.server_id), expected(sequence, number, asked.transfer_id))
        if self.tells_aggregator:
            gather = api.GatherExpected(
                group_id=group_id,
                server_id=members[0][1].server_id,
                members=[
                    api.GroupMember(worker_id=number, transfer_id=asked.transfer_id)
                    for number, asked in members
                ],
                spans=[span],
                gather_s=self.gather_s,
            )
            fake.tell(worker(self.aggregator), api.SchedulerMessage(gather=gather))
        hop = api.GroupHop(
            kind=api.GroupHop.HOST,
            group_id=group_id,
            num_members=len(members),
            worker_id=self.aggregator,
            address=address,
            port=port,
            outcome_s=self.outcome_s,
        )
        for sequence, (number, asked) in enumerate(members, first):
            if number in self.withheld:
                continue
            granted = api.TransferGranted(
                transfer_id=asked.transfer_id,
                spans=[span],
                sequence=sequence,
                learning_rate_factor=self.factor,
                hop=hop,
            )
            fake.tell(worker(number), api.SchedulerMessage(granted=granted))
