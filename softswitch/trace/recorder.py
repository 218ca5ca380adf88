# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Starts and reads the recorder of a traced build."""

import ctypes
from collections.abc import Iterator
from ctypes import POINTER, byref, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

from ..compilation.compiler import TracedProgram
from .records import TraceRecord, read_records
from .snapshot import PhvLayout


class Recorder:
    """The recorder in a traced build's library, which only one switch at a time may run."""

    def __init__(self, program: TracedProgram) -> None:
        self.program = program
        library = ctypes.CDLL(str(program.library))
        self._start = library.p4_trace_start
        self._start.argtypes, self._start.restype = [c_int64, c_uint64], None
        self._take = library.p4_trace_take
        self._take.argtypes, self._take.restype = [POINTER(c_void_p), POINTER(c_size_t)], c_uint64
        fields = library.p4_trace_fields
        fields.argtypes, fields.restype = [c_void_p, c_uint32], c_uint32
        count: int = fields(None, 0)
        places = (c_uint32 * (2 * count))()
        fields(places, count)
        pairs = [(places[2 * index], places[2 * index + 1]) for index in range(count)]
        self.layout = PhvLayout(program.model, pairs)
        self.lost = 0
        """Records since the start that are missing in the trace, because the buffer was full."""

    def start(self, *, port: int | None = None, packets: int | None = None) -> None:
        """Record the next `packets` packets (None: all) from `port` (None: from all ports)."""
        self.lost = 0
        self._start(-1 if port is None else port, 2**64 - 1 if packets is None else packets)

    def stop(self) -> None:
        """Record no further packets."""
        self._start(-1, 0)

    def take(self) -> Iterator[TraceRecord]:
        """Return what has been recorded since the last call."""
        data, size = c_void_p(), c_size_t()
        self.lost = self._take(byref(data), byref(size))
        stream = ctypes.string_at(data, size.value) if size.value else b""
        return read_records(stream)
