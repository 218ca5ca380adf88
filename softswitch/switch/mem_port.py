# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The user's end of a mem port: batches of frames as numpy arrays.

A thread that waits here does not hold the interpreter's lock.
"""

from __future__ import annotations

import errno

import numpy as np
from numpy.typing import NDArray

from ..compilation.runtime_library import FRAME_BYTES_MAX
from ..errors import PortNotFoundError
from .native import NativeSwitch
from .port_spec import port_not_found


class MemPort:
    """Send to and receive from a running switch; may be used by several threads."""

    def __init__(self, native: NativeSwitch, number: int) -> None:
        self._native = native
        self.number = number

    def send(self, frames: NDArray[np.uint8], lengths: NDArray[np.int32]) -> int:
        """Send frames, uint8 (count, stride), lengths int32 (count,) in bytes; C-contiguous.

        Returns how many found room in the port's queue; it does not take the others. Raises
        ValueError for a wrong shape or length, PortNotFoundError after the port has been removed.
        """
        stride = _check(frames, lengths)
        count: int = self._native.library.switch_mem_send(
            self._native.handle,
            self.number,
            frames.ctypes.data,
            lengths.ctypes.data,
            len(frames),
            stride,
        )
        if count == -errno.EMSGSIZE:
            raise ValueError(
                f"frame lengths must be 0 to {min(stride, FRAME_BYTES_MAX)} bytes, "
                "and fit their row"
            )
        if count < 0:
            raise port_not_found(self.number)
        return count

    def receive(
        self, frames_out: NDArray[np.uint8], lengths_out: NDArray[np.int32], timeout_s: float
    ) -> int:
        """Wait up to timeout_s for a first frame, take the frames in the queue, return their count.

        frames_out: uint8 (capacity, stride), lengths_out: int32 (capacity,). Raises ValueError
        when a row is too short for the next frame (it stays queued), PortNotFoundError after the
        port has been removed.
        """
        stride = _check(frames_out, lengths_out)
        if not (frames_out.flags.writeable and lengths_out.flags.writeable):
            raise ValueError("frames and lengths must be writeable")
        count: int = self._native.library.switch_mem_receive(
            self._native.handle,
            self.number,
            frames_out.ctypes.data,
            lengths_out.ctypes.data,
            len(frames_out),
            stride,
            max(0, round(timeout_s * 1e9)),
        )
        if count == -errno.EMSGSIZE:
            raise ValueError(f"the next frame is longer than the rows of {stride} bytes")
        if count == -errno.ESHUTDOWN:
            raise PortNotFoundError(f"port {self.number} was removed while receiving")
        if count < 0:
            raise port_not_found(self.number)
        return count


def _check(frames: NDArray[np.uint8], lengths: NDArray[np.int32]) -> int:
    if frames.ndim != 2 or frames.dtype != np.uint8 or lengths.dtype != np.int32:
        raise ValueError("frames must be uint8 (count, stride), lengths int32 (count,)")
    if lengths.shape != (len(frames),) or not (
        frames.flags.c_contiguous and lengths.flags.c_contiguous
    ):
        raise ValueError("frames and lengths must be C-contiguous and have the same count")
    return frames.shape[1]
