# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Counts the datagrams for a worker's UDP port that do not come from its switch.

One socket of the port is connected to the switch, so the kernel gives it the switch's datagrams
alone. Another socket of the same port, which is not connected, gets everybody else's. Its filter
drops them before they take memory, and the kernel counts what a socket drops.
"""

from __future__ import annotations

import socket
import struct
from collections import Counter
from typing import final

from ..errors import TransportError
from .packet_filter import DROP_ALL, attach_filter

SO_MEMINFO = 55
_MEMINFO = struct.Struct("9I")
_DROPS = 8


def dropped_datagrams(sock: socket.socket) -> int:
    """Return what the kernel dropped at a socket: no room in its buffer, or its filter."""
    answer = sock.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, _MEMINFO.size)
    return _MEMINFO.unpack(answer)[_DROPS] if len(answer) == _MEMINFO.size else 0


def open_on_same_port(bound: socket.socket) -> socket.socket:
    """Return a second socket on a bound socket's address and port; raises TransportError.

    Both allow it for a moment only, so that the port stays closed to other programs.
    """
    second = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    try:
        attach_filter(second, DROP_ALL)
        for sock in (bound, second):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        second.bind(bound.getsockname())
    except OSError as error:
        second.close()
        place = "{}:{}".format(*bound.getsockname())
        raise TransportError(f"cannot bind UDP {place} again: {error.strerror}") from error
    finally:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    second.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    return second


@final
class PortCounts:
    """What a connected UDP socket does not get: strangers' datagrams, and what found no room."""

    def __init__(self, connected: socket.socket) -> None:
        self._connected = connected
        self._others = open_on_same_port(connected)
        self._counted: Counter[str] = Counter()

    @property
    def counters(self) -> Counter[str]:
        """Datagrams so far, by cause; after closing, until then."""
        if self._others.fileno() >= 0:
            self._counted["stranger"] = dropped_datagrams(self._others)
            self._counted["overflow"] = dropped_datagrams(self._connected)
        return self._counted

    def close(self) -> None:
        """Stop counting, before the connected socket closes; closing twice is fine."""
        self._counted = self.counters
        self._others.close()
