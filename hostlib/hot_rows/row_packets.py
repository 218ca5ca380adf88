# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The packets about hot rows, many at a time; docs/wire_format.md says what their fields mean.

A worker's are written in the C library: hot_packets.h.
"""

from __future__ import annotations

from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from ..slots import wire
from ..slots.wire import Flag, Operation
from ..transports.base import Datagrams

RowNumbers = NDArray[np.uint32]
"""One of each packet: rows, epochs, rounds or versions."""
Lanes = NDArray[np.int32]
"""Shape (packets, values per packet); of values, the bits of float32."""
SERVER_ID_BASE: Final = 32
"""`worker_id` in the packets of server 0."""


@final
class RowPackets:
    """Builds the packets of a server in one generation, or what all of a worker's begin with."""

    def __init__(
        self,
        *,
        job_id: int,
        generation: int,
        worker_id: int,
        worker_bitmap: int,
        num_workers: int,
        values_per_packet: int,
    ) -> None:
        """`worker_bitmap`: 0 for a server. `num_workers`: so many pushes close a round."""
        self.generation = generation
        self.values_per_packet = values_per_packet
        self.num_workers = num_workers
        self._dtype = wire.datagram_dtype(values_per_packet)
        head = np.zeros((), wire.HEADER_DTYPE)
        head["version"] = wire.WIRE_VERSION
        head["flags"] = Flag.TO_SERVER
        head["job_id"] = job_id
        head["worker_id"] = worker_id
        head["generation"] = generation
        head["worker_bitmap"] = worker_bitmap
        head["num_contributors"] = 1
        self._head = head
        self._head_bytes = head.reshape(1).view(np.uint8)

    @property
    def head(self) -> bytes:
        """The fields of the header that all packets share; the others are 0."""
        return self._head.tobytes()

    @property
    def datagram_bytes(self) -> int:
        """Size of every packet."""
        return self._dtype.itemsize

    def flush(
        self, rows: RowNumbers, epochs: RowNumbers, rounds: RowNumbers, *, level: int
    ) -> Datagrams:
        """Return flushes that end rounds at switches up to a level."""
        packets = self._packets(Operation.FLUSH, rows, epochs, rounds)
        packets["header"]["num_contributors"] = level
        return self._bytes(packets)

    def probe(self, rows: RowNumbers, epochs: RowNumbers, copies: RowNumbers) -> Datagrams:
        """Return questions for the state of slot copies, 0 or 1 of each row.

        The answers have the copy's round, and the copy's number as their chunk.
        """
        packets = self._packets(Operation.PROBE, rows, epochs, copies)
        header = packets["header"]
        header["chunk_index"] = copies
        header["range_start"] = copies * self.values_per_packet
        header["range_end"] = (copies + 1) * self.values_per_packet
        return self._bytes(packets)

    def write(
        self, rows: RowNumbers, epochs: RowNumbers, versions: RowNumbers, lanes: Lanes
    ) -> Datagrams:
        """Return values of a server."""
        packets = self._packets(Operation.WRITE, rows, epochs, versions)
        packets["values"] = lanes
        return self._bytes(packets)

    def view(self, datagrams: Datagrams) -> NDArray[np.void]:
        """Return the packets among received datagrams that are about rows of this generation."""
        packets = wire.view_datagrams(datagrams, self.values_per_packet)
        header = packets["header"]
        is_ours = (
            (header["version"] == wire.WIRE_VERSION)
            & (header["job_id"] == self._head["job_id"])
            & (header["generation"] == self.generation)
            & ((header["flags"] & Flag.TO_SERVER) != 0)
        )
        return packets if is_ours.all() else packets[is_ours]

    def _packets(
        self, operation: Operation, rows: RowNumbers, epochs: RowNumbers, rounds: RowNumbers
    ) -> NDArray[np.void]:
        raw = np.zeros((rows.size, self._dtype.itemsize), np.uint8)
        raw[:, : wire.HEADER_BYTES] = self._head_bytes
        packets = wire.view_datagrams(raw, self.values_per_packet)
        header = packets["header"]
        header["operation"] = operation
        header["slot_index"] = header["chunk_index"] = rows
        header["tensor_id"] = epochs
        header["round"] = rounds
        header["range_start"] = rows * self.values_per_packet
        header["range_end"] = rows * self.values_per_packet + self.values_per_packet
        return packets

    def _bytes(self, packets: NDArray[np.void]) -> Datagrams:
        return packets.view(np.uint8).reshape(packets.size, self._dtype.itemsize)
