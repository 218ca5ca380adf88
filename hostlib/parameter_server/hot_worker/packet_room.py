# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Where the C library writes the packets of a worker about hot rows."""

from __future__ import annotations

import ctypes
from typing import Final, final

import numpy as np

from ...hot_rows.row_packets import RowPackets
from ...native.hot_row_library import HotPacketsStruct
from ...native.library import address
from ...transports.base import Datagrams

_MOST_PER_ROW: Final = 4
"""Packets about a row in one call: two pushes that come again, and two flushes."""


@final
class PacketRoom:
    """Memory for the packets of one call, about so many rows. Without `packets`, there are none."""

    def __init__(self, num_rows: int, packets: RowPackets | None = None) -> None:
        self._native = HotPacketsStruct()
        self._memory: Datagrams = np.empty((0, 0), np.uint8)
        if packets is not None:
            shape = max(1, _MOST_PER_ROW * num_rows), packets.datagram_bytes
            self._memory = np.empty(shape, np.uint8)
            self._native.head[:] = packets.head
            self._native.num_workers = packets.num_workers
            self._native.capacity = shape[0]
            self._native.packets = address(self._memory)
        self.at: int = ctypes.addressof(self._native)
        """Of its `hot_packets_t`."""

    def take(self) -> Datagrams | None:
        """Return what is to be sent before the next call, if anything is."""
        count = self._native.count
        self._native.count = 0
        return self._memory[:count] if count else None
