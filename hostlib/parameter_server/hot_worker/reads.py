# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's reads of the hot rows of a server, from its switch.

What happens with every read is in the C library, on the same arrays: hot_reads.h. Here is what
changes all rows, and what goes by TCP.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Final, Protocol, final

import numpy as np
from numpy.typing import NDArray

from ...errors import HostlibError
from ...hot_rows.hot_cells import Floats, HotCells, Indices, SplitKeys
from ...native.hot_row_library import HotReadsStruct, hot_library, place_lists
from ...native.library import address
from ...peers.frames import HotRowsState
from ...transports.base import Datagrams
from .open_calls import OpenCalls
from .packet_room import PacketRoom
from .row_map import RowMap

TRY_S: Final = 0.02
"""Until a READ is sent again, and then until the server is asked instead."""
MOST_TRIES: Final = 2
"""READs of a row until the server is asked instead; as in hot_reads.h."""
Positions = NDArray[np.int64]
DoneRead = Callable[[HostlibError | None], None]


class ReadPort(Protocol):
    """What the reads need."""

    def send(self, datagrams: Datagrams) -> None:
        """Send datagrams to the switch; they may be lost."""
        ...


class ReadRequest(Protocol):
    """The hot keys of a pull."""

    @property
    def values(self) -> Floats:
        """Where the values of all keys of the pull belong: one row for each, without gaps."""
        ...

    def pull_cold(self, positions: Positions, done: DoneRead) -> None:
        """Ask the server for some of the hot keys, and take their values, before `done`."""
        ...


class _OpenRead:
    """A request until all of its rows are answered."""

    def __init__(self, request: ReadRequest, table: HotCells, split: SplitKeys) -> None:
        self.request = request
        self.table = table
        self.split = split
        self.is_settled: NDArray[np.bool_] | None = None
        """Which keys have their values, or wait for the server; None: none has or does."""


@final
class HotReads:
    """The state machine; time comes from the caller, as to `HotPushes`.

    Requests that come while a row is being read share its answer.
    """

    def __init__(self, port: ReadPort) -> None:
        self._port = port
        self._calls = OpenCalls()
        self._open: dict[int, _OpenRead] = {}  # by call
        self._native = HotReadsStruct(next_s=math.inf)
        self.at: int = ctypes.addressof(self._native)
        """Of its `hot_reads_t`."""
        self._allocate(RowMap(HotRowsState(0)), PacketRoom(0))

    def _allocate(self, rows: RowMap, room: PacketRoom) -> None:
        self.map = rows
        self._room = room
        self._values = np.zeros((rows.size, rows.state.values_per_packet), np.float32)
        self._version = np.zeros(rows.size, np.uint32)
        self._has_version = np.zeros(rows.size, np.bool_)
        self._due_s = np.full(rows.size, np.inf)
        self._tries = np.zeros(rows.size, np.int64)
        self._stamps = np.zeros(rows.size, np.uint64)
        self._calls.replace(rows.size, *np.empty((2, 0), np.int64))
        self._share_arrays()

    def _share_arrays(self) -> None:
        """Tell the C library where the arrays are."""
        native = self._native
        native.map, native.packets, native.calls = self.map.at, self._room.at, self._calls.at
        native.try_s = TRY_S
        for name in ("values", "version", "has_version", "due_s", "tries", "stamps"):
            setattr(native, name, address(getattr(self, f"_{name}")))
        self._fallen, (native.fallen,) = place_lists(1, self.map.size)

    @property
    def next_s(self) -> float:
        """When `tick` has something to do."""
        return self._native.next_s

    def adopt(self, rows: RowMap, room: PacketRoom) -> None:
        """Take HOT_ROWS: the server is asked for what is open; versions of rows stay.

        READs are written to `room` from now on.
        """
        self._fall_back(np.flatnonzero(self._due_s < np.inf))
        for own in self._open.values():  # what is not settled is answered
            self._give(own)
        before, values = self.map, self._values
        version, has_version = self._version, self._has_version
        self._allocate(rows, room)
        self._native.next_s = math.inf
        if rows.generation != before.generation:
            return
        found = rows.find(before.numbers)
        old = np.flatnonzero(found >= 0)
        old = old[before.epochs[old] == rows.epochs[found[old]]]
        new = found[old]
        if new.size:  # otherwise rows may have another length
            self._values[new], self._version[new] = values[old], version[old]
            self._has_version[new] = has_version[old]

    def note_version(self, version: np.uint32) -> None:
        """Learn of a version that the server has reached."""
        self._native.newest = int(version)

    def read(
        self,
        table: HotCells,
        split: SplitKeys,
        request: ReadRequest,
        done: DoneRead,
        now_s: float,
    ) -> None:
        """Read the hot keys for a request; `done` when it has all their values."""
        own = _OpenRead(request, table, split)

        def finish(error: HostlibError | None) -> None:
            del self._open[call]
            if error is None:
                self._give(own)
            done(error)

        call = self._calls.open(finish)
        self._open[call] = own
        self._calls.reserve(self.map.size)
        num_hot = split.hot.size
        hot_library.hot_reads_add(self.at, table.at, split.cells_at, num_hot, call, now_s)
        self._send()
        self._calls.settle_one(call)

    def _send(self) -> None:
        datagrams = self._room.take()
        if datagrams is not None:
            self._port.send(datagrams)

    def _give(self, own: _OpenRead) -> None:
        """Give a request what its answered rows hold."""
        cells, positions = own.split.cells, own.split.hot
        cells_at, hot_at = own.split.cells_at, own.split.hot_at
        if own.is_settled is not None:
            left = np.flatnonzero(~own.is_settled)
            cells, positions = cells[left], positions[left]
            cells_at, hot_at = address(cells), address(positions)
        values_at = address(own.request.values)
        hot_library.hot_reads_give(self.at, own.table.at, cells_at, hot_at, cells.size, values_at)
        own.is_settled = np.ones(own.split.cells.size, np.bool_)

    def finish_take(self) -> None:
        """Take what the C library has left of received packets."""
        if self._native.fallen.count:
            rows = self._fallen[0, : self._native.fallen.count]
            self._fall_back(rows[self._due_s[rows] < np.inf])
        self._calls.finish()

    def tick(self, now_s: float) -> None:
        """Send READ again, or ask the server, where it is time."""
        hot_library.hot_reads_tick(self.at, now_s)
        self._send()
        self._fall_back(self._fallen[0, : self._native.fallen.count].copy())

    def fail(self, error: HostlibError) -> None:
        """Fail all requests."""
        rows = np.flatnonzero(self._due_s < np.inf)
        self._due_s[rows] = np.inf
        self._tries[rows] = 0
        self._calls.settle(self._calls.detach(rows), error)

    def _fall_back(self, rows: Indices) -> None:
        """Let all requests of rows that are being read ask the server for them."""
        if not rows.size:
            return
        self._due_s[rows] = np.inf
        self._tries[rows] = 0
        shares = self._calls.detach(rows)
        is_gone = np.zeros(self.map.size, np.bool_)
        is_gone[rows] = True
        for call in shares.calls.tolist():
            own = self._open[call]
            first, end = own.table.first_row, own.table.end_row
            by_unit = np.any(is_gone[first:end].reshape(-1, own.table.rows_per_unit), axis=1)
            if own.is_settled is None:
                own.is_settled = np.zeros(own.split.cells.size, np.bool_)
            units = own.split.cells // own.table.keys_per_unit
            positions = np.flatnonzero(by_unit[units] & ~own.is_settled)
            own.is_settled[positions] = True
            if positions.size:
                self._calls.add_part(call)

                def settle(error: HostlibError | None, call: int = call) -> None:
                    self._calls.settle_one(call, error)

                own.request.pull_cold(positions, settle)
        self._calls.settle(shares)
