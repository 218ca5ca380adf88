# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A second account of workers that do without results, kept from the packets alone.

It shares no code with the host library: which rounds are over, what contributions may state of
them, and what workers may do without are computed here once more, by docs/protocol.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loss_ledger import Packet, Values
from switchfold.hostlib.slots.wire import Operation

CONTRIBUTION = int(Operation.AGGREGATE_ADD)
STATEMENTS = 8


@dataclass
class _Chunk:
    """What has been seen of one chunk."""

    tensor: int
    number: int
    sum: Values
    is_over: bool = False
    sent: set[int] = field(default_factory=set[int])
    """Who has sent its contribution."""
    again: set[int] = field(default_factory=set[int])
    """Who has sent it more than once."""
    had: set[int] = field(default_factory=set[int])
    """Who got a result, even if it came too late."""


class StaleLedger:
    """Watches the packets of one job over one switch with one tree; AssertionError says what."""

    def __init__(self, num_workers: int, num_slots: int, *, stale: float) -> None:
        """`num_slots`: those of values."""
        self._num_workers, self._num_slots = num_workers, num_slots
        self._stale = Fraction(str(stale))
        self._chunks: list[_Chunk] = []  # by place in the sequence
        self._places: dict[tuple[int, int], int] = {}  # by tensor and chunk
        self._first_place = 0
        self._values: list[list[Values]] = []  # by worker and chunk
        self.num_stale = self.num_statements = self.num_again = self.num_old = 0
        """Of all tensors: results done without, rounds stated to be over, chunks sent again, and
        contributions that come to the switch after their sender's next one of the same slot left.
        """

    def begin(
        self, tensor: int, values: NDArray[np.int64], large: NDArray[np.bool_] | None = None
    ) -> None:
        """Expect a tensor; `values` by worker, chunk, lane. All workers are done with the last."""
        assert large is None, "such jobs have no large values"
        self._first_place = len(self._chunks)
        self._values = [[tuple(chunk) for chunk in of_worker] for of_worker in values.tolist()]
        for number, each in enumerate(values.sum(axis=0).tolist()):
            self._places[tensor, number] = len(self._chunks)
            self._chunks.append(_Chunk(tensor, number, tuple(each)))

    def _place(self, packet: Packet) -> int:
        """Return the place of the chunk that a packet is about; the round and the tensor agree."""
        place = self._places[packet.tensor, packet.chunk]
        assert packet.round == place // self._num_slots + 1
        return place

    def note_sent(self, worker: int, packet: Packet) -> None:
        """See what a worker sends, whether it arrives or not."""
        assert packet.operation == CONTRIBUTION, "nothing else is sent"
        place = self._place(packet)
        chunk = self._chunks[place]
        what = f"worker {worker} sends chunk {chunk.number} of tensor {chunk.tensor}"
        assert packet.values == self._values[worker][chunk.number], what
        before = place - self._num_slots
        if before >= 0:
            was = self._chunks[before]
            assert was.is_over, f"{what}, and the round before in its slot is open"
        if worker in chunk.sent:
            chunk.again.add(worker)
            self.num_again += 1
        chunk.sent.add(worker)
        for bit in range(STATEMENTS):
            if not packet.exponent >> bit & 1:
                continue
            about = place - (7 + bit) * self._num_slots // 24
            assert about >= 0, f"{what}, and states what is not there"
            assert self._chunks[about].is_over, f"{what}, and states that an open round is over"
            self.num_statements += 1

    def note_arrived(self, worker: int, packet: Packet) -> None:
        """See what comes to the switch: nothing to check, as the switch is the reference."""
        following = self._place(packet) + self._num_slots
        is_old = following < len(self._chunks) and worker in self._chunks[following].sent
        self.num_old += is_old

    def note_answered(self, packet: Packet) -> None:
        """See what the switch sends: each result is the sum of all, to the bit."""
        if packet.operation != Operation.RESULT:
            return
        chunk = self._chunks[self._place(packet)]
        assert len(chunk.sent) == self._num_workers, "a result without everybody"
        assert packet.contributors == self._num_workers
        assert packet.values == chunk.sum, f"result of chunk {chunk.number}"
        chunk.is_over = True

    def note_got(self, worker: int, packet: Packet) -> None:
        """See what comes to a worker."""
        if packet.operation == Operation.RESULT:
            self._chunks[self._place(packet)].had.add(worker)

    def check(self, worker: int, output: NDArray[Any], bitmaps: NDArray[Any]) -> None:
        """Compare what a worker has in the end: each sum, or nothing within the bound."""
        of_tensor, rows = self._chunks[self._first_place :], output.tolist()
        num_stale = 0
        for chunk in of_tensor:
            what = f"chunk {chunk.number} at worker {worker}"
            assert chunk.is_over, f"{what}: its round is open"
            if bitmaps[chunk.number]:
                assert worker in chunk.had, what
                assert tuple(rows[chunk.number]) == chunk.sum, what
            else:
                num_stale += 1
        assert num_stale <= int(self._stale * len(of_tensor)), f"worker {worker}: {num_stale}"
        self.num_stale += num_stale
