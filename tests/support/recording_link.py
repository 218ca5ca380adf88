# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A link in front of a TCP server on loopback that keeps a copy of all bytes, as a tap would.

It may also change one.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self

from loopback import LOOPBACK

PORTION_BYTES = 1 << 16


class RecordingLink:
    """Forwards bytes from `port` to another port, and keeps them as they came.

    `flip_at`: the position of a byte from the server in which a bit is changed on its path.
    """

    def __init__(self, server_port: int, flip_at: int | None = None) -> None:
        self.upwards = bytearray()
        """Bytes to the server, of all connections."""
        self.downwards = bytearray()
        """Bytes from it."""
        self._server_port = server_port
        self._flip_at = flip_at
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._start(self._accept)

    def _start(self, call: object, *arguments: object) -> None:
        thread = threading.Thread(target=call, args=arguments)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near = self._listener.accept()[0]
            except OSError:
                return  # closed
            far = socket.create_connection((LOOPBACK, self._server_port))
            self._sockets += [near, far]
            self._start(self._pass_on, near, far, self.upwards)
            self._start(self._pass_on, far, near, self.downwards)

    def _pass_on(self, source: socket.socket, sink: socket.socket, kept: bytearray) -> None:
        with contextlib.suppress(OSError):  # either end closes as it likes
            while data := bytearray(source.recv(PORTION_BYTES)):
                first = len(kept)
                kept += data
                if kept is self.downwards and self._flip_at is not None:
                    place = self._flip_at - first
                    if 0 <= place < len(data):
                        data[place] ^= 1
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for each in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):  # the other end was first
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join()
