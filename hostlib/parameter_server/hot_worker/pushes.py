# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's pushes to the hot rows of a server, until the server has decided their rounds.

A row has three places, in arrays with all places of a row one after the other: two for pushes in
undecided rounds, by the round's parity, and one for gradients that wait for such a place.

What happens with every push is in the C library, on the same arrays: hot_pushes.h. Here is what
changes all rows, and what goes by TCP.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any, Final, Protocol, final

import numpy as np
from numpy.typing import NDArray

from ...errors import HostlibError, PeerProtocolError
from ...hot_rows.hot_cells import KEY_BYTES, HotCells, Indices, KeyedGradients, SplitKeys
from ...hot_rows.sketch import Keys
from ...native.hot_row_library import (
    HotPushesStruct,
    PlaceUse,
    hot_library,
    place_lists,
)
from ...native.library import address
from ...peers.frames import DECISION_DTYPE, OPEN_ROUND_DTYPE, HotRowsState
from ...transports.base import Datagrams
from .open_calls import Done, OpenCalls, Places, Shares
from .packet_room import PacketRoom
from .row_map import RowMap

PLACES: Final = 3
WAITING: Final = 2
"""The place of gradients that wait; 0 and 1 are those of pushes."""
MOST_LANE: Final = 1 << 25
"""Largest absolute value of a lane: 32 workers' sum fits."""
COLD_S: Final = 1.0
"""After COLD, gradients of the row go by TCP for this time, unless HOT_ROWS comes before."""
DECIDE_TICKS: Final = 3
"""A worker asks for decisions from the tick after so many others on: after 15 times the pause until
the first tick, as each pause is twice the one before."""
MOST_RENAMES: Final = 2
"""So often a push whose round was decided without it gets the name of another round. These numbers
are in hot_pushes.h as well."""

_NO_PLACES: Final[Places] = np.empty(0, np.int64)


class PushPort(Protocol):
    """What the pushes need of a connection and a socket."""

    def send(self, datagrams: Datagrams) -> None:
        """Send datagrams to the switch; they may be lost."""
        ...

    def decide(self, generation: int, rounds: NDArray[np.void]) -> None:
        """Ask the server to decide rounds, of OPEN_ROUND_DTYPE, if it can be reached now."""
        ...

    def push_cold(self, part: KeyedGradients, done: Done, calls: Places | None = None) -> None:
        """Push by TCP; for these calls, which meant to push to the switch."""
        ...


@final
class HotPushes:
    """The state machine; time comes from the caller, in seconds of any clock that does not jump."""

    def __init__(self, port: PushPort, calls: OpenCalls) -> None:
        self._port = port
        self._calls = calls
        """Its places are those of this object."""
        self._native = HotPushesStruct(next_s=math.inf)
        self.at: int = ctypes.addressof(self._native)
        """Of its `hot_pushes_t`."""
        self._allocate(RowMap(HotRowsState(0)), PacketRoom(0))

    def _allocate(self, rows: RowMap, room: PacketRoom) -> None:
        """Begin with the rows of a HOT_ROWS: all places are free."""
        self.map = rows
        self._room = room
        count = PLACES * rows.size
        self._next = rows.rows["next"].astype(np.int64)
        self._is_ahead = rows.rows["is_ahead"] != 0
        self._cold_until_s = np.zeros(rows.size)
        self._stamps = np.zeros(rows.size, np.uint64)
        self._targets = np.empty(rows.size, np.int64)
        self._held = np.zeros((count, rows.state.values_per_packet), np.float32)
        self._use = np.full(count, PlaceUse.FREE, np.uint8)
        self._round = np.zeros(count, np.int64)
        self._due_s = np.full(count, np.inf)
        self._ticks = np.zeros(count, np.int8)
        self._renames = np.zeros(count, np.int8)
        self._share_arrays()

    def _share_arrays(self) -> None:
        """Tell the C library where the arrays are."""
        native = self._native
        native.map, native.packets, native.calls = self.map.at, self._room.at, self._calls.at
        native.flush_s = self.map.state.flush_us / 1e6
        native.bit = self.map.state.worker_bitmap
        for name in ("next", "is_ahead", "cold_until_s", "stamps", "targets"):
            setattr(native, name, address(getattr(self, f"_{name}")))
        for name in ("held", "use", "round", "due_s", "ticks", "renames"):
            setattr(native, name, address(getattr(self, f"_{name}")))
        names = ("unfit", "late", "asked", "cold", "touched")
        memory, lists = place_lists(len(names), self._use.size)
        self._left: dict[str, Places] = dict(zip(names, memory, strict=True))
        for name, empty in zip(names, lists, strict=True):
            setattr(native, name, empty)

    @property
    def next_s(self) -> float:
        """When `tick` has something to do."""
        return self._native.next_s

    def split(self, table: HotCells, keys: Keys, now_s: float) -> SplitKeys:
        """Tell the keys that the switch has, as far as is known, from those that go by TCP."""
        return table.split(keys, self._native.cold_until_s, now_s)

    def add(self, table: HotCells, split: SplitKeys, call: int, now_s: float) -> None:
        """Push gradients of hot keys, or let them wait; the call waits for their decisions.

        The gradients come after all keys, as in a PUSH.
        """
        num_hot, gradients_at = split.hot.size, split.keys_at + KEY_BYTES * split.keys.size
        self._calls.reserve(self.map.size)
        hot_library.hot_pushes_add(
            self.at, table.at, split.cells_at, split.hot_at, num_hot, gradients_at, call, now_s
        )
        self._finish_pushes()

    def _finish_pushes(self) -> None:
        """Send the packets of pushes, after what does not fit them has gone by TCP."""
        unfit = self._take_left("unfit")
        if unfit.size:
            self._divert(unfit)
            hot_library.hot_pushes_send(self.at, address(unfit), unfit.size)
        self._send()

    def _send(self) -> None:
        datagrams = self._room.take()
        if datagrams is not None:
            self._port.send(datagrams)

    def _take_left(self, name: str) -> Places:
        """Return the places or rows that the C library's last call has left in a list."""
        count: int = getattr(self._native, name).count
        return self._left[name][:count].copy() if count else _NO_PLACES

    def _divert(self, places: Places) -> None:
        """Send gradients of keys that do not fit by TCP, and hold zeros in their place."""
        rows, lanes = places // PLACES, self._held[places]
        with np.errstate(over="ignore", invalid="ignore"):
            integers = np.rint(lanes * self.map.scales[rows, None])
        is_too_large = ~(np.abs(integers) <= MOST_LANE) & (lanes != 0)
        for table in self.map.tables.values():
            at = np.flatnonzero((rows >= table.first_row) & (rows < table.end_row))
            if at.size:
                is_diverted = table.whole_keys(is_too_large[at])
                diverted = np.where(is_diverted, lanes[at], np.float32(0))
                shares = self._calls.share(places[at])
                self._push_cold(table.collect(rows[at], diverted), shares)
                self._held[places[at]] = np.where(is_diverted, np.float32(0), lanes[at])

    def _push_cold(self, part: KeyedGradients, shares: Shares) -> None:
        self._port.push_cold(part, lambda error: self._calls.settle(shares, error), shares.calls)

    # What the server says.

    def decide(self, generation: int, decisions: memoryview, now_s: float) -> None:
        """Take DECISIONS, of DECISION_DTYPE. Raises PeerProtocolError for a round too far ahead."""
        if generation != self.map.generation:
            return
        payload = np.frombuffer(decisions, np.uint8)
        count = payload.size // DECISION_DTYPE.itemsize
        is_valid = hot_library.hot_pushes_decide(self.at, address(payload), count, now_s)
        late = self._take_left("late")
        if late.size:
            touched = self._take_left("touched")
            self._resend(late)
            self._push_waiting(touched, now_s)
        else:
            self._finish_pushes()
        self._calls.finish()
        if not is_valid:
            raise PeerProtocolError("the server decided a round before the second last one")

    def _resend(self, places: Places) -> None:
        """Free places, and send what they hold by TCP."""
        self._free(places)
        for table in self.map.tables.values():
            first, end = table.first_row * PLACES, table.end_row * PLACES
            found = places[(places >= first) & (places < end)]
            if found.size:
                part = table.collect(found // PLACES, self._held[found])
                shares = self._calls.detach(found)
                if part.keys.size:
                    self._push_cold(part, shares)
                else:  # all gradients were 0
                    self._calls.settle(shares)

    def _free(self, places: Places) -> None:
        self._use[places] = PlaceUse.FREE
        self._due_s[places] = np.inf

    def _clear_waiting(self, places: Places) -> None:
        self._held[places] = 0
        self._use[places] = PlaceUse.FREE
        self._renames[places] = 0

    def _push_waiting(self, rows: Indices, now_s: float) -> None:
        """Push what waits at rows, as far as they have a place for it now."""
        hot_library.hot_pushes_begin(self.at)
        hot_library.hot_pushes_push_waiting(self.at, address(rows), rows.size, now_s)
        self._finish_pushes()

    # What the switch says.

    def finish_take(self, now_s: float) -> None:
        """Take what the C library has left of received packets."""
        cold = self._take_left("cold")
        if cold.size:
            self._take_cold(cold, now_s)

    def _take_cold(self, rows: Indices, now_s: float) -> None:
        """Ask for decisions of cold rows, and send by TCP for a while."""
        waiting = rows * PLACES + WAITING
        waiting = waiting[self._use[waiting] != PlaceUse.FREE]
        self._resend(waiting)
        self._clear_waiting(waiting)
        is_new = self._cold_until_s[rows] <= now_s
        self._cold_until_s[rows] = now_s + COLD_S
        places = (rows[is_new, None] * PLACES + np.arange(WAITING)).ravel()
        places = places[
            (self._use[places] != PlaceUse.FREE) & (self._use[places] != PlaceUse.ABANDONED)
        ]
        self._use[places[self._use[places] == PlaceUse.SENT]] = PlaceUse.QUIET
        self._ticks[places] = DECIDE_TICKS
        self._ask(places)

    # What time says.

    def tick(self, now_s: float) -> None:
        """Flush, push again and ask for decisions, where it is time."""
        hot_library.hot_pushes_tick(self.at, now_s)
        self._send()
        self._ask(self._take_left("asked"))

    def _ask(self, places: Places) -> None:
        if not places.size:
            return
        rounds = np.empty(places.size, OPEN_ROUND_DTYPE)
        rounds["row"] = self.map.numbers[places // PLACES]
        rounds["round"] = self._round[places]
        self._port.decide(self.map.generation, rounds)

    # What changes everything.

    def adopt(self, rows: RowMap, room: PacketRoom, now_s: float) -> None:
        """Take HOT_ROWS; packets to the switch are written to `room` from now on.

        It names all rows that have counted this worker, hot or not, in whatever generation. Pushes
        whose rounds are undecided stay where they are, and those that were decided without this
        worker get other rounds. A push of an epoch that is over can count no more: it goes by TCP.
        """
        places, found, fate = self._fates(rows)
        counted, renamed = places[fate == _COUNTED], places[fate == _RENAMED]
        hot_library.hot_pushes_settle(self.at, address(counted), counted.size)
        self._calls.finish()
        if renamed.size:
            hot_library.hot_pushes_begin(self.at)
            hot_library.hot_pushes_rename(self.at, address(renamed), renamed.size, now_s)
            self._resend(self._take_left("late"))
            places, found, fate = self._fates(rows)
        is_abandoned = self._use[places] == PlaceUse.ABANDONED
        is_kept = (fate == _KEPT) & ~is_abandoned
        old, new = places[is_kept], self._moved(places, found, is_kept)
        # Other pushes of rounds that are not decided: their names stay used.
        is_moot = (fate == _MOOT) | ((fate == _KEPT) & is_abandoned)
        moot, moot_rounds = self._moved(places, found, is_moot), self._round[places[is_moot]]
        self._resend(places[(fate == _LOST) | (fate == _MOOT)])
        before = self._arrays()
        self._allocate(rows, room)
        self._calls.replace(PLACES * rows.size, old, new)
        if new.size:  # otherwise rows may have another length
            for array, array_before in zip(self._arrays(), before, strict=True):
                array[new] = array_before[old]
        self._abandon(moot, moot_rounds, now_s)
        self._native.next_s = self._due_s.min(initial=np.inf)
        self._push_waiting(new[new % PLACES == WAITING] // PLACES, now_s)

    def _arrays(self) -> tuple[NDArray[Any], ...]:
        """Return what stays with a push."""
        return self._held, self._use, self._round, self._due_s, self._ticks, self._renames

    @staticmethod
    def _moved(places: Places, found: Indices, which: NDArray[np.bool_]) -> Places:
        """Return the new places of some."""
        return found[which] * PLACES + places[which] % PLACES

    def _fates(self, rows: RowMap) -> tuple[Places, Indices, NDArray[np.int8]]:
        """Return the places in use, their rows' new indices, and what becomes of what they hold."""
        places = np.flatnonzero(self._use)
        found = rows.find(self.map.numbers[places // PLACES])
        has_row = found >= 0
        at = np.where(has_row, found, rows.size)
        records = np.concatenate((rows.rows, np.zeros(1, rows.rows.dtype)))[at]
        own, is_waiting = self._round[places], places % PLACES == WAITING
        is_same = has_row & (rows.generation == self.map.generation)
        first = records["next"].astype(np.int64)
        is_decided = (own < first) | ((own == first + 1) & (records["is_ahead"] != 0))
        is_current = is_same & (self.map.epochs[places // PLACES] == records["epoch"])
        is_current &= found < rows.num_table_rows
        name = np.uint64(self.map.generation << 32) | own.astype(np.uint64)
        is_counted = has_row & (records["counted"] == name[:, None]).any(axis=1)
        fate = np.select(
            (
                is_waiting & is_current,
                is_waiting,
                is_counted,
                is_decided & is_current,
                ~is_same | is_decided,
                is_current,
            ),
            (_KEPT, _LOST, _COUNTED, _RENAMED, _LOST, _KEPT),
            _MOOT,
        )
        return places, found, fate.astype(np.int8)

    def _abandon(self, places: Places, rounds: NDArray[np.int64], now_s: float) -> None:
        """Use names whose pushes went by TCP: their rounds are not this worker's any more."""
        self._use[places] = PlaceUse.ABANDONED
        self._round[places] = rounds
        self._ticks[places] = DECIDE_TICKS
        self._due_s[places] = now_s + self._native.flush_s
        self._ask(places)

    def fail(self, error: HostlibError) -> None:
        """Fail all calls: whether their pushes count is unknown. The names stay used."""
        self._fail(np.flatnonzero(self._use), error)

    def _fail(self, places: Places, error: HostlibError) -> None:
        is_waiting = places % PLACES == WAITING
        self._clear_waiting(places[is_waiting])
        self._held[places[~is_waiting]] = 0
        self._use[places[~is_waiting]] = PlaceUse.ABANDONED
        self._calls.settle(self._calls.detach(places), error)


_KEPT, _LOST, _COUNTED, _RENAMED, _MOOT = range(5)
