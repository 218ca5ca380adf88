# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A switch reducer that is driven step by step, by a clock of the test's own."""

from __future__ import annotations

import ctypes
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchfold.hostlib.control.view import JobView
from switchfold.hostlib.native.library import library
from switchfold.hostlib.native.structures import BATCH, ArrivalsStruct
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.slots.switch_reducer import SwitchReducer


class SteppedReducer:
    """What `SwitchReducer.poll` does in one call, in single steps at given times."""

    def __init__(self, view: JobView, transport: Any, options: SessionOptions) -> None:
        self.reducer = SwitchReducer(view, transport, options, Counter())
        self.exponents, self.values = self.reducer.exponents, self.reducer.values
        self._handle = self.reducer._reducer  # pyright: ignore[reportPrivateUsage]

    def send(self, now_s: float) -> None:
        """Send what window and slots allow, and what is to be prepared for that."""
        is_hungry = True
        while is_hungry:
            assert library.reducer_send(self._handle, now_s) >= 0
            streams = (library.reducer_stream(self._handle, number) for number in range(2))
            is_hungry = any(library.stream_is_hungry(stream) for stream in streams)
            self._note_progress()

    def take(self, rows: NDArray[np.uint8], now_s: float) -> None:
        """Take the datagrams in some rows."""
        for first in range(0, len(rows), BATCH):
            part = np.ascontiguousarray(rows[first : first + BATCH])
            pointers = (ctypes.c_void_p * len(part))(*(row.ctypes.data for row in part))
            arrivals = ArrivalsStruct()
            error = library.reducer_take(
                self._handle, pointers, len(part), now_s, ctypes.byref(arrivals)
            )
            assert error == 0
        self._note_progress()

    def keep_time(self, now_s: float) -> None:
        """Send again what is overdue."""
        assert library.reducer_keep_time(self._handle, now_s) == 0

    @property
    def next_s(self) -> float:
        """When `keep_time` is to be called next."""
        return library.reducer_next_s(self._handle)

    def _note_progress(self) -> None:
        self.reducer.exponents.note_progress()
        self.values.note_progress()
