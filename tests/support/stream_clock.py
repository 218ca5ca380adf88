# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Clocks for the slot streams of a test's process, on which a busy machine has no influence."""

from __future__ import annotations

import ctypes
import time
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from switchfold.hostlib.native.library import library
from switchfold.hostlib.native.structures import BATCH, ArrivalsStruct, StreamOptionsStruct
from switchfold.hostlib.slots.wire import datagram_bytes

STEP_S = 0.01
"""Longest wait of a worker between two looks at the clock."""


class _Reducers:
    """What takes the place of the library's calls."""

    def __init__(self, *, is_still: bool) -> None:
        self._is_still = is_still
        self._new, self._free = library.reducer_new, library.reducer_free
        self._ran_s: dict[int, float] = {}  # by reducer, when it ran last
        self._transports: dict[int, int] = {}
        self._rows: dict[int, NDArray[np.uint8]] = {}

    def new(self, transport: int, options: Any, *arguments: Any) -> int:
        reducer = self._new(transport, options, *arguments)
        settings: StreamOptionsStruct = options._obj
        size = datagram_bytes(settings.values_per_packet)
        self._transports[reducer] = transport
        self._rows[reducer] = np.empty((BATCH, size), np.uint8)
        self._ran_s[reducer] = time.monotonic()
        return reducer

    def free(self, reducer: int) -> None:
        del self._ran_s[reducer], self._transports[reducer], self._rows[reducer]
        self._free(reducer)

    def _now_s(self, reducer: int) -> float:
        if not self._is_still:
            self._ran_s[reducer] = time.monotonic()
        return min(list(self._ran_s.values()))

    def poll(self, reducer: int, until_s: float, out: Any) -> int:
        """Do what `reducer_poll` does, and return after each step."""
        arrivals: ArrivalsStruct = out._obj
        arrivals.num_results = arrivals.num_blocks = arrivals.num_events = 0
        arrivals.has_multicasts = False
        arrivals.result_s = 0.0
        error = library.reducer_send(reducer, self._now_s(reducer))
        if error < 0:
            return error
        rows = self._rows[reducer]
        wait_s = max(0.0, min(until_s - time.monotonic(), STEP_S))
        count = library.transport_receive_rows(
            self._transports[reducer], rows.ctypes.data, len(rows), rows.shape[1], wait_s
        )
        if count < 0:
            return count
        pointers = (ctypes.c_void_p * len(rows))(*(row.ctypes.data for row in rows))
        error = library.reducer_take(reducer, pointers, count, self._now_s(reducer), out)
        if arrivals.num_results or arrivals.num_blocks:
            arrivals.result_s = time.monotonic()  # which the engine compares with its own clock
        return error or library.reducer_keep_time(reducer, self._now_s(reducer))


def _install(monkeypatch: pytest.MonkeyPatch, *, is_still: bool) -> None:
    reducers = _Reducers(is_still=is_still)
    monkeypatch.setattr(library, "reducer_new", reducers.new)
    monkeypatch.setattr(library, "reducer_free", reducers.free)
    monkeypatch.setattr(library, "reducer_poll", reducers.poll)


def install_even_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let time pass for all workers only as far as for the one that ran longest ago.

    If the process stood still, one worker would otherwise close its rounds as soon as it runs
    again, before the other workers of the process have sent their part.
    """
    _install(monkeypatch, is_still=False)


def install_still_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no time pass: nothing is sent again because a packet is late."""
    _install(monkeypatch, is_still=True)
