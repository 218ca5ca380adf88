# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The thread that looks for idle table entries; packets only leave a time stamp at a hit."""

import contextlib
import ctypes
import threading
from collections.abc import Callable
from ctypes import byref, c_int32, c_uint32, c_uint64
from typing import Final

from ..errors import BadArgumentError, NoProgramError, SwitchStateError
from .native import NativeSwitch
from .table_entries import Match

EXPIRED_PER_STEP: Final = 4096
"""Entries that one step of a search checks; packets wait during a step."""
KEY_BYTES_MAX: Final = 512
"""Bytes of the longest key that the generator accepts, 64 words."""


class IdleScan:
    """Searches tables for entries that are idle for their timeout, until it is closed."""

    INTERVAL_S: Final = 0.1
    """Time between two searches."""

    def __init__(self, native: NativeSwitch, callback: Callable[[int, Match], None]) -> None:
        """Call back with the table and match of each entry that has expired."""
        self._native = native
        self._callback = callback
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="softswitch-idle", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread after a callback that still runs; a callback may call this, too."""
        self._is_closed.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._is_closed.wait(self.INTERVAL_S):
            with contextlib.suppress(NoProgramError, SwitchStateError):  # no program, or closed
                self._search()

    def _search(self) -> None:
        table, start = c_uint32(0), c_uint32(0)
        while True:
            try:
                found = self._expired(table, start)
            except BadArgumentError:  # there are no more tables with timeouts
                return
            for match in found:
                self._callback(table.value, match)
            if start.value == 0:
                table.value += 1

    def _expired(self, table: c_uint32, start: c_uint32) -> list[Match]:
        """Search one step from `start` in `table`, or in the next table with timeouts.

        Sets both to where the next step begins; `start` is 0 at the end of a table.
        """
        handles = (c_uint64 * EXPIRED_PER_STEP)()
        with self._native.atomically():  # so that the handles still mean these entries
            count = self._native.control(
                "idle entries",
                "switch_table_expired",
                byref(table),
                byref(start),
                EXPIRED_PER_STEP,
                handles,
            )
            return [self._match_of(table.value, handles[index]) for index in range(count)]

    def _match_of(self, table: int, handle: int) -> Match:
        key = ctypes.create_string_buffer(KEY_BYTES_MAX)
        mask = ctypes.create_string_buffer(KEY_BYTES_MAX)
        prefix_len, priority = c_int32(), c_int32()
        size = self._native.control(
            f"entry of table {table}",
            "switch_table_match",
            table,
            handle,
            key,
            mask,
            byref(prefix_len),
            byref(priority),
        )
        if prefix_len.value < 0:
            return Match(key.raw[:size])
        return Match(key.raw[:size], mask.raw[:size], prefix_len.value, priority.value)
