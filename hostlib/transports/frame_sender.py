# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sends datagrams as whole frames, for transports that build the frames themselves."""

from __future__ import annotations

from typing import Final, final

import numpy as np

from .base import Datagrams
from .batch_socket import BatchSocket
from .frames import FrameCodec

SEND_ROWS: Final = 64
"""Frames that are built at a time."""


@final
class FrameSender:
    """Wraps rows into frames in a buffer of its own and sends them in batches."""

    def __init__(self, batch: BatchSocket, codec: FrameCodec) -> None:
        self._batch = batch
        self._codec = codec
        self._frames = np.empty((SEND_ROWS, codec.frame_bytes), np.uint8)

    def send(self, datagrams: Datagrams) -> int:
        """Send rows in order as frames; return how many were taken. Raises OSError."""
        done = 0
        while done < len(datagrams):
            rows = datagrams[done : done + SEND_ROWS]
            frames = self._frames[: len(rows)]
            self._codec.wrap(rows, frames)
            sent = self._batch.send(frames)
            done += sent
            if sent < len(rows):
                break
        return done
