# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Headers of multicasts and the rows of reports, as docs/wire_format.md tells them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..control.view import JobView
from ..slots.wire import (
    HEADER_WORDS,
    WIRE_VERSION,
    WORD_BITMAP,
    WORD_CONTRIBUTORS,
    WORD_END,
    WORD_GENERATION,
    WORD_ROUND,
    WORD_SLOT,
    WORD_TREE,
    Flag,
    Operation,
    Words,
)

Headers = NDArray[np.uint32]
"""Header words in native order, shape (count, HEADER_WORDS)."""
Receipts = tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]
"""One element per packet: worker id, chunks received of that worker, chunks marked."""

WORD_RECEIVED, WORD_SEQUENCE, WORD_SIGNATURE = WORD_SLOT, WORD_ROUND, WORD_CONTRIBUTORS
"""Fields that have another meaning in other packets."""
WINDOW_CHUNKS: Final = 128
"""Most chunks of a sequence that a receiver holds beyond a gap."""
REPORT_WORDS: Final = 6
MIN_DELAY_S: Final = 0.001
MAX_DELAY_S: Final = 0.1
"""Bounds of how long a report waits for chunks that could carry the same receipts."""
NOBODY: Final = 255
"""In a header's priority field: this packet says nothing about a worker's chunks."""
OPERATION_MASK: Final = np.array([0xFFFF0000], ">u4").view(np.uint32)[0]
"""Over a header's first word in wire order: version and operation."""
MULTICAST_WORD: Final = np.array([WIRE_VERSION << 24 | Operation.MULTICAST << 16], ">u4").view(
    np.uint32
)[0]


def header_template(view: JobView) -> Headers:
    """Return one header with what all multicasts of a worker share."""
    header = np.zeros(HEADER_WORDS, np.uint32)
    header[0] = WIRE_VERSION << 24 | Operation.MULTICAST << 16
    header[WORD_TREE] = view.trees[0].tree_id << 16 | view.child_id << 8 | NOBODY
    header[WORD_GENERATION] = view.generation
    header[WORD_END] = 1
    header[WORD_BITMAP] = view.worker_bitmap
    header[WORD_SIGNATURE] = 1 << 16
    return header


def report_header(template: Headers, num_rows: int) -> Headers:
    """Return the header of a report of so many rows."""
    header = template.copy()
    header[0] |= Flag.REPORT
    header[WORD_END] = num_rows * REPORT_WORDS
    return header


@dataclass(frozen=True, kw_only=True)
class ReportRow:
    """What a member has received of one worker's sequence."""

    worker_id: int
    marks: int
    """Chunks that met congestion, modulo 256."""
    received: int
    """Chunks without a gap, modulo 2^32."""
    is_held: NDArray[np.bool_]
    """Which of the next WINDOW_CHUNKS chunks have come."""


def pack_row(row: ReportRow) -> Headers:
    """Return the words of a row, native order."""
    words = np.empty(REPORT_WORDS, np.uint32)
    words[0] = (row.marks & 0xFF) << 8 | row.worker_id
    words[1] = row.received & 0xFFFFFFFF
    words[2:] = np.packbits(row.is_held, bitorder="little").view("<u4")
    return words


def unpack_rows(header: Headers, payload: Words) -> list[ReportRow]:
    """Return the rows of a report, from its header and its payload in wire order."""
    count = min(int(header[WORD_END]), len(payload)) // REPORT_WORDS
    words = payload[: count * REPORT_WORDS].byteswap().reshape(count, REPORT_WORDS)
    bits = words[:, 2:].astype("<u4").view(np.uint8)
    held = np.unpackbits(bits, axis=1, bitorder="little").astype(np.bool_)
    return [
        ReportRow(
            worker_id=int(row[0]) & 0xFF,
            marks=int(row[0]) >> 8 & 0xFF,
            received=int(row[1]),
            is_held=held[number],
        )
        for number, row in enumerate(words)
    ]


def unwrap(serial: NDArray[np.uint32], near: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the whole numbers whose low 32 bits are `serial`, closest to `near`."""
    ahead = (serial.astype(np.int64) - near + (1 << 31)) % (1 << 32) - (1 << 31)
    return near + ahead
