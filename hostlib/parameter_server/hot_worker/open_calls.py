# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Calls of pushes or pulls, and the places in arrays for which they wait."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ...errors import HostlibError
from ...native.hot_row_library import OpenCallsStruct, hot_library
from ...native.library import address

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
    hold parts of several calls: open_calls.h describes the arrays, which the C library uses, too.
    """

    def __init__(self, num_places: int = 0) -> None:
        self._native = OpenCallsStruct()
        self.at: int = ctypes.addressof(self._native)
        """Of its `open_calls_t`."""
        self._head = np.full(num_places, _NONE)
        self._call = np.empty(0, np.int64)
        self._older = np.empty(0, np.int64)
        self._free = np.empty(0, np.int64)
        self._parts = np.zeros(0, np.int64)
        self._ended = np.empty(0, np.int64)
        self._errors: dict[int, HostlibError] = {}
        self._done: list[Done | None] = []
        self._free_calls: list[int] = []
        self._share_arrays()

    def _share_arrays(self) -> None:
        """Tell the C library where the arrays are."""
        for name in ("head", "call", "older", "free", "parts", "ended"):
            setattr(self._native, name, address(getattr(self, f"_{name}")))

    @property
    def num_open(self) -> int:
        """Calls that are not done."""
        return len(self._done) - len(self._free_calls)

    def open(self, done: Done) -> int:
        """Return the number of a call with one part, for the caller to settle by `settle_one`."""
        if not self._free_calls:
            size = len(self._done)
            self._parts = np.concatenate((self._parts, np.zeros(size + 16, np.int64)))
            self._ended = np.concatenate((self._ended, np.empty(size + 16, np.int64)))
            self._done += [None] * (size + 16)
            self._free_calls = list(range(2 * size + 15, size - 1, -1))
            self._share_arrays()
        call = self._free_calls.pop()
        self._done[call] = done
        self._parts[call] = 1
        return call

    def reserve(self, count: int) -> None:
        """Let the C library attach calls to so many places."""
        if self._native.num_free < count:
            self._grow(count)

    def attach(self, places: Places, call: int) -> None:
        """Let a call wait for places, one part each."""
        self.reserve(places.size)
        hot_library.open_calls_attach_all(self.at, address(places), places.size, call)

    def detach(self, places: Places) -> Shares:
        """Let no call wait for places any more; what is returned is still to be settled."""
        return self._list(places, is_detached=True)

    def share(self, places: Places) -> Shares:
        """Let the calls of places wait for as many parts more, which are returned."""
        shares = self._list(places, is_detached=False)
        self._parts[shares.calls] += shares.counts
        return shares

    def _list(self, places: Places, *, is_detached: bool) -> Shares:
        found = np.empty(self._call.size - self._native.num_free, np.int64)
        count = hot_library.open_calls_list(
            self.at, address(places), places.size, is_detached, address(found)
        )
        counts = np.bincount(found[:count])
        calls = np.flatnonzero(counts)
        return Shares(calls, counts[calls])

    def move(self, old: Places, new: Places) -> None:
        """Let the calls of places wait for others, besides the calls that these have."""
        hot_library.open_calls_move_all(self.at, address(old), address(new), old.size)

    def replace(self, num_places: int, old: Places, new: Places) -> None:
        """Change the number of places; what was at `old` is at `new` then, and no others are."""
        head = np.full(num_places, _NONE)
        head[new] = self._head[old]
        self._head = head
        self._share_arrays()

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

    def finish(self) -> None:
        """End the calls whose last part the C library has settled."""
        count = self._native.num_ended
        if count:
            ended = self._ended[:count].tolist()
            self._native.num_ended = 0
            for call in ended:
                self._end(call)

    def _end(self, call: int) -> None:
        done, self._done[call] = self._done[call], None
        self._free_calls.append(call)
        assert done is not None
        done(self._errors.pop(call, None))

    def _grow(self, count: int) -> None:
        size, num_free = self._call.size, self._native.num_free
        more = max(size, count, 1024)
        room = np.zeros(more, np.int64)
        self._call = np.concatenate((self._call, room))
        self._older = np.concatenate((self._older, room))
        free = np.empty(size + more, np.int64)
        free[:num_free] = self._free[:num_free]
        free[num_free : num_free + more] = np.arange(size, size + more)
        self._free = free
        self._native.num_free = num_free + more
        self._share_arrays()
