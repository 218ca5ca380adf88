# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy in front of a server on loopback that cuts connections after some bytes."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from loopback import LOOPBACK

PORTION_BYTES = 2048
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER by which closing a socket throws away what was not sent, and resets."""


class CuttingProxy:
    """Each connection breaks once `limits` gives its next number of bytes, both ways together.

    When `limits` is at its end, connections stay.
    """

    def __init__(self, server_port: int, limits: Iterator[int]) -> None:
        self._server_port = server_port
        self._limits = limits
        self._listener = socket.create_server((LOOPBACK, 0))
        self._lock = threading.Lock()
        self._is_closed = False
        self._open: list[socket.socket] = []
        self.num_cuts = 0
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)

    def _start(self, call: object, *arguments: object) -> None:
        threading.Thread(target=call, args=arguments, daemon=True).start()  # type: ignore[arg-type]

    def _accept(self) -> None:
        while True:
            try:
                near = self._listener.accept()[0]
            except OSError:
                return  # closed
            try:
                far = socket.create_connection((LOOPBACK, self._server_port))
            except OSError:
                near.close()  # the server is away
                continue
            with self._lock:
                if self._is_closed:
                    near.close()
                    far.close()
                    return
                self._open += near, far
                pair = _Pair(self, near, far, next(self._limits, None))
            self._start(pair.pass_on, near, far)
            self._start(pair.pass_on, far, near)

    def note_cut(self) -> None:
        with self._lock:
            self.num_cuts += 1

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
        for each in (self._listener, *self._open):
            with contextlib.suppress(OSError):  # the other end was first
                each.shutdown(socket.SHUT_RDWR)
            each.close()


class _Pair:
    """Both halves of a connection through the proxy."""

    def __init__(
        self, proxy: CuttingProxy, near: socket.socket, far: socket.socket, limit: int | None
    ) -> None:
        self._proxy, self._ends, self._left = proxy, (near, far), limit
        self._is_cut = False
        self._lock = threading.Lock()

    def pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):  # either end closes as it likes
            while data := source.recv(PORTION_BYTES):
                with self._lock:
                    taken = len(data) if self._left is None else min(self._left, len(data))
                    if self._left is not None:
                        self._left -= taken
                sink.sendall(data[:taken])
                if self._left == 0:
                    self._cut()
                    return
            sink.shutdown(socket.SHUT_WR)

    def _cut(self) -> None:
        with self._lock:
            if self._is_cut:
                return
            self._is_cut = True
        self._proxy.note_cut()
        for each in self._ends:
            with contextlib.suppress(OSError):  # closed by the test's end
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                each.shutdown(socket.SHUT_RDWR)
            each.close()
