# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Connections of HTTP/2 (RFC 9113) that do what no gRPC client does, in clear or over TLS.

A gRPC client does not say whether the server has read a call. A PING does: the server answers it
after it has read everything before it. Nor does a client send half a call, or one byte at a time.
"""

from __future__ import annotations

import functools
import socket
import ssl
from collections import Counter
from types import TracebackType
from typing import Final, NamedTuple, Self

from switchfold.hostlib.credentials import Credentials

DATA: Final = 0
HEADERS: Final = 1
RST_STREAM: Final = 3
SETTINGS: Final = 4
PING: Final = 6
GOAWAY: Final = 7
WINDOW_UPDATE: Final = 8
ACK: Final = 1
END_STREAM: Final = 1
END_HEADERS: Final = 4
_FRAME_HEADER_BYTES: Final = 9
_FIRST_WINDOW_BYTES: Final = 65_535
_PIECE_BYTES: Final = 16 << 10
"""As much as every server takes in one frame."""


class Http2Frame(NamedTuple):
    """A received frame."""

    kind: int
    flags: int
    stream: int
    payload: bytes


class _FirstWindows(Counter[int]):
    def __missing__(self, key: int) -> int:
        return _FIRST_WINDOW_BYTES


class Http2Connection:
    """A connection that has greeted; its frames are the caller's to make."""

    def __init__(
        self,
        address: str,
        timeout_s: float,
        *,
        credentials: Credentials | None = None,
        server: str = "",
        source: str = "",
    ) -> None:
        """Connect; each wait for the server takes at most `timeout_s`.

        `server` is the name that it must prove, with credentials. `source` is an own IP address
        to connect from, "" for any.
        """
        self._socket = dial(address, timeout_s, source)
        if credentials is not None:
            self._socket = _client_context(credentials).wrap_socket(
                self._socket, server_hostname=server
            )
        self._reader = self._socket.makefile("rb")
        self._windows: Counter[int] = _FirstWindows()  # of streams; 0: of the connection
        self.ended: set[int] = set()
        """Streams of calls that the server has ended."""
        self.said = b""
        """Headers that the server has sent, still packed."""
        try:
            self.send(preface())
        except OSError:
            self.close()
            raise

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def send_data(self, stream: int, data: bytes) -> None:
        """Send data of a call, as soon as the server lets this end do so, or until it ends it."""
        for start in range(0, len(data), _PIECE_BYTES):
            piece = data[start : start + _PIECE_BYTES]
            while min(self._windows[0], self._windows[stream]) < len(piece):
                if stream in self.ended:
                    return
                if self.next() is None:
                    raise ConnectionResetError("the server closed the connection")
            self._windows[0] -= len(piece)
            self._windows[stream] -= len(piece)
            self.send(frame(DATA, 0, stream, piece))

    def next(self) -> Http2Frame | None:
        """Return the next frame, None at the end of the connection."""
        try:
            header = self._reader.read(_FRAME_HEADER_BYTES)
            if len(header) < _FRAME_HEADER_BYTES:
                return None
            payload = self._reader.read(int.from_bytes(header[:3]))
        except (ConnectionResetError, ssl.SSLEOFError):
            return None
        received = Http2Frame(header[3], header[4], int.from_bytes(header[5:]), payload)
        if received.kind == WINDOW_UPDATE:
            self._windows[received.stream] += int.from_bytes(payload)
        if received.kind == HEADERS:
            self.said += payload
        if received.kind == RST_STREAM or (
            received.kind == HEADERS and received.flags & END_STREAM
        ):
            self.ended.add(received.stream)
        return received

    def finish(self, count: int) -> None:
        """Wait until the server has ended so many calls."""
        while len(self.ended) < count:
            assert self.next() is not None, "the server closed the connection"

    def sync(self) -> None:
        """Return once the server has read all that was sent."""
        self.send(frame(PING, payload=bytes(8)))
        while (answer := self.next()) is None or answer[:2] != (PING, ACK):
            assert answer is not None, "the server closed the connection"

    def close(self) -> None:
        self._reader.close()
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def dial(address: str, timeout_s: float, source: str = "") -> socket.socket:
    """Connect to HOST:PORT or unix:/PATH, from an IP address of this machine if one is named."""
    if address.startswith("unix:"):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(timeout_s)
        sock.connect(address.removeprefix("unix:"))
        return sock
    host, _, port = address.rpartition(":")
    own = (source, 0) if source else None
    return socket.create_connection((host, int(port)), timeout_s, own)


@functools.cache
def _client_context(credentials: Credentials) -> ssl.SSLContext:
    context = credentials.new_client_context()
    context.set_alpn_protocols(["h2"])
    return context


def preface() -> bytes:
    """Return what a client says first; it also accepts the server's settings."""
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS) + frame(SETTINGS, ACK)


@functools.cache
def client_hello() -> bytes:
    """Return what a TLS client says first."""
    outgoing, context = ssl.MemoryBIO(), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="x")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("a handshake needs two")


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    """Return the bytes of a frame."""
    length = len(payload).to_bytes(3)
    return length + bytes((kind, flags)) + stream.to_bytes(4) + payload


def header_block(method: str, **more: str) -> bytes:
    """Return the headers of a gRPC call, each a literal without Huffman coding (RFC 7541, 6.2)."""
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": method,
        ":authority": "controller",
        "te": "trailers",
        "content-type": "application/grpc",
        **more,
    }
    texts = [text.encode() for header in headers.items() for text in header]
    assert all(len(text) < 127 for text in texts), "a longer one has a length of several bytes"
    pairs = zip(texts[::2], texts[1::2], strict=True)
    return b"".join(
        b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value for name, value in pairs
    )
