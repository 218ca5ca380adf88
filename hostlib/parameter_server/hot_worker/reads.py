# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's reads of the hot rows of a server, from its switch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Protocol, final

import numpy as np
from numpy.typing import NDArray

from ...errors import HostlibError
from ...hot_rows.row_packets import RowPackets
from ...peers.frames import HotRowsState
from ...transports.base import Datagrams
from .open_calls import OpenCalls
from .row_map import Floats, HotCells, Indices, RowMap

TRY_S: Final = 0.02
"""Until a READ is sent again, and then until the server is asked instead."""
MOST_TRIES: Final = 2
_WINDOW: Final = 1 << 30
_MODULUS: Final = 1 << 32
"""Versions that are older than the server's newest by more than this are not asked for."""
Positions = NDArray[np.int64]
DoneRead = Callable[[HostlibError | None], None]


class ReadPort(Protocol):
    """What the reads need."""

    def send(self, datagrams: Datagrams) -> None:
        """Send datagrams to the switch; they may be lost."""
        ...


class ReadRequest(Protocol):
    """The hot keys of a pull."""

    def take(self, positions: Positions, values: Floats) -> None:
        """Take the values of some of the keys, by their positions among these."""
        ...

    def pull_cold(self, positions: Positions, done: DoneRead) -> None:
        """Ask the server for some of the keys, and take their values, before `done`."""
        ...


class _OpenRead:
    """A request until all of its rows are answered."""

    def __init__(self, request: ReadRequest, table: HotCells, cells: Indices) -> None:
        self.request = request
        self.table = table
        self.cells = cells
        self.units = cells // table.keys_per_unit
        self.is_settled = np.zeros(cells.size, np.bool_)
        """Which keys have their values, or wait for the server."""


@final
class HotReads:
    """The state machine; time comes from the caller, as to `HotPushes`.

    Requests that come while a row is being read share its answer.
    """

    def __init__(self, port: ReadPort) -> None:
        self._port = port
        self._calls = OpenCalls()
        self._open: dict[int, _OpenRead] = {}  # by call
        self._packets: RowPackets | None = None
        self._newest = np.uint32(0)
        self.next_s = math.inf
        """When `tick` has something to do."""
        self._allocate(RowMap(HotRowsState(0)))

    def _allocate(self, rows: RowMap) -> None:
        self.map = rows
        self._values = np.zeros((rows.size, rows.state.values_per_packet), np.float32)
        self._version = np.zeros(rows.size, np.uint32)
        self._has_version = np.zeros(rows.size, np.bool_)
        self._due_s = np.full(rows.size, np.inf)
        self._tries = np.zeros(rows.size, np.int64)
        self._calls.replace(rows.size, *np.empty((2, 0), np.int64))

    def adopt(self, rows: RowMap, packets: RowPackets | None) -> None:
        """Take HOT_ROWS: the server is asked for what is open; versions of rows stay."""
        self._fall_back(np.flatnonzero(self._due_s < np.inf))
        for own in self._open.values():  # what is not settled is answered
            self._give(own)
        before, values = self.map, self._values
        version, has_version = self._version, self._has_version
        self._allocate(rows)
        self._packets = packets
        self.next_s = math.inf
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
        self._newest = version

    def read(
        self,
        table: HotCells,
        cells: Indices,
        request: ReadRequest,
        done: DoneRead,
        now_s: float,
    ) -> None:
        """Read cells for a request; `done` when it has taken all their values."""
        own = _OpenRead(request, table, cells)

        def finish(error: HostlibError | None) -> None:
            del self._open[call]
            if error is None:
                self._give(own)
            done(error)

        call = self._calls.open(finish)
        self._open[call] = own
        rows = table.rows_of(table.touched(own.units))
        self._calls.attach(rows, call)
        self._ask(rows[self._due_s[rows] == np.inf], now_s)
        self._calls.settle_one(call)

    def _give(self, own: _OpenRead) -> None:
        """Give a request what its answered rows hold."""
        hot = np.flatnonzero(~own.is_settled)
        own.request.take(hot, own.table.pick(own.cells[hot], self._values))
        own.is_settled[hot] = True

    def _ask(self, rows: Indices, now_s: float) -> None:
        """Send READ for rows."""
        if not rows.size or self._packets is None:
            return
        # Unless a version is known, any will do; versions are serial numbers.
        oldest = np.uint32((int(self._newest) - _WINDOW) % _MODULUS)
        version = np.where(self._has_version[rows], self._version[rows], oldest)
        self._due_s[rows] = now_s + TRY_S
        self._tries[rows] += 1
        self.next_s = min(self.next_s, now_s + TRY_S)
        names = self.map.numbers[rows], self.map.epochs[rows], version
        self._port.send(self._packets.read(*names))

    def take_values(self, packets: NDArray[np.void]) -> None:
        """Take answers to READ; older versions than the last are dropped."""
        rows = self.map.find_current(packets["header"])
        if (rows < 0).any():
            packets, rows = packets[rows >= 0], rows[rows >= 0]
        version, values = packets["header"]["round"].astype(np.uint32), packets["values"]
        is_newer = (version - self._version[rows]).astype(np.int32) >= 0
        is_taken = is_newer | ~self._has_version[rows]
        if not is_taken.all():
            rows, version, values = rows[is_taken], version[is_taken], values[is_taken]
        each = np.unique(rows)
        if each.size < rows.size:  # the newest packet of a row counts
            order = np.argsort((version - self._newest).astype(np.int32), kind="stable")
            rows, version, values = rows[order], version[order], values[order]
        self._values[rows] = values.astype(np.int32).view(np.float32)
        self._version[rows] = version
        self._has_version[rows] = True
        self._end(each)

    def take_cold(self, packets: NDArray[np.void]) -> None:
        """Take NOTICE with COLD: the server is asked for rows that are being read."""
        rows = self.map.find_current(packets["header"])
        rows = np.unique(rows[rows >= 0])
        self._fall_back(rows[self._due_s[rows] < np.inf])

    def tick(self, now_s: float) -> None:
        """Send READ again, or ask the server, where it is time."""
        rows = np.flatnonzero(self._due_s <= now_s)
        is_last = self._tries[rows] >= MOST_TRIES
        self._ask(rows[~is_last], now_s)
        self._fall_back(rows[is_last])
        self.next_s = float(self._due_s.min(initial=np.inf))

    def fail(self, error: HostlibError) -> None:
        """Fail all requests."""
        rows = np.flatnonzero(self._due_s < np.inf)
        self._due_s[rows] = np.inf
        self._tries[rows] = 0
        self._calls.settle(self._calls.detach(rows), error)

    def _end(self, rows: Indices) -> None:
        rows = rows[self._due_s[rows] < np.inf]
        self._due_s[rows] = np.inf
        self._tries[rows] = 0
        self._calls.settle(self._calls.detach(rows))

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
            positions = np.flatnonzero(by_unit[own.units] & ~own.is_settled)
            own.is_settled[positions] = True
            if positions.size:
                self._calls.add_part(call)

                def settle(error: HostlibError | None, call: int = call) -> None:
                    self._calls.settle_one(call, error)

                own.request.pull_cold(positions, settle)
        self._calls.settle(shares)
