# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A group's chunks at a member and at the server, over the C library; see `group_stream.h`."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ...hot_rows.row_packets import RowPackets
from ...native.library import address, library
from ...native.structures import BATCH
from ...native.switch_group_library import GroupMemberStruct, GroupStreamStruct, GroupSumStruct
from ...peers.frames import Exponents, GroupProgressFrame
from ...summation.quantization import chunk_exponents, scales
from ...transports.base import Datagrams

Floats = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class StreamPlace:
    """The rows and rounds of a group, and how this end's packets begin."""

    packets: RowPackets
    first_row: int
    num_rows: int
    epoch: int
    first_round: int
    first: int
    """Number of the group's first chunk in the stream."""
    num_members: int

    def struct(self, num_values: int) -> GroupStreamStruct:
        """Return the C library's `group_stream_t` for an update of so many values."""
        lanes = self.packets.values_per_packet
        stream = GroupStreamStruct(
            num_lanes=lanes,
            first_row=self.first_row,
            num_rows=self.num_rows,
            epoch=self.epoch,
            first_round=self.first_round,
            num_chunks=num_chunks(num_values, lanes),
            num_values=num_values,
            num_members=self.num_members,
            first=self.first,
        )
        stream.head[:] = self.packets.head
        return stream


def num_chunks(num_values: int, num_lanes: int) -> int:
    """Return how many packets carry so many values."""
    return -(-num_values // num_lanes)


def update_exponents(values: Floats, num_lanes: int) -> Exponents:
    """Return the exponent that each chunk of a vector needs; the last chunk may be shorter."""
    whole = values.size // num_lanes
    exponents = chunk_exponents(values[: whole * num_lanes].reshape(whole, num_lanes))
    if values.size == whole * num_lanes:
        return exponents
    last = np.zeros((1, num_lanes), np.float32)
    last[0, : values.size - whole * num_lanes] = values[whole * num_lanes :]
    return np.concatenate([exponents, chunk_exponents(last)])


@final
class MemberChunks:
    """The chunks of one member's update until the server has their sums.

    The array of values must stay as it is.
    """

    def __init__(
        self, place: StreamPlace, bit: int, values: Floats, exponents: Exponents, now_s: float
    ) -> None:
        """`bit`: this member's in bitmaps. `exponents`: those of all members together."""
        stream = place.struct(values.size)
        count: int = stream.num_chunks
        assert exponents.size == count
        forward, _, biased = scales(exponents, place.num_members, np.float32)
        states, tries = np.empty(count, np.uint8), np.empty(count, np.uint8)
        sent_s = np.empty(count)
        self._kept = values, forward, biased, states, tries, sent_s
        self._room: Datagrams = np.empty((BATCH, place.packets.datagram_bytes), np.uint8)
        self._native = GroupMemberStruct(
            stream=stream,
            bit=bit,
            values=address(values),
            scales=address(forward),
            exponents=address(biased),
            states=address(states),
            tries=address(tries),
            sent_s=address(sent_s),
        )
        self._at = ctypes.addressof(self._native)
        library.group_member_begin(self._at, now_s)

    @property
    def is_done(self) -> bool:
        """Whether the server has all sums."""
        return self._native.done == self._native.stream.num_chunks

    @property
    def num_resent(self) -> int:
        """Packets that were sent again."""
        return self._native.num_resent

    def note(self, progress: GroupProgressFrame, bits: memoryview, now_s: float) -> None:
        """Take what the server says, with the payload of its frame."""
        _, done, num_bits, num_marked = progress
        array = np.frombuffer(bits, np.uint8) if num_bits else np.empty(1, np.uint8)
        library.group_member_note(self._at, done, address(array), num_bits, num_marked, now_s)

    def take(self, datagrams: Datagrams, now_s: float) -> None:
        """Take what the switch has sent to this member: packets of the lease's generation."""
        library.group_member_take(self._at, address(datagrams), len(datagrams), now_s)

    def due(self, now_s: float, most: int = BATCH) -> Datagrams:
        """Return packets that are to leave now; `most` <= BATCH, in memory that is used again."""
        return self._room[: library.group_member_fill(self._at, address(self._room), most, now_s)]

    @property
    def due_s(self) -> float:
        """When there is something to send again if nothing is heard; infinite: never."""
        return library.group_member_due_s(self._at)


@final
class SumChunks:
    """The sums of a group's chunks at the server, which become the values of `values`."""

    def __init__(
        self, place: StreamPlace, members: int, values: Floats, exponents: Exponents
    ) -> None:
        """`members`: their bits. `exponents`: those of all members together."""
        stream = place.struct(values.size)
        count: int = stream.num_chunks
        assert exponents.size == count
        _, backward, _ = scales(exponents, place.num_members, np.float32)
        self._has, asked_s = np.empty(count, np.uint8), np.empty(count)
        self._kept = values, backward, asked_s
        self._room: Datagrams = np.empty((BATCH, place.packets.datagram_bytes), np.uint8)
        self._window = 2 * place.num_rows
        self._native = GroupSumStruct(
            stream=stream,
            members=members,
            scales=address(backward),
            values=address(values),
            has=address(self._has),
            asked_s=address(asked_s),
        )
        self._at = ctypes.addressof(self._native)
        library.group_sum_begin(self._at)

    @property
    def num_chunks(self) -> int:
        """Of the group."""
        return self._native.stream.num_chunks

    @property
    def num_taken(self) -> int:
        """How many sums have come."""
        return int(np.count_nonzero(self._has))

    @property
    def num_repeated(self) -> int:
        """How many sums have come that were there before."""
        return self._native.num_repeated

    @property
    def is_done(self) -> bool:
        """Whether all sums are there."""
        return self._native.done == self.num_chunks

    @property
    def has_overflowed(self) -> bool:
        """Whether a sum does not fit its lanes, so that the group cannot be completed."""
        return self._native.num_overflowed > 0

    def take(self, packets: NDArray[np.void]) -> int:
        """Take packets of the lease's generation; return how many sums are new."""
        packets = np.ascontiguousarray(packets)
        return library.group_sum_take(self._at, address(packets), packets.size)

    def progress(self) -> tuple[GroupProgressFrame, memoryview]:
        """Return what to tell the members, with the frame's payload."""
        native = self._native
        num_marked, native.num_marked = native.num_marked, 0
        num_bits = max(0, min(native.end - native.done, self._window))
        bits = np.packbits(self._has[native.done : native.done + num_bits], bitorder="little")
        frame = GroupProgressFrame(native.stream.first, native.done, num_bits, num_marked)
        return frame, bits.data

    def ask(self, now_s: float, pause_s: float, *, is_silent: bool) -> Datagrams:
        """Return flushes for chunks that lack, each at most once in a pause; at most BATCH."""
        room = self._room
        count = library.group_sum_ask(self._at, is_silent, pause_s, address(room), BATCH, now_s)
        return room[:count]
