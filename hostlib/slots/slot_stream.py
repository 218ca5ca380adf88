# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""An endless sequence of chunks over a range of slots: the tensors of a stream of the C library.

See `hostlib/native/slots/stream.h` for what it does with them.
"""

from __future__ import annotations

import ctypes
from collections import deque
from typing import final

import numpy as np
from numpy.typing import NDArray

from ..native.library import library
from ..native.structures import StreamStateStruct
from ..summation.chunks import BLOCK_CHUNKS, ChunkSource
from ..summation.native_source import NativeSource
from .counters import StreamCounters


@final
class _StreamedTensor:
    """A tensor in the stream."""

    def __init__(self, source: ChunkSource) -> None:
        self.source = source
        self._native = native = NativeSource(source)
        self.struct = native.struct
        self.is_ready_made = native.is_ready_made

    def prepare(self) -> None:
        """Make the values of the next block ready."""
        struct, values = self.struct, self._native.wire.data
        end = min(struct.num_ready + BLOCK_CHUNKS, struct.num_chunks)
        self._native.fill(struct.num_ready, values[struct.num_ready : end])
        struct.num_ready = end

    def note_progress(self) -> None:
        """Tell the source what has happened."""
        struct, source = self.struct, self.source
        if struct.first_sent_s:
            source.times.note_first_packet(struct.first_sent_s)
        if struct.is_abandoned:
            return
        source.has_saturated = source.has_saturated or struct.has_saturated
        source.has_missed = struct.has_missed
        if struct.is_finished:
            source.times.note_last_result(struct.last_result_s)


@final
class SlotStream:
    """One operation's chunk sequence; used by the I/O thread alone, but for `counters`."""

    def __init__(self, handle: int) -> None:
        """`handle`: the library's stream, which stays its reducer's."""
        self._handle = handle
        self._active: deque[_StreamedTensor] = deque()
        self._unready: deque[_StreamedTensor] = deque()
        self._unfinished: set[int] = set()  # identities of the active sources

    @property
    def _state(self) -> StreamStateStruct:
        return library.stream_state(self._handle)

    @property
    def counters(self) -> StreamCounters:
        """What was sent and received, in packets."""
        counters = self._state.counters
        return StreamCounters(**{name: getattr(counters, name) for name, _ in counters._fields_})

    @property
    def outstanding(self) -> int:
        """Chunks that were sent and have no result yet."""
        return library.stream_outstanding(self._handle)

    @property
    def window(self) -> int:
        """Most chunks that may be without result now."""
        return self._state.window

    @property
    def round_trip_s(self) -> float:
        """Smoothed round-trip time, 0 before the first measurement."""
        return self._state.round_trip_s

    @property
    def incast_trials(self) -> int:
        """How often other numbers of chunks under way were tried; see `incast.h`."""
        return self._state.incast_trials

    def enqueue(self, source: ChunkSource) -> None:
        """Append a tensor to the sequence."""
        tensor = _StreamedTensor(source)
        self._active.append(tensor)
        self._unfinished.add(id(source))
        if tensor.is_ready_made:
            self._unready.append(tensor)
            if tensor is self._unready[0]:
                tensor.prepare()
        library.stream_enqueue(self._handle, ctypes.byref(tensor.struct))

    def abandon(self, source: ChunkSource) -> None:
        """Count all chunks of an enqueued tensor as done: its result came another way."""
        for tensor in self._active:
            if tensor.source is source:
                library.stream_abandon(self._handle, ctypes.byref(tensor.struct))
                self._unready = deque(each for each in self._unready if each is not tensor)
                break
        self.note_progress()

    def is_finished(self, source: ChunkSource) -> bool:
        """Return whether all results of an enqueued tensor are there."""
        return id(source) not in self._unfinished

    def num_done(self, source: ChunkSource) -> int:
        """Return how many chunks of an enqueued tensor, from its first, have their results."""
        for tensor in self._active:
            if tensor.source is source:
                return tensor.struct.num_done
        return source.num_chunks

    def oldest_datagram(self, datagram_bytes: int) -> NDArray[np.uint8] | None:
        """Return a copy of the datagram of the oldest chunk without result, or None."""
        address = library.stream_oldest(self._handle)
        if address is None:
            return None
        return np.frombuffer(ctypes.string_at(address, datagram_bytes), np.uint8).copy()

    def note_progress(self) -> None:
        """Prepare values that the library waits for, and let go of tensors that are complete."""
        while self._unready and library.stream_is_hungry(self._handle):
            tensor = self._unready[0]
            tensor.prepare()
            if tensor.struct.num_ready == tensor.struct.num_chunks:
                self._unready.popleft()
                if self._unready:
                    self._unready[0].prepare()
        while self._active:
            tensor = self._active[0]
            tensor.note_progress()
            if not tensor.struct.is_finished:
                return
            self._active.popleft()
            self._unfinished.remove(id(tensor.source))
