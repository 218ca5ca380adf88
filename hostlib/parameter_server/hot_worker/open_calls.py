# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Calls of pushes or pulls, and the places in arrays for which they wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ...errors import HostlibError

Places = NDArray[np.int64]
Done = Callable[[HostlibError | None], None]
_NONE: Final = -1


class Shares(NamedTuple):
    """Calls that wait for the same places, and for how many of them each does."""

    calls: Places
    counts: Places


@final
class OpenCalls:
    """Counts the open parts of each call, for whole arrays of places at a time.

    A call waits for parts: the places that it was attached to, and others by number. A place may
    hold parts of several calls. They form a list from the newest on, in arrays: `_head` by place,
    `_call` and `_older` by entry.
    """

    def __init__(self, num_places: int = 0) -> None:
        self._head = np.full(num_places, _NONE)
        self._call = np.empty(0, np.int64)
        self._older = np.empty(0, np.int64)
        self._free = np.empty(0, np.int64)
        self._num_free = 0
        self._parts = np.zeros(0, np.int64)
        self._errors: dict[int, HostlibError] = {}
        self._done: list[Done | None] = []
        self._free_calls: list[int] = []

    @property
    def num_open(self) -> int:
        """Calls that are not done."""
        return len(self._done) - len(self._free_calls)

    def open(self, done: Done) -> int:
        """Return the number of a call with one part, for the caller to settle by `settle_one`."""
        if not self._free_calls:
            size = len(self._done)
            self._parts = np.concatenate((self._parts, np.zeros(size + 16, np.int64)))
            self._done += [None] * (size + 16)
            self._free_calls = list(range(2 * size + 15, size - 1, -1))
        call = self._free_calls.pop()
        self._done[call] = done
        self._parts[call] = 1
        return call

    def attach(self, places: Places, call: int) -> None:
        """Let a call wait for places, one part each."""
        count = places.size
        if self._num_free < count:
            self._grow(count)
        entries = self._free[self._num_free - count : self._num_free]
        self._num_free -= count
        self._call[entries] = call
        self._older[entries] = self._head[places]
        self._head[places] = entries
        self._parts[call] += count

    def detach(self, places: Places) -> Shares:
        """Let no call wait for places any more; what is returned is still to be settled."""
        shares, entries = self._shares(places)
        self._head[places] = _NONE
        end = self._num_free + entries.size
        self._free[self._num_free : end] = entries
        self._num_free = end
        return shares

    def share(self, places: Places) -> Shares:
        """Let the calls of places wait for as many parts more, which are returned."""
        shares, _ = self._shares(places)
        self._parts[shares.calls] += shares.counts
        return shares

    def move(self, old: Places, new: Places) -> None:
        """Let the calls of places wait for others, besides the calls that these have."""
        oldest = self._head[old]
        is_older = oldest != _NONE
        old, new, oldest = old[is_older], new[is_older], oldest[is_older]
        is_joined = self._head[new] != _NONE
        if is_joined.any():
            self._older[self._oldest(oldest[is_joined])] = self._head[new[is_joined]]
        self._head[new] = self._head[old]
        self._head[old] = _NONE

    def replace(self, num_places: int, old: Places, new: Places) -> None:
        """Change the number of places; what was at `old` is at `new` then, and no others are."""
        head = np.full(num_places, _NONE)
        head[new] = self._head[old]
        self._head = head

    def add_part(self, call: int) -> None:
        """Let a call wait for one part more."""
        self._parts[call] += 1

    def settle_one(self, call: int, error: HostlibError | None = None) -> None:
        """End one part of a call."""
        self._parts[call] -= 1
        if error is not None:
            self._errors.setdefault(call, error)
        if not self._parts[call]:
            self._end(call)

    def settle(self, shares: Shares, error: HostlibError | None = None) -> None:
        """End parts of calls; a call without open parts is done, with its first error if any."""
        self._parts[shares.calls] -= shares.counts
        if error is not None:
            for call in shares.calls.tolist():
                self._errors.setdefault(call, error)
        ended = shares.calls[self._parts[shares.calls] == 0]
        for call in ended.tolist():
            self._end(call)

    def _end(self, call: int) -> None:
        done, self._done[call] = self._done[call], None
        self._free_calls.append(call)
        assert done is not None
        done(self._errors.pop(call, None))

    def _oldest(self, entries: Places) -> Places:
        """Return the last entries of lists that begin with these."""
        while True:  # as often as calls were combined
            older = self._older[entries]
            if (older == _NONE).all():
                return entries
            entries = np.where(older == _NONE, entries, older)

    def _shares(self, places: Places) -> tuple[Shares, Places]:
        """Return the shares of places, and their entries."""
        found: list[Places] = []
        entries = self._head[places]
        entries = entries[entries != _NONE]
        while entries.size:  # as often as calls were combined
            found.append(entries)
            entries = self._older[entries]
            entries = entries[entries != _NONE]
        all_entries = np.concatenate(found) if found else np.empty(0, np.int64)
        counts = np.bincount(self._call[all_entries])
        calls = np.flatnonzero(counts)
        return Shares(calls, counts[calls]), all_entries

    def _grow(self, count: int) -> None:
        size = self._call.size
        more = max(size, count, 1024)
        room = np.zeros(more, np.int64)
        self._call = np.concatenate((self._call, room))
        self._older = np.concatenate((self._older, room))
        free = np.empty(size + more, np.int64)
        free[: self._num_free] = self._free[: self._num_free]
        free[self._num_free : self._num_free + more] = np.arange(size, size + more)
        self._free = free
        self._num_free += more
