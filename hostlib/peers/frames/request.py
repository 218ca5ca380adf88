# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The frame that asks for a retained result."""

from __future__ import annotations

from typing import NamedTuple

from .header import Frame, FrameKind, pack_header


class FetchFrame(NamedTuple):
    """FETCH: a worker asks for the result of a tensor."""

    tensor: int
    """Tensor number, from 0 per job."""
    timeout_ms: int
    """How long the server may wait for the tensor."""

    def pack(self) -> bytes:
        """Return the header's bytes."""
        return pack_header(FrameKind.FETCH, sequence=self.tensor, total=self.timeout_ms)

    @classmethod
    def unpack(cls, frame: Frame) -> FetchFrame:
        """Return the frame of a FETCH header."""
        tensor, *_, timeout_ms, _ = frame.fields
        return cls(tensor, timeout_ms)
