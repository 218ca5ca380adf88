# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the transports over a socket of the kernel share: the C library moves their datagrams."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections import Counter

from ..control.view import Endpoint
from ..errors import TransportClosedError, TransportError
from ..native.transports import SocketTransport
from .base import Datagrams, Offloads


class KernelTransport(ABC):
    """A transport over one socket, which it owns; `place` names the socket in errors."""

    def __init__(self, sock: socket.socket, local: Endpoint, *, title: str, place: str) -> None:
        self._socket = SocketTransport(sock)
        self._local = local
        self._title, self._place = title, place
        self._is_closed = False

    @property
    def local(self) -> Endpoint:
        """This worker's end."""
        return self._local

    @property
    def handle(self) -> int:
        """The C library's transport."""
        return self._socket.handle

    @property
    def kernel_socket(self) -> socket.socket:
        """The socket, for a loop that waits for it: then it calls `receive` while its rows, or as
        many as BATCH of them, are filled."""
        return self._socket.socket

    @property
    def offloads(self) -> Offloads:
        """What the kernel, the network card or the switch does with many datagrams at once."""
        return self._socket.offloads

    @property
    def counters(self) -> Counter[str]:
        """Datagrams dropped or held up here, by cause."""
        return self._socket.counters + self._port_counters()

    def send(self, datagrams: Datagrams) -> int:
        """Send rows in order; return how many the kernel took."""
        sent = self._socket.send(datagrams)
        self.raise_failure(sent)
        return sent

    def receive(self, out: Datagrams, timeout_s: float) -> int:
        """Fill rows with good datagrams of the right size; return how many."""
        count = self._socket.receive(out, timeout_s)
        self.raise_failure(count)
        return count

    def raise_failure(self, number: int) -> None:
        """Raise the error for a negative result of the C library.

        Raises MtuTooSmallError if the interface does not carry the datagrams any more.
        """
        if number >= 0:
            if self._socket.too_long_in_a_row:
                self._check_size(self._socket.too_long_in_a_row)
            return
        try:
            self._socket.raise_failure(number)
        except OSError as error:
            if self._is_closed:
                raise TransportClosedError(f"the {self._title} was closed") from error
            raise TransportError(f"{self._place}: {error.strerror}") from error

    @abstractmethod
    def _check_size(self, refusals: int) -> None:
        """Raise MtuTooSmallError if the interface carries less than a packet to the switch.

        `refusals` is how often in a row the kernel refused the size.
        """

    @abstractmethod
    def _port_counters(self) -> Counter[str]:
        """Datagrams that the kernel did not give to this socket, by cause."""

    def wake(self) -> None:
        """Make a waiting `receive` return."""
        self._socket.wake()

    def close(self) -> None:
        """Close the socket; closing twice is fine."""
        self._is_closed = True
        self._socket.close()
