# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A transfer scheduler that grants all updates in groups at one worker."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict

from fake_transfers import Caller, FakeTransfers, expected, server, worker
from switchfold.hostlib.control.transfers_api import transfers_pb2 as api

RATE = 10_000_000_000


class GroupPolicy:
    """Collects `size` requests of a server, and grants them as a group at one worker."""

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
        self.ghosts: list[tuple[int, int]] = []
        """Workers and transfers that are members of each group, too, and never come."""
        self.tells_aggregator = True
        self.tells_server = True
        self.sum_span = (0.0, 1.0, RATE)
        self.kind = int(api.GroupHop.HOST)
        self.place: tuple[str, int] | None = None
        """Where the members are sent; None: where the aggregator listens."""
        self.first_sequence = 0
        """Place of the first update at each server."""
        self.num_groups = 0
        self._waiting: defaultdict[int, list[tuple[int, api.TransferRequested]]]
        self._waiting = defaultdict(list)
        self._num_placed: Counter[int] = Counter()
        self._lock = threading.Lock()

    def __call__(self, fake: FakeTransfers, caller: Caller, message: api.StationMessage) -> None:
        """Take what a station says."""
        if not message.HasField("requested"):
            return
        server_id = message.requested.server_id
        with self._lock:  # each stream has a thread of its own
            self._waiting[server_id].append((caller.station_id, message.requested))
            if len(self._waiting[server_id]) == self.size:
                self._grant(fake, self._waiting.pop(server_id))

    def _grant(self, fake: FakeTransfers, members: list[tuple[int, api.TransferRequested]]) -> None:
        told = fake.said(worker(self.aggregator), "register")[-1].aggregator
        address, port = self.place or (told.address, told.port)
        group_id, self.num_groups = self.num_groups, self.num_groups + 1
        server_id = members[0][1].server_id
        first = self.first_sequence + self._num_placed[server_id]
        self._num_placed[server_id] += len(members)
        span = self._span(0.0, 1.0, RATE)
        if self.tells_server:
            for sequence, (number, asked) in enumerate(members, first):
                fake.tell(server(server_id), expected(sequence, number, asked.transfer_id))
        if self.tells_aggregator:
            gather = api.GatherExpected(
                group_id=group_id,
                server_id=server_id,
                members=[
                    api.GroupMember(worker_id=number, transfer_id=asked.transfer_id)
                    for number, asked in members
                ]
                + [api.GroupMember(worker_id=w, transfer_id=t) for w, t in self.ghosts],
                spans=[self._span(*self.sum_span)],
                gather_s=self.gather_s,
            )
            fake.tell(worker(self.aggregator), api.SchedulerMessage(gather=gather))
        hop = api.GroupHop(
            kind=self.kind,  # type: ignore[arg-type]
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

    @staticmethod
    def _span(start_s: float, end_s: float, rate: int) -> api.RateSpan:
        return api.RateSpan(start_s=start_s, end_s=end_s, rate_bits_per_s=rate)
