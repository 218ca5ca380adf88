# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Reports of the data plane, which never waits for a reader: digests and messages of log_msg."""

from __future__ import annotations

import ctypes
import enum
import threading
from collections.abc import Callable
from ctypes import byref, c_uint32
from typing import Final

from .native import NativeSwitch

RING_BYTES: Final = 1 << 20
"""Bytes of reports that may wait for their reader; a report without room is dropped and counted."""
_REPORT_BYTES: Final = 1 << 14
_WAIT_S: Final = 0.1


class ReportKind(enum.IntEnum):
    """`report_kind_t` of runtime/switch/switch.h."""

    DIGEST = 0
    MESSAGE = 1


class ReportReader:
    """Hands the reports of one kind to a callback, from a thread of its own and from `drain`.

    Deliveries never overlap, and keep the order of the data plane.
    """

    def __init__(
        self, native: NativeSwitch, kind: ReportKind, deliver: Callable[[int, bytes], None]
    ) -> None:
        """Open the ring and start reading; raises MemoryError if no memory is left for the ring."""
        self._library = native.library
        self._handle = native.handle
        self._kind = kind
        self._deliver = deliver
        self._turn = threading.RLock()
        self._is_reading = threading.Event()
        self._buffer = ctypes.create_string_buffer(_REPORT_BYTES)
        if self._library.switch_open_reports(self._handle, kind, RING_BYTES) < 0:
            raise MemoryError("no memory left for the reports of the data plane")
        self._is_reading.set()
        self._thread = threading.Thread(
            target=self._read, name=f"softswitch-{kind.name.lower()}", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Deliver the reports that wait, then stop; no callback comes after this."""
        self._is_reading.clear()
        self.drain()
        self._library.switch_close_reports(self._handle, self._kind)
        if self._thread is not threading.current_thread():
            self._thread.join()

    def drain(self) -> None:
        """Deliver everything that the data plane has reported until now."""
        number = c_uint32()
        with self._turn:
            while True:
                length: int = self._library.switch_take_report(
                    self._handle, self._kind, byref(number), self._buffer, _REPORT_BYTES
                )
                if length < 0:
                    return
                self._deliver(number.value, self._buffer.raw[:length])

    @property
    def lost(self) -> int:
        """Reports that were dropped for lack of room."""
        return self._library.switch_lost_reports(self._handle, self._kind)

    def _read(self) -> None:
        wait_ns = round(_WAIT_S * 1e9)
        while self._is_reading.is_set():
            if self._library.switch_wait_report(self._handle, self._kind, wait_ns) == 0:
                self.drain()


class Reports:
    """The readers of a switch: at most one for each kind of report."""

    def __init__(self, native: NativeSwitch) -> None:
        self._native = native
        self._readers: dict[ReportKind, ReportReader] = {}

    def set(self, kind: ReportKind, deliver: Callable[[int, bytes], None] | None) -> None:
        """Hand the reports of a kind to `deliver` from now on; None: make no such reports."""
        reader = self._readers.pop(kind, None)
        if reader is not None:
            reader.close()
        if deliver is not None:
            self._readers[kind] = ReportReader(self._native, kind, deliver)

    def drain(self) -> None:
        """Deliver everything that the data plane has reported until now."""
        for reader in tuple(self._readers.values()):
            reader.drain()

    def lost(self, kind: ReportKind) -> int:
        """Return how many reports of a kind were dropped since its reader was set."""
        reader = self._readers.get(kind)
        return 0 if reader is None else reader.lost
