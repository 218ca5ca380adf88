# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The kernel's pacing of a TCP connection, and what of it has not been acknowledged."""

from __future__ import annotations

import contextlib
import fcntl
import math
import socket
import struct
import termios
from typing import Final, Protocol

_SO_MAX_PACING_RATE: Final = 47
_NO_LIMIT: Final = (1 << 32) - 1
_INT: Final = struct.Struct("=i")


class PacedLink(Protocol):
    """A connection, as far as pacing is concerned."""

    @property
    def is_drained(self) -> bool:
        """Whether the kernel has taken all that was sent."""
        ...

    @property
    def unacknowledged_bytes(self) -> int:
        """Bytes that the kernel has taken, and the other end's kernel has not acknowledged."""
        ...

    def limit_rate(self, bytes_per_s: float) -> None:
        """Have the kernel pace what it sends, where it can; `math.inf`: no longer."""
        ...


def limit_rate(sock: socket.socket, bytes_per_s: float) -> None:
    """Have the kernel send at most at this rate (SO_MAX_PACING_RATE); `math.inf`: at any rate.

    A kernel without pacing ignores it, so it smooths what the caller limits anyway.
    """
    rate = _NO_LIMIT if math.isinf(bytes_per_s) else min(max(1, int(bytes_per_s)), _NO_LIMIT)
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, struct.pack("=I", rate))


def unacknowledged_bytes(sock: socket.socket) -> int:
    """Return how many bytes the kernel has taken that the other end's has not acknowledged.

    0 where the kernel does not say it.
    """
    try:
        (count,) = _INT.unpack(fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(_INT.size)))
    except OSError:
        return 0
    return int(count)
