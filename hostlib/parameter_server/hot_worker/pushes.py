# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's pushes to the hot rows of a server, until the server has decided their rounds.

A row has three places, in arrays with all places of a row one after the other: two for pushes in
undecided rounds, by the round's parity, and one for gradients that wait for such a place.
"""

from __future__ import annotations

import math
from typing import Any, Final, Protocol, final

import numpy as np
from numpy.typing import NDArray

from ...errors import HostlibError, PeerProtocolError
from ...hot_rows.row_packets import RowPackets
from ...peers.frames import OPEN_ROUND_DTYPE, HotRowsState
from ...slots.wire import Operation
from ...transports.base import Datagrams
from .open_calls import Done, OpenCalls, Places, Shares
from .row_map import Floats, HotCells, Indices, KeyedGradients, RowMap

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
"""So often a push whose round was decided without it gets the name of another round."""
_MOST_DOUBLINGS: Final = 5
_MOST_TICKS: Final = 100
_MOST_LEVEL: Final = 8
"""Of switches, in flushes."""

# The use of a place.
_FREE: Final = 0
_SENT: Final = 1
"""By a push that is sent again until the switch has it; or by gradients that wait."""
_QUIET: Final = 2
"""By a push that the switch has, or that met a cold row: it is not sent again."""
_OVER: Final = 3
"""By a push whose round is over at the switch: it is not flushed, either."""
_ABANDONED: Final = 4
"""By the name of a push for which nobody waits; the place holds zeros."""


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
        self._packets: RowPackets | None = None
        self.next_s = math.inf
        """When `tick` has something to do."""
        self._allocate(RowMap(HotRowsState(0)))

    def _allocate(self, rows: RowMap) -> None:
        """Begin with the rows of a HOT_ROWS: all places are free."""
        self.map = rows
        count = PLACES * rows.size
        self._flush_s = rows.state.flush_us / 1e6
        self._bit = np.uint32(rows.state.worker_bitmap)
        self._next = rows.rows["next"].astype(np.int64)
        self._is_ahead = rows.rows["is_ahead"] != 0
        self._cold_until_s = np.zeros(rows.size)
        self._held = np.zeros((count, rows.state.values_per_packet), np.float32)
        self._use = np.full(count, _FREE, np.uint8)
        self._round = np.zeros(count, np.int64)
        self._due_s = np.full(count, np.inf)
        self._ticks = np.zeros(count, np.int8)
        self._renames = np.zeros(count, np.int8)

    def is_hot(self, rows: Indices, now_s: float) -> NDArray[np.bool_]:
        """Return whether the switch takes pushes to rows, as far as is known."""
        return self._cold_until_s[rows] <= now_s

    def add(
        self, table: HotCells, cells: Indices, gradients: Floats, call: int, now_s: float
    ) -> None:
        """Push gradients of cells, or let them wait; the call waits for their decisions."""
        rows, lanes = table.spread(cells, gradients)
        rounds, may_push = self._choose(rows)
        if not may_push.all():
            waiting = rows[~may_push]
            places = waiting * PLACES + WAITING
            self._held[places] += lanes[~may_push]
            self._use[places] = _SENT
            self._calls.attach(places, call)
            rows, lanes, rounds = rows[may_push], lanes[may_push], rounds[may_push]
        self._calls.attach(rows * PLACES + (rounds & 1), call)
        self._push(rows, rounds, lanes, now_s)

    def _choose(self, rows: Indices) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the first round of each row that is neither used nor decided, if there is one."""
        first = self._next[rows]
        is_first_used = self._use[rows * PLACES + (first & 1)] != _FREE
        if not is_first_used.any():
            return first, ~is_first_used
        second = rows * PLACES + (~first & 1)
        has_second = ~self._is_ahead[rows] & (self._use[second] == _FREE)
        return first + is_first_used, ~is_first_used | has_second

    def _push(
        self,
        rows: Indices,
        rounds: NDArray[np.int64],
        lanes: Floats,
        now_s: float,
        renames: NDArray[np.int8] | int = 0,
    ) -> None:
        """Push to rows with a free place, to which the calls are attached already."""
        if not rows.size:
            return
        places = rows * PLACES + (rounds & 1)
        integers = self._quantise(rows, lanes)
        if not (integers.max() <= MOST_LANE and integers.min() >= -MOST_LANE):
            self._divert(rows, places, lanes, integers)
        self._held[places] = lanes
        self._use[places] = _SENT
        self._round[places] = rounds
        self._ticks[places] = 0
        self._renames[places] = renames
        self._due_s[places] = now_s + self._flush_s
        self.next_s = min(self.next_s, now_s + self._flush_s)
        self._send_pushes(rows, rounds, integers)

    def _quantise(self, rows: Indices, lanes: Floats) -> Floats:
        """Return whole numbers, or infinities and NaN where float32 does not hold them."""
        with np.errstate(over="ignore", invalid="ignore"):
            integers = lanes * self.map.scales[rows, None]
        return np.rint(integers, out=integers)

    def _divert(self, rows: Indices, places: Places, lanes: Floats, integers: Floats) -> None:
        """Send gradients of keys that do not fit by TCP, and push zeros in their place."""
        is_too_large = ~(np.abs(integers) <= MOST_LANE) & (lanes != 0)
        at = np.flatnonzero(is_too_large.any(axis=1))
        for table in self.map.tables.values():
            own = at[(rows[at] >= table.first_row) & (rows[at] < table.end_row)]
            if own.size:
                is_diverted = table.whole_keys(is_too_large[own])
                diverted = np.where(is_diverted, lanes[own], np.float32(0))
                shares = self._calls.share(places[own])
                self._push_cold(table.collect(rows[own], diverted), shares)
                lanes[own] = np.where(is_diverted, np.float32(0), lanes[own])
        integers[...] = self._quantise(rows, lanes)
        np.nan_to_num(integers, copy=False)

    def _send_pushes(self, rows: Indices, rounds: NDArray[np.int64], integers: Floats) -> None:
        if self._packets is None:
            return
        names = self.map.numbers[rows], self.map.epochs[rows], rounds.astype(np.uint32)
        self._port.send(self._packets.push(*names, integers.astype(np.int32)))

    def _push_cold(self, part: KeyedGradients, shares: Shares) -> None:
        self._port.push_cold(part, lambda error: self._calls.settle(shares, error), shares.calls)

    # What the server says.

    def decide(self, generation: int, decisions: NDArray[np.void], now_s: float) -> None:
        """Take DECISIONS. Raises PeerProtocolError for a round too far ahead."""
        if generation != self.map.generation:
            return
        rows = self.map.find(decisions["row"])
        is_known = rows >= 0
        rows, decisions = rows[is_known], decisions[is_known]
        rounds = decisions["round"].astype(np.int64)
        is_counted = (decisions["bitmap"] & self._bit) != 0
        settled: list[Places] = []
        lost: list[Places] = []
        last = np.empty(self.map.size, np.int64)
        left = np.arange(rows.size)
        while left.size:  # once, unless a row has several decisions: then in their order
            last[rows[left[::-1]]] = left[::-1]
            is_first = last[rows[left]] == left
            now, left = left[is_first], left[~is_first]
            mine = self._advance(rows[now], rounds[now])
            places = rows[now] * PLACES + (rounds[now] & 1)
            settled.append(places[mine & is_counted[now]])
            lost.append(places[mine & ~is_counted[now]])
        self._settle(np.concatenate(settled or [rows]))
        self._rename(np.concatenate(lost or [rows]), now_s)
        waiting = rows[self._use[rows * PLACES + WAITING] != _FREE]
        self._push_waiting(np.unique(waiting), now_s)

    def _advance(self, rows: Indices, rounds: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Note decided rounds, one per row; return which of them have a push of this worker."""
        first = self._next[rows]
        is_first, is_second = rounds == first, rounds == first + 1
        if (rounds > first + 1).any():
            raise PeerProtocolError("the server decided a round before the second last one")
        moved = rows[is_first]
        self._next[moved] += 1 + self._is_ahead[moved]
        self._is_ahead[moved] = False
        self._is_ahead[rows[is_second]] = True
        places = rows * PLACES + (rounds & 1)
        return (self._use[places] != _FREE) & (self._round[places] == rounds)

    def _settle(self, places: Places) -> None:
        """Free places whose pushes were counted."""
        self._free(places)
        self._calls.settle(self._calls.detach(places))

    def _rename(self, places: Places, now_s: float) -> None:
        """Free places whose rounds were decided without them: their pushes wait for other rounds.

        Those of cold rows, or of pushes that have waited so too often, go by TCP.
        """
        may_wait = self.is_hot(places // PLACES, now_s) & (self._renames[places] < MOST_RENAMES)
        may_wait &= self._use[places] != _ABANDONED
        self._resend(places[~may_wait])
        self._free(places[may_wait])
        for copy in range(WAITING):  # so that each row is there once
            lost = places[may_wait & (places % PLACES == copy)]
            waiting = lost + (WAITING - copy)
            self._held[waiting] += self._held[lost]
            self._renames[waiting] = np.maximum(self._renames[waiting], self._renames[lost] + 1)
            self._use[waiting] = _SENT
            self._calls.move(lost, waiting)

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
        self._use[places] = _FREE
        self._due_s[places] = np.inf

    def _clear_waiting(self, places: Places) -> None:
        self._held[places] = 0
        self._use[places] = _FREE
        self._renames[places] = 0

    def _push_waiting(self, rows: Indices, now_s: float) -> None:
        """Push what waits at rows, as far as they have a place for it now."""
        rounds, may_push = self._choose(rows)
        rows, rounds = rows[may_push], rounds[may_push]
        waiting = rows * PLACES + WAITING
        self._calls.move(waiting, rows * PLACES + (rounds & 1))
        lanes, renames = self._held[waiting], self._renames[waiting]
        self._clear_waiting(waiting)
        self._push(rows, rounds, lanes, now_s, renames)

    # What the switch says.

    def take_results(self, packets: NDArray[np.void]) -> None:
        """Take RESULT and NOTICE without COLD, which say what the switch has."""
        header = packets["header"]
        rows = self.map.find_current(header)
        header, rows = header[rows >= 0], rows[rows >= 0]
        rounds = header["round"].astype(np.int64)
        places = rows * PLACES + (rounds & 1)
        own = self._round[places]
        is_in = (header["worker_bitmap"] & self._bit) != 0
        is_result = header["operation"] == Operation.RESULT
        is_open = (self._use[places] == _SENT) | (self._use[places] == _QUIET)
        self._use[places[is_open & (rounds == own) & is_in]] = _QUIET
        self._use[places[is_open & ((rounds > own) | ((rounds == own) & is_result))]] = _OVER

    def take_cold(self, packets: NDArray[np.void], now_s: float) -> None:
        """Take NOTICE with COLD: ask for decisions of the rows, and send by TCP for a while."""
        rows = self.map.find_current(packets["header"])
        rows = np.unique(rows[rows >= 0])
        waiting = rows * PLACES + WAITING
        waiting = waiting[self._use[waiting] != _FREE]
        self._resend(waiting)
        self._clear_waiting(waiting)
        is_new = self._cold_until_s[rows] <= now_s
        self._cold_until_s[rows] = now_s + COLD_S
        places = (rows[is_new, None] * PLACES + np.arange(WAITING)).ravel()
        places = places[(self._use[places] != _FREE) & (self._use[places] != _ABANDONED)]
        self._use[places[self._use[places] == _SENT]] = _QUIET
        self._ticks[places] = DECIDE_TICKS
        self._ask(places)

    # What time says.

    def tick(self, now_s: float) -> None:
        """Flush, push again and ask for decisions, where it is time."""
        places = np.flatnonzero(self._due_s <= now_s)
        rows, ticks = places // PLACES, self._ticks[places]
        self._ticks[places] = np.minimum(ticks + 1, _MOST_TICKS)
        pause_s = self._flush_s * 2.0 ** np.minimum(ticks + 1, _MOST_DOUBLINGS)
        self._due_s[places] = now_s + pause_s
        is_hot = self.is_hot(rows, now_s)
        use = self._use[places]
        again = places[(ticks > 0) & is_hot & (use == _SENT)]
        if again.size:
            integers = self._quantise(again // PLACES, self._held[again])
            self._send_pushes(again // PLACES, self._round[again], integers)
        can_flush = is_hot & ((use == _SENT) | (use == _QUIET))
        for level in np.unique(np.minimum(ticks[can_flush], _MOST_LEVEL)).tolist():
            flushed = places[can_flush & (np.minimum(ticks, _MOST_LEVEL) == level)]
            self._send_flushes(flushed, level)
        self._ask(places[ticks >= DECIDE_TICKS])
        self.next_s = float(self._due_s.min(initial=np.inf))

    def _send_flushes(self, places: Places, level: int) -> None:
        if self._packets is None:
            return
        rows, rounds = places // PLACES, self._round[places].astype(np.uint32)
        names = self.map.numbers[rows], self.map.epochs[rows], rounds
        self._port.send(self._packets.flush(*names, level=level))

    def _ask(self, places: Places) -> None:
        if not places.size:
            return
        rounds = np.empty(places.size, OPEN_ROUND_DTYPE)
        rounds["row"] = self.map.numbers[places // PLACES]
        rounds["round"] = self._round[places]
        self._port.decide(self.map.generation, rounds)

    # What changes everything.

    def adopt(self, rows: RowMap, packets: RowPackets | None, now_s: float) -> None:
        """Take HOT_ROWS; without packets, the switch cannot be reached.

        It names all rows that have counted this worker, hot or not, in whatever generation. Pushes
        whose rounds are undecided stay where they are, and those that were decided without this
        worker get other rounds. A push of an epoch that is over can count no more: it goes by TCP.
        """
        places, found, fate = self._fates(rows)
        self._settle(places[fate == _COUNTED])
        if (fate == _RENAMED).any():
            self._rename(places[fate == _RENAMED], now_s)
            places, found, fate = self._fates(rows)
        is_abandoned = self._use[places] == _ABANDONED
        is_kept = (fate == _KEPT) & ~is_abandoned
        old, new = places[is_kept], self._moved(places, found, is_kept)
        # Other pushes of rounds that are not decided: their names stay used.
        is_moot = (fate == _MOOT) | ((fate == _KEPT) & is_abandoned)
        moot, moot_rounds = self._moved(places, found, is_moot), self._round[places[is_moot]]
        self._resend(places[(fate == _LOST) | (fate == _MOOT)])
        before = self._arrays()
        self._allocate(rows)
        self._packets = packets
        self._calls.replace(PLACES * rows.size, old, new)
        if new.size:  # otherwise rows may have another length
            for array, array_before in zip(self._arrays(), before, strict=True):
                array[new] = array_before[old]
        self._abandon(moot, moot_rounds, now_s)
        self.next_s = float(self._due_s.min(initial=np.inf))
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
        self._use[places] = _ABANDONED
        self._round[places] = rounds
        self._ticks[places] = DECIDE_TICKS
        self._due_s[places] = now_s + self._flush_s
        self._ask(places)

    def fail(self, error: HostlibError) -> None:
        """Fail all calls: whether their pushes count is unknown. The names stay used."""
        self._fail(np.flatnonzero(self._use), error)

    def _fail(self, places: Places, error: HostlibError) -> None:
        is_waiting = places % PLACES == WAITING
        self._clear_waiting(places[is_waiting])
        self._held[places[~is_waiting]] = 0
        self._use[places[~is_waiting]] = _ABANDONED
        self._calls.settle(self._calls.detach(places), error)


_KEPT, _LOST, _COUNTED, _RENAMED, _MOOT = range(5)
