# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A slow link in front of a TCP server on loopback: bytes pass at a steady rate."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from types import TracebackType
from typing import Self

from loopback import LOOPBACK

PORTION_BYTES = 4096


class SlowLink:
    """Forwards bytes from `port` to another port, at a limited rate in each direction."""

    def __init__(self, server_port: int, bytes_per_s: int) -> None:
        self._server_port = server_port
        self._pause_s = PORTION_BYTES / bytes_per_s
        self._listener = socket.create_server((LOOPBACK, 0))
        self._lock = threading.Lock()
        self._is_closed = False
        self._sockets: list[socket.socket] = [self._listener]
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)

    def _start(self, call: object, *arguments: object) -> None:
        threading.Thread(target=call, args=arguments, daemon=True).start()  # type: ignore[arg-type]

    def _accept(self) -> None:
        while True:
            try:
                near = self._keep(self._listener.accept()[0])
                far = self._keep(socket.create_connection((LOOPBACK, self._server_port)))
            except OSError:
                return  # closed
            self._start(self._pass_on, near, far)
            self._start(self._pass_on, far, near)

    def _keep(self, made: socket.socket) -> socket.socket:
        """Have a socket closed with the link; at once if the link is closed already."""
        with self._lock:
            if self._is_closed:
                made.close()
            self._sockets.append(made)
        return made

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):  # either end closes as it likes
            while data := source.recv(PORTION_BYTES):
                sink.sendall(data)
                time.sleep(self._pause_s * len(data) / PORTION_BYTES)
            sink.shutdown(socket.SHUT_WR)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            self._is_closed = True
        for each in self._sockets:
            with contextlib.suppress(OSError):  # the other end was first
                each.shutdown(socket.SHUT_RDWR)
            each.close()
