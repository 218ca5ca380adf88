# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Many calls of one method over a connection of plain HTTP/2 (RFC 9113), without a gRPC client.

A gRPC client does not say whether the server has read a call. A PING does: the server answers it
after it has read everything before it.
"""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Final, Self

_HEADERS: Final = 1
_RST_STREAM: Final = 3
_SETTINGS: Final = 4
_PING: Final = 6
_ACK: Final = 1
_END_STREAM: Final = 1
_END_HEADERS: Final = 4
_FRAME_HEADER_BYTES: Final = 9


class Http2Calls:
    """A connection with calls that send no message."""

    def __init__(self, address: str, timeout_s: float) -> None:
        """Connect to HOST:PORT; each wait for the server takes at most `timeout_s`."""
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout_s)
        self._reader = self._socket.makefile("rb")
        self._open: set[int] = set()  # streams of calls that the server has not ended
        self._socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(_SETTINGS))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._reader.close()
        self._socket.close()

    def start(self, method: str, count: int) -> None:
        """Call a method `count` times; return once the server has read all calls."""
        block = _header_block(method)
        self._open = set(range(1, 2 * count, 2))
        flags = _END_STREAM | _END_HEADERS
        calls = [_frame(_HEADERS, flags, stream, block) for stream in sorted(self._open)]
        self._socket.sendall(b"".join(calls) + _frame(_PING, payload=bytes(8)))
        while self._next()[:2] != (_PING, _ACK):
            pass

    def finish(self) -> None:
        """Wait until the server has ended every call that was started."""
        while self._open:
            kind, flags, stream = self._next()
            if kind == _RST_STREAM or (kind == _HEADERS and flags & _END_STREAM):
                self._open.discard(stream)

    def _next(self) -> tuple[int, int, int]:
        """Read a frame; return its type, flags and stream."""
        header = self._reader.read(_FRAME_HEADER_BYTES)
        assert len(header) == _FRAME_HEADER_BYTES, "the server closed the connection"
        self._reader.read(int.from_bytes(header[:3]))
        return header[3], header[4], int.from_bytes(header[5:])


def _frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    length = len(payload).to_bytes(3)
    return length + bytes((kind, flags)) + stream.to_bytes(4) + payload


def _header_block(method: str) -> bytes:
    """Return the headers of a gRPC call, each a literal without Huffman coding (RFC 7541, 6.2)."""
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": method,
        ":authority": "controller",
        "te": "trailers",
        "content-type": "application/grpc",
    }
    texts = [text.encode() for header in headers.items() for text in header]
    assert all(len(text) < 127 for text in texts), "a longer one has a length of several bytes"
    pairs = zip(texts[::2], texts[1::2], strict=True)
    return b"".join(
        b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value for name, value in pairs
    )
