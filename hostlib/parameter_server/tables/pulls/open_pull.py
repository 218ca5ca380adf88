# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's pull until its rows are there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from ....errors import HostlibError, PeerProtocolError
from ....peers.frames import Frame, FrameKind, PieceFrame, TableFrame
from ...rows import PulledRows
from ..state import VERSION_BYTES

ROWS_KINDS: Final = frozenset((FrameKind.ROWS, FrameKind.PIECE))
"""Frames with bytes of an answer."""
_VERSION_WORDS: Final = VERSION_BYTES // 4
DonePull = Callable[[PulledRows | HostlibError], None]


@final
@dataclass(eq=False)
class OpenPull:
    """A PULL without an answer, or with the beginning of one."""

    frame: TableFrame
    payload: memoryview
    width: int
    done: DonePull
    words: NDArray[np.uint32] | None = None
    """Of the answer, as far as it has come."""
    filled_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        """Of the answer."""
        return 4 * (self.frame.num_keys * (self.width + 1) + _VERSION_WORDS)

    @property
    def came(self) -> memoryview:
        """What has come of the answer."""
        return memoryview(b"") if self.words is None else self._bytes[: self.filled_bytes]

    def room(self, num_bytes: int, *, is_last: bool) -> memoryview:
        """Return memory for the next bytes of the answer; PeerProtocolError if it has no such."""
        if self.words is None:
            self.words = np.empty(self.size_bytes // 4, np.uint32)
        end, size = self.filled_bytes + num_bytes, self.words.nbytes
        if end > size or (is_last and end < size):
            raise PeerProtocolError(f"rows of {end} bytes instead of {size}")
        return self._bytes[self.filled_bytes : end]

    def fill(self, payload: memoryview) -> None:
        """Take a whole answer that another worker has sent.

        A connection may be in the midst of a frame of it; the rest of that goes to other memory.
        """
        self.words = None
        self.room(payload.nbytes, is_last=True)[:] = payload

    def rows(self) -> PulledRows:
        """Return the rows of a whole answer."""
        count, words = self.frame.num_keys, self.words
        assert words is not None, "there was room for its last bytes"
        values = words[: count * self.width].view(np.float32).reshape(count, self.width)
        versions = words[-_VERSION_WORDS:].copy().view(np.uint64)
        updates = words[count * self.width : -_VERSION_WORDS]
        return PulledRows(values, updates, versions[:1], versions[1:])

    @property
    def _bytes(self) -> memoryview:
        assert self.words is not None, "there is room"
        return self.words.data.cast("B")


def pull_number(frame: Frame) -> int:
    """Return the number of the pull that a frame of ROWS_KINDS is for."""
    is_last = frame.kind is FrameKind.ROWS
    return (TableFrame if is_last else PieceFrame).unpack(frame).number
