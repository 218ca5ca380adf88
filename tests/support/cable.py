# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy on loopback that carries bytes until it is cut, and again once it is mended."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self

_PORTION_BYTES = 1 << 16


class Cable:
    """While it is cut, bytes of all connections wait unread: nobody is told, as on a network."""

    def __init__(self, server_port: int, address: str = "127.0.0.1") -> None:
        self._server = (address, server_port)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._whole = threading.Event()
        self._whole.set()
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._is_closed = False
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def is_cut(self) -> bool:
        return not self._whole.is_set()

    def cut(self) -> None:
        """Carry nothing; new connections are made by the kernel, and get no answer."""
        self._whole.clear()

    def mend(self) -> None:
        """Carry on; connections of before break, as after a long cut."""
        self._close_all()
        self._whole.set()

    def _accept(self) -> None:
        while True:
            self._whole.wait()
            try:
                near = self._listener.accept()[0]
            except OSError:
                return  # closed
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        self._whole.wait()
        try:
            far = socket.create_connection(self._server)
        except OSError:
            near.close()  # the server is away
            return
        with self._lock:
            self._open += near, far
            is_closed = self._is_closed
        if is_closed:
            self._close_all()
            return
        threading.Thread(target=self._carry, args=(near, far), daemon=True).start()
        self._carry(far, near)

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):  # either end closes as it likes
            while data := source.recv(_PORTION_BYTES):
                self._whole.wait()
                sink.sendall(data)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _close_all(self) -> None:
        with self._lock:
            for each in self._open:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
                each.close()
            self._open.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._whole.set()
        self._close_all()
