# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Callers that a server has to bear: each opens one connection, and leaves something undone."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

from http2_calls import (
    END_HEADERS,
    HEADERS,
    Http2Connection,
    client_hello,
    dial,
    frame,
    header_block,
)
from switchfold.hostlib.credentials import Credentials
from switchfold.hostlib.credentials.tokens import token_metadata

TIMEOUT_S: Final = 60.0
CALLS: Final = 100
"""Calls of a connection with slow messages: as many as servers allow."""
SLOW_BYTES: Final = 60_000
"""What comes of such a message: as much as gRPC sends before it is asked for more."""
CLAIMED_BYTES: Final = 200_000
"""Its size by its header."""


class Closeable(Protocol):
    """What a caller has opened."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Target:
    """A gRPC server, one of its methods, and what the caller shows."""

    address: str
    method: str
    credentials: Credentials | None = None
    server: str = ""
    """Name that the server proves."""
    token: str = ""
    source: str = ""
    """Own IP address to call from; "": any."""

    def connect(self) -> Http2Connection:
        """Return a connection that can carry calls."""
        return Http2Connection(
            self.address,
            TIMEOUT_S,
            credentials=self.credentials,
            server=self.server,
            source=self.source,
        )

    def headers(self, stream: int, flags: int = END_HEADERS) -> bytes:
        """Return the beginning of a call."""
        block = header_block(self.method, **dict(token_metadata(self.token)))
        return frame(HEADERS, flags, stream, block)


def silent(target: Target) -> socket.socket:
    """Connect alone."""
    return dial(target.address, TIMEOUT_S, target.source)


def half_hello(target: Target) -> socket.socket:
    """Begin with TLS, and stop within the first message."""
    return _saying(client_hello()[:100], target)


def half_handshake(target: Target) -> socket.socket:
    """Begin with TLS, and stop after the first message: the server has computed its answer."""
    return _saying(client_hello(), target)


def _saying(data: bytes, target: Target) -> socket.socket:
    sock = silent(target)
    try:
        sock.sendall(data)
    except OSError:
        sock.close()
        raise
    return sock


def without_calls(target: Target) -> Http2Connection:
    """Finish the handshake, and call nothing."""
    return target.connect()


def endless_headers(target: Target) -> Http2Connection:
    """Begin a call whose headers do not end."""
    return _calling(target, lambda connection: connection.send(target.headers(1, 0)))


def slow_messages(target: Target) -> Http2Connection:
    """Make many calls whose messages do not end."""
    begin = b"\0" + CLAIMED_BYTES.to_bytes(4)
    data = begin + bytes(SLOW_BYTES - len(begin))

    def call(connection: Http2Connection) -> None:
        for stream in range(1, 2 * CALLS, 2):
            connection.send(target.headers(stream))
            connection.send_data(stream, data)

    return _calling(target, call)


def joining(message: bytes) -> Callable[[Target], Http2Connection]:
    """Return a caller that sends one message, and leaves its side of the call open."""
    data = b"\0" + len(message).to_bytes(4) + message

    def join(target: Target) -> Http2Connection:
        def call(connection: Http2Connection) -> None:
            connection.send(target.headers(1))
            connection.send_data(1, data)

        return _calling(target, call)

    return join


def _calling(target: Target, call: Callable[[Http2Connection], None]) -> Http2Connection:
    connection = target.connect()
    try:
        call(connection)
    except OSError:
        connection.close()
        raise
    return connection


HALF_OPEN: Final[tuple[Callable[[Target], Closeable], ...]] = (
    *(silent, half_hello, half_handshake),
    *(without_calls, endless_headers),
)
"""Callers that make no whole call."""


class Flood:
    """Connections of one kind of caller; at most `count` stay open, the last ones."""

    def __init__(self, caller: Callable[[Target], Closeable], target: Target, count: int) -> None:
        self._caller, self._target, self._count = caller, target, count
        self._held: deque[Closeable] = deque()
        self.num_refused = 0
        """Connections that the server has closed during a handshake, or before."""

    def add(self, count: int) -> None:
        """Let so many callers connect."""
        for _ in range(count):
            try:
                self._held.append(self._caller(self._target))
            except OSError:
                self.num_refused += 1
            if len(self._held) > self._count:
                self._held.popleft().close()

    def close(self) -> None:
        while self._held:
            self._held.popleft().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class ProcessMemory:
    """How much more memory a process had at any time than when this began; Linux."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")
        (self._folder / "clear_refs").write_text("5")  # VmHWM is VmRSS again
        self._before = self._read("VmRSS")

    def growth(self) -> int:
        """Return bytes."""
        return self._read("VmHWM") - self._before

    def num_files(self) -> int:
        """Return how many files are open now."""
        return len(list((self._folder / "fd").iterdir()))

    def _read(self, name: str) -> int:
        lines = (self._folder / "status").read_text().splitlines()
        (line,) = (line for line in lines if line.startswith(f"{name}:"))
        return 1024 * int(line.split()[1])
