# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Counts the datagrams for a worker's UDP port that do not come from its switch.

One socket of the port is connected to the switch, so the kernel gives it the switch's datagrams
alone; where there are several switches, each has such a socket. Another socket of the same port,
which is not connected, gets everybody else's. Its filter drops them before they take memory, and
the kernel counts what a socket drops.
"""

from __future__ import annotations

import socket
import struct
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from typing import final

from ..control.view import Endpoint
from ..errors import TransportError
from .packet_filter import DROP_ALL, attach_filter, detach_filter
from .sockets import connect_udp, set_datagram_options

SO_MEMINFO = 55
_MEMINFO = struct.Struct("9I")
_DROPS = 8


def dropped_datagrams(sock: socket.socket) -> int:
    """Return what the kernel dropped at a socket: no room in its buffer, or its filter."""
    answer = sock.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, _MEMINFO.size)
    return _MEMINFO.unpack(answer)[_DROPS] if len(answer) == _MEMINFO.size else 0


def open_on_same_port(bound: socket.socket, *others: socket.socket) -> socket.socket:
    """Return one more socket on a bound socket's address and port; raises TransportError.

    `others`: those that are there already. The new one drops everything by a filter. All allow it
    for a moment only, so that the port stays closed to other programs.
    """
    new = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    try:
        attach_filter(new, DROP_ALL)
        for sock in (bound, *others, new):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        new.bind(bound.getsockname())
    except OSError as error:
        new.close()
        place = "{}:{}".format(*bound.getsockname())
        raise TransportError(f"cannot bind UDP {place} again: {error.strerror}") from error
    finally:
        for sock in (bound, *others):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    new.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    return new


@final
class PortCounts:
    """What connected UDP sockets of one port do not get: strangers' datagrams, or lack of room."""

    def __init__(self, connected: socket.socket) -> None:
        self._connected = (connected,)
        self._others = open_on_same_port(connected)
        self._counted: Counter[str] = Counter()
        self._dropped_before = 0  # by sockets that are not counted any more

    def open_more(self, remotes: Sequence[Endpoint]) -> list[socket.socket]:
        """Return sockets of the same port that are connected to more switches, and count theirs.

        They replace those of the call before, which the caller closes. Raises TransportError.
        """
        bound, *before = self._connected
        with ExitStack() as stack:
            more: list[socket.socket] = []
            for remote in remotes:
                sock = open_on_same_port(bound, *before, *more, self._others)
                more.append(stack.enter_context(sock))
                set_datagram_options(sock)
                connect_udp(sock, remote.address, remote.udp_port)
                self._dropped_before -= dropped_datagrams(sock)  # by its filter
                detach_filter(sock)
            stack.pop_all()
        self._dropped_before += sum(map(dropped_datagrams, before))
        self._connected = (bound, *more)
        return more

    @property
    def counters(self) -> Counter[str]:
        """Datagrams so far, by cause; after closing, until then."""
        if self._others.fileno() >= 0:
            overflow = sum(map(dropped_datagrams, self._connected))
            self._counted["stranger"] = dropped_datagrams(self._others)
            self._counted["overflow"] = self._dropped_before + overflow
        return self._counted

    def close(self) -> None:
        """Stop counting, before the connected socket closes; closing twice is fine."""
        self._counted = self.counters
        self._others.close()
