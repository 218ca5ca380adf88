# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames about hot rows, between a worker and a parameter server.

The server sends HOT_ROWS after ENTERED and after each change of its rows, and DECISIONS in between.
What a HOT_ROWS says was decided before it; later DECISIONS go on from there.
"""

from __future__ import annotations

import ipaddress
import struct
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ...errors import PeerProtocolError
from .header import Frame, FrameKind, pack_header

HOT_ROW_DTYPE: Final = np.dtype(
    [
        ("row", "<u4"),
        ("table", "<u4"),
        ("epoch", "<u4"),
        ("next", "<u4"),
        ("is_ahead", "<u4"),
        ("exponent", "<i4"),
        ("counted", "<u8", (2,)),
    ]
)
"""A hot row as one worker sees it.

`row`: its number in packets. `table`: the number of its table. `next`: the lowest round that is not
decided. `is_ahead`: 1 if round `next` + 1 is decided. `exponent`: a lane is worth 2^exponent.
`counted`: the last two rounds that counted this worker, as generation * 2^32 + round; 0: none.
"""
DECISION_DTYPE: Final = np.dtype(
    [("row", "<u4"), ("round", "<u4"), ("bitmap", "<u4"), ("version", "<u4")]
)
"""A decided round: the workers that it counted, and the version from which values hold it."""
OPEN_ROUND_DTYPE: Final = np.dtype([("row", "<u4"), ("round", "<u4")])

_STATE: Final = struct.Struct("<II4sIIIIIIII")
_TABLE: Final = struct.Struct("<II")


class TableRows(NamedTuple):
    """The lane layout of a table's hot rows: its row i is the table's i-th row in the state."""

    table: int
    layout: bytes
    """What `LaneLayout.pack` returned."""


class HotRowsState(NamedTuple):
    """The payload of HOT_ROWS: all hot rows of a server, and how this worker reaches them."""

    generation: int
    """Of the job's view; 0: the server has no hot rows."""
    job_id: int = 0
    """Of the packets: the tree's."""
    switch_address: str = "0.0.0.0"  # noqa: S104 - of no switch
    switch_udp_port: int = 0
    worker_id: int = 0
    """Of this worker's packets."""
    worker_bitmap: int = 0
    """Of this worker's packets."""
    num_workers: int = 0
    """Of the job's view."""
    values_per_packet: int = 0
    flush_us: int = 0
    """After how long without a decision a worker flushes its round."""
    rows: NDArray[np.void] = np.empty(0, HOT_ROW_DTYPE)
    """Of HOT_ROW_DTYPE; the rows of a table in the order of its lane layout."""
    tables: tuple[TableRows, ...] = ()

    def pack(self) -> bytes:
        """Return the payload's bytes."""
        head = _STATE.pack(
            self.generation,
            self.job_id,
            ipaddress.IPv4Address(self.switch_address).packed,
            self.switch_udp_port,
            self.worker_id,
            self.worker_bitmap,
            self.num_workers,
            self.values_per_packet,
            self.flush_us,
            self.rows.size,
            len(self.tables),
        )
        parts = [head, self.rows.tobytes()]
        for table, layout in self.tables:
            parts += [_TABLE.pack(table, len(layout)), layout]
        return b"".join(parts)

    @classmethod
    def unpack(cls, payload: memoryview) -> Self:
        """Return what `pack` packed. Raises PeerProtocolError."""
        try:
            generation, job_id, address, *numbers, num_rows, num_tables = _STATE.unpack_from(
                payload
            )
            at = _STATE.size
            rows = np.frombuffer(payload, HOT_ROW_DTYPE, num_rows, at) if num_rows else cls(0).rows
            at += rows.nbytes
            tables: list[TableRows] = []
            for _ in range(num_tables):
                table, size = _TABLE.unpack_from(payload, at)
                at += _TABLE.size
                tables.append(TableRows(table, bytes(payload[at : at + size])))
                at += size
        except (struct.error, ValueError) as error:
            raise PeerProtocolError(f"malformed HOT_ROWS of {len(payload)} bytes") from error
        if at != len(payload):
            raise PeerProtocolError(f"HOT_ROWS of {len(payload)} bytes instead of {at}")
        switch = str(ipaddress.IPv4Address(address))
        port, own_id, bitmap, workers, values, flush_us = numbers
        return cls(
            generation,
            job_id,
            switch,
            port,
            own_id,
            bitmap,
            workers,
            values,
            flush_us,
            rows.copy(),
            tuple(tables),
        )


class HotRowsFrame(NamedTuple):
    """HOT_ROWS; the payload is a HotRowsState."""

    payload_bytes: int

    def pack(self) -> bytes:
        """Return the header's bytes."""
        return pack_header(FrameKind.HOT_ROWS, self.payload_bytes)


class RoundsFrame(NamedTuple):
    """DECISIONS, with a payload of DECISION_DTYPE; or DECIDE, of OPEN_ROUND_DTYPE."""

    kind: FrameKind
    payload_bytes: int
    generation: int

    def pack(self) -> bytes:
        """Return the header's bytes."""
        return pack_header(self.kind, self.payload_bytes, self.generation)

    @classmethod
    def unpack(cls, frame: Frame) -> Self:
        """Return the frame of a header of these kinds."""
        return cls(frame.kind, frame.payload_bytes, frame.fields[0])

    def rounds(self, payload: memoryview) -> NDArray[np.void]:
        """Return the payload's records. Raises PeerProtocolError."""
        dtype = DECISION_DTYPE if self.kind is FrameKind.DECISIONS else OPEN_ROUND_DTYPE
        if len(payload) % dtype.itemsize:
            raise PeerProtocolError(f"{self.kind.name} of {len(payload)} bytes")
        return np.frombuffer(payload, dtype)


class SampleFrame(NamedTuple):
    """SKETCH, with a payload that `FrequencySketch.pack` returned; BATCHES: `KeyBatches.pack`."""

    kind: FrameKind
    payload_bytes: int
    table: int

    def pack(self) -> bytes:
        """Return the header's bytes."""
        return pack_header(self.kind, self.payload_bytes, tag=self.table)

    @classmethod
    def unpack(cls, frame: Frame) -> Self:
        """Return the frame of a header of these kinds."""
        return cls(frame.kind, frame.payload_bytes, frame.fields[-1])
