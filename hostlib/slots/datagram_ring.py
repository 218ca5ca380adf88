# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The datagram of each slot's latest chunk, and the header that its result must have."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..control.view import JobView
from ..summation.chunks import ChunkSource
from .slot_map import SlotMap
from .wire import HEADER_BYTES, WIRE_VERSION, Flag, Operation, datagram_bytes

HEADER_WORDS = HEADER_BYTES // 4
CHECKED_WORDS = 9
"""Header words that a result must echo: all up to the range's end."""
WORD_TREE = 1
"""Tree id in the upper half, child id below."""
WORD_GENERATION, WORD_SLOT, WORD_ROUND, WORD_TENSOR, WORD_CHUNK = 2, 3, 4, 5, 6
WORD_START, WORD_END, WORD_BITMAP, WORD_CONTRIBUTORS = 7, 8, 9, 10
TABLE_CHUNKS = 1024
"""Headers computed at a time, which costs fewer calls than computing them for each block."""
PLAIN_FLAGS = int(Flag.PARTIAL | Flag.LAST)
"""Flags of a result that need no action."""

Words = NDArray[np.uint32]
"""Datagrams as 32-bit words in wire order (big-endian), shape (count, words)."""


class DatagramRing:
    """Datagrams of one operation over a range of a view's slots, one row per slot."""

    def __init__(
        self, view: JobView, operation: Operation, slot_map: SlotMap, slots: range
    ) -> None:
        slot_count = len(slots)
        self.datagrams = np.zeros((slot_count, datagram_bytes(view.values_per_packet)), np.uint8)
        """Shape (slot_count, datagram_bytes)."""
        self.headers = self.datagrams.view(">u4")[:, :HEADER_WORDS]
        self._words: Words = self.datagrams.view(np.uint32)[:, :HEADER_WORDS]
        self._lanes = self.datagrams.view(">i4")[:, HEADER_WORDS:]
        self._expected: Words = np.zeros((slot_count, CHECKED_WORDS), np.uint32)
        self._slot_count = slot_count
        self._values = view.values_per_packet
        own = slice(slots.start, slots.stop)
        # The fields that all headers of a slot share.
        self._constant = np.zeros((slot_count, HEADER_WORDS), np.uint32)
        self._constant[:, 0] = WIRE_VERSION << 24 | operation << 16
        tree_words = slot_map.tree_ids[own] << np.uint32(16) | np.uint32(view.child_id << 8)
        self._constant[:, WORD_TREE] = tree_words
        self._constant[:, WORD_GENERATION] = view.generation
        self._constant[:, WORD_SLOT] = slot_map.local[own]
        self._constant[:, WORD_BITMAP] = view.worker_bitmap
        self._mask = _result_mask(0)
        self._plain_mask = _result_mask(0xFFFF & ~PLAIN_FLAGS)
        self._result_word = _result_word()
        # Headers of the next chunks, and the headers that their results must have.
        self._source: ChunkSource | None = None
        self._first = 0
        self._table: Words = np.empty((0, HEADER_WORDS), np.uint32)
        self._expected_table: Words = np.empty((0, CHECKED_WORDS), np.uint32)

    def write(self, source: ChunkSource, position: int, first: int, count: int) -> None:
        """Fill the rows of the chunks `first` .. `first + count - 1` of a tensor.

        `position` is that of chunk `first` in the sequence of all chunks; the rows must not wrap.
        """
        place = first - self._first
        if source is not self._source or place < 0 or place + count > len(self._table):
            self._compute(source, position, first)
            place = 0
        row = position % self._slot_count
        self._words[row : row + count] = self._table[place : place + count]
        self._expected[row : row + count] = self._expected_table[place : place + count]
        source.fill(first, self._lanes[row : row + count])

    def _compute(self, source: ChunkSource, position: int, first: int) -> None:
        """Compute the headers of the next chunks of a tensor."""
        count = min(TABLE_CHUNKS, source.num_chunks - first)
        positions = np.arange(position, position + count)
        chunks = np.arange(first, first + count, dtype=np.uint32)
        headers = self._constant[positions % self._slot_count]
        headers[:, WORD_ROUND] = (positions // self._slot_count + 1) & 0xFFFFFFFF
        headers[:, WORD_TENSOR] = source.tensor_id & 0xFFFFFFFF
        headers[:, WORD_CHUNK] = chunks
        starts = chunks * np.uint32(self._values)
        headers[:, WORD_START] = starts
        headers[:, WORD_END] = starts + np.uint32(self._values)
        headers[:, WORD_CONTRIBUTORS] = 1 << 16 | source.exponents(first, count) << 8
        if first + count == source.num_chunks:
            headers[-1, 0] |= Flag.LAST
            headers[-1, WORD_END] = source.num_elements
        self._table = headers.byteswap()
        self._expected_table = self._table[:, :CHECKED_WORDS] & self._mask
        self._expected_table[:, 0] = self._result_word
        self._source, self._first = source, first

    def forget(self, source: ChunkSource) -> None:
        """Drop a tensor that is written, or will never be."""
        if self._source is source:
            self._source = None

    def is_plain_run(self, words: Words, row: int) -> bool:
        """Return whether datagrams are the results of the rows from `row` on, one by one.

        Results with a flag that needs an action do not count.
        """
        difference = words[:, :CHECKED_WORDS] ^ self._expected[row : row + len(words)]
        difference &= self._plain_mask
        return not np.count_nonzero(difference)

    def are_results(self, words: Words, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which datagrams are the result of their row's chunk."""
        difference = words[:, :CHECKED_WORDS] & self._mask
        return (difference == self._expected[rows]).all(axis=1)


def _result_mask(flags: int) -> NDArray[np.uint32]:
    """Return the mask over the checked words, in wire order; `flags` are checked to be clear."""
    mask = np.full(CHECKED_WORDS, 0xFFFFFFFF, ">u4")
    mask[0] = 0xFFFF0000 | flags  # version and operation; the switch sets the flags
    mask[1] = 0xFFFF0000  # tree; a multicast result names another worker
    return mask.view(np.uint32)


def _result_word() -> np.uint32:
    """Return the first word of a result without flags, in wire order."""
    first = np.array([WIRE_VERSION << 24 | Operation.RESULT << 16], ">u4").view(np.uint32)
    return first[0]
