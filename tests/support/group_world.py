# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The members of one switch group, the reference switch and the server's end, in made-up time.

Packets take a millisecond or a little more, and may be lost, doubled or overtaken. What the server
tells its members takes a millisecond and is not lost, as over TCP.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from reference_job import ReferenceChild, ReferenceJob, ReferenceRow
from slot_reference import Destination, ReferenceSwitch
from switchfold.hostlib.hot_rows.row_packets import SERVER_ID_BASE, RowPackets
from switchfold.hostlib.parameter_server.switch_groups.stream import (
    Floats,
    MemberChunks,
    StreamPlace,
    SumChunks,
    update_exponents,
)
from switchfold.hostlib.peers.frames import GroupProgressFrame
from switchfold.hostlib.slots.wire import view_datagrams
from switchfold.hostlib.summation.quantization import scales

LANES = 32
JOB, GENERATION, EPOCH, FIRST_ROW = 7, 1000, 95, 3
DELAY_S = 0.001
TICK_S = 0.02
ASK_S = 0.03
_MOST_EVENTS = 1_000_000


def sum_in_integers(updates: Sequence[Floats]) -> Floats:
    """Return what a group of these updates adds up to: the members' integers, added here."""
    count, size = len(updates), updates[0].size
    exponents = np.maximum.reduce([update_exponents(each, LANES) for each in updates])
    forward, backward, _ = scales(exponents, count, np.float32)
    spread = np.repeat(forward, LANES)[:size]
    integers = sum(np.rint(each * spread).astype(np.int64) for each in updates)
    return integers.astype(np.float32) * np.repeat(backward, LANES)[:size]


class GroupWorld:
    """One group after another by `run`, in one stream of chunks."""

    def __init__(  # noqa: PLR0913 - a test names the few that differ
        self,
        num_members: int,
        *,
        num_rows: int = 8,
        first_round: int = 1,
        loss: float = 0.0,
        duplication: float = 0.0,
        jitter_s: float = 0.0,
        seed: int = 1,
    ) -> None:
        self.num_rows, self.first_round = num_rows, first_round
        self.loss, self.duplication, self.jitter_s = loss, duplication, jitter_s
        self.now_s = 1000.0
        self.first = 0
        self.drop: Callable[[NDArray[np.void], int | None], bool] = lambda packet, to: False
        """Loses packets of the test's choice; `to` None: to the switch."""
        self.is_silent: set[int] = set()
        """Members that do not send."""
        self.num_to_server = self.num_to_switch = self.num_events = 0
        self._random = random.Random(seed)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._wakes: dict[int, float] = {}
        bits = {worker: 1 << worker for worker in range(num_members)} | {SERVER_ID_BASE: 0}
        self._job = ReferenceJob(
            job_id=JOB,
            generation=GENERATION,
            slot_base=0,
            slot_count=0,
            children={
                each: ReferenceChild(port=each, address=each, bit=bit, contributor_mask=bit)
                for each, bit in bits.items()
            },
            num_workers=num_members,
            quorum=num_members,
            hot_rows={
                FIRST_ROW + row: ReferenceRow(slot=row, value_copy=512 + row, epoch=EPOCH)
                for row in range(num_rows)
            },
        )
        self.switch = ReferenceSwitch(LANES)
        self.restart_switch()

    def restart_switch(self) -> None:
        """Lose all registers."""
        self.switch = ReferenceSwitch(LANES)
        self.switch.jobs = {JOB: self._job}

    def place(self, worker_id: int, num_members: int) -> StreamPlace:
        packets = RowPackets(
            job_id=JOB,
            generation=GENERATION,
            worker_id=worker_id,
            worker_bitmap=0 if worker_id == SERVER_ID_BASE else 1 << worker_id,
            num_workers=1,
            values_per_packet=LANES,
        )
        return StreamPlace(
            packets=packets,
            first_row=FIRST_ROW,
            num_rows=self.num_rows,
            epoch=EPOCH,
            first_round=self.first_round,
            first=self.first,
            num_members=num_members,
        )

    def begin(self, updates: dict[int, Floats]) -> Floats:
        """Begin a group of these members' updates; return where its sums appear."""
        count = len(updates)
        exponents = np.maximum.reduce([update_exponents(x, LANES) for x in updates.values()])
        size = next(iter(updates.values())).size
        values = np.full(size, np.nan, np.float32)
        bits = sum(1 << worker for worker in updates)
        self.sums = SumChunks(self.place(SERVER_ID_BASE, count), bits, values, exponents)
        self.members = {
            worker: MemberChunks(
                self.place(worker, count), 1 << worker, update, exponents, self.now_s
            )
            for worker, update in updates.items()
        }
        self.first += self.sums.num_chunks
        self._events.clear()
        self._wakes.clear()
        self._heard_s = self.now_s
        for worker in self.members:
            self._pump(worker)
        self._after(TICK_S, self._tick)
        return values

    def run(self, until: Callable[[], bool] | None = None, limit_s: float = 300.0) -> None:
        """Let time pass until the group is done, or something else holds."""
        end_s = self.now_s + limit_s
        while not (self.sums.is_done if until is None else until()):
            assert self._events, "nobody has anything to do"
            self.now_s, _, call = heapq.heappop(self._events)
            self.num_events += 1
            assert self.num_events < _MOST_EVENTS, "nothing gets on"
            assert self.now_s < end_s, f"not done in {limit_s} s: {self.sums.num_taken} chunks"
            call()

    def _after(self, delay_s: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now_s + delay_s, next(self._numbers), call))

    def _pump(self, worker: int) -> None:
        if worker in self.is_silent:
            return
        member = self.members[worker]
        while len(packets := member.due(self.now_s)):
            self._send(packets.copy(), worker)
        due_s = member.due_s
        if due_s != self._wakes.get(worker) and due_s < np.inf:
            self._wakes[worker] = due_s
            self._after(max(0.0, due_s - self.now_s), lambda: self._wake(worker, due_s))

    def _wake(self, worker: int, due_s: float) -> None:
        if self._wakes.get(worker) == due_s:
            self._wakes.pop(worker)
            self._pump(worker)

    def _tick(self) -> None:
        is_silent = self.now_s - self._heard_s >= ASK_S
        self._ask(is_silent)
        self._after(TICK_S, self._tick)

    def _ask(self, is_silent: bool) -> None:
        asked = self.sums.ask(self.now_s, ASK_S, is_silent=is_silent)
        if len(asked):
            self._send(asked.copy(), SERVER_ID_BASE)

    def _send(self, packets: NDArray[np.uint8], sender: int) -> None:
        for packet in view_datagrams(packets, LANES):
            self.num_to_switch += 1
            self._travel(packet, None, lambda packet=packet: self._arrive(sender, packet))

    def _travel(self, packet: NDArray[np.void], to: int | None, arrive: Callable[[], None]) -> None:
        if self._random.random() < self.loss or self.drop(packet, to):
            return
        for _ in range(1 + (self._random.random() < self.duplication)):
            self._after(DELAY_S + self._random.random() * self.jitter_s, arrive)

    def _arrive(self, sender: int, packet: NDArray[np.void]) -> None:
        _, reply = self.switch.receive(sender, sender, packet)
        if reply is None:
            return
        answer = reply.datagram.copy()
        to = SERVER_ID_BASE if reply.to is Destination.SERVER else sender
        self._travel(answer, to, lambda: self._take(to, answer))

    def _take(self, to: int, packet: NDArray[np.void]) -> None:
        packets = packet.reshape(1)
        if to == SERVER_ID_BASE:
            self.num_to_server += 1
            if self.sums.take(packets):
                self._heard_s = self.now_s
                frame, bits = self.sums.progress()
                for worker in self.members:
                    self._after(DELAY_S, lambda worker=worker: self._tell(worker, frame, bits))
                self._ask(is_silent=False)
        elif to in self.members:
            rows = np.frombuffer(packet.tobytes(), np.uint8).reshape(1, -1)
            self.members[to].take(rows, self.now_s)

    def _tell(self, worker: int, frame: GroupProgressFrame, bits: memoryview) -> None:
        self.members[worker].note(frame, bits, self.now_s)
        self._pump(worker)
