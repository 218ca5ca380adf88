# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""TLS over a connection's socket, with certificates of both ends.

OpenSSL works on memory here, and the socket stays the connection's own. So a chunk is encrypted at
once and leaves by one system call, and one system call brings many records.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from ..credentials import Credentials, CredentialsError, Role, role_name, roles_of
from ..errors import PeerClosedError, PeerError, PeerProtocolError, PeerRefusedError
from .frames import MAGIC, FrameKind
from .stream import finish_connecting
from .tls_errors import describe_refusal

SEAL_BYTES = 256 << 10
"""Most bytes that are encrypted at a time; their ciphertext may wait for the kernel."""
FILL_BYTES = 256 << 10
"""Most ciphertext that one system call receives."""
STRANGER_BYTES = 16 << 10
"""The same before the handshake is done, as strangers may open many connections."""
RECORD_BYTES = 16 << 10
"""Most bytes of a record, RFC 8446 section 5.1. Shorter buffers share one."""
TURN_BYTES = 1 << 20
"""Most bytes that one call of `receive` returns, as a fast sender may always have more."""
CONTROL_BYTES = 64 << 10
"""Most bytes of TLS itself that wait for an end that does not read them."""
_MAGIC = MAGIC.to_bytes(2)
_KIND_OFFSET = 3


@dataclass(frozen=True, kw_only=True)
class TlsEnd:
    """Whose certificate this end of a connection shows, and whose it wants to see."""

    credentials: Credentials
    calls: Role | None = None
    """Role of the server that this end calls; None: this end is the server."""

    def wrap(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject:
        """Return TLS over two buffers, with the files as they are now. Raises CredentialsError."""
        if self.calls is None:
            return self.credentials.server_context().wrap_bio(incoming, outgoing, server_side=True)
        context = self.credentials.client_context()
        return context.wrap_bio(incoming, outgoing, server_hostname=role_name(self.calls))


def calling(credentials: Credentials | None, role: Role) -> TlsEnd | None:
    """Return the end that calls a server of this role; None without credentials: no TLS."""
    return TlsEnd(credentials=credentials, calls=role) if credentials is not None else None


def called(credentials: Credentials | None) -> TlsEnd | None:
    """Return the end of a server; None without credentials: no TLS."""
    return TlsEnd(credentials=credentials) if credentials is not None else None


@final
class TlsStream:
    """TLS over TCP. Certificates are checked while it opens, except for a caller's role."""

    low_water_bytes = 1  # a record may be smaller than what the kernel would wait for

    def __init__(self, sock: socket.socket, end: TlsEnd, *, is_connecting: bool) -> None:
        self.wants = selectors.EVENT_WRITE if is_connecting else selectors.EVENT_READ
        self._socket = sock
        self._end = end
        self._is_connecting = is_connecting
        self._tls: ssl.SSLObject | None = None
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._leaving = memoryview(b"")  # ciphertext that the kernel has not taken
        self._num_sealed = 0  # the caller's bytes that it hides, and `_outgoing`
        self._has_heard = False
        self._is_over = False
        self._failure: OSError | PeerError | None = None  # found after bytes that came before it

    @property
    def has_unread(self) -> bool:
        """Whether bytes, or an error, wait in this process."""
        if self._failure is not None or self._incoming.pending:
            return True
        return self._tls is not None and self._tls.pending() > 0

    # Opening.

    def go_on_opening(self) -> None:
        """Connect, then shake hands."""
        if self._is_connecting:
            finish_connecting(self._socket)
            self._is_connecting = False
        tls = self._wrapped()
        while True:
            is_open = self._shake_hands(tls)
            if not self._flush():
                self.wants = selectors.EVENT_WRITE
                return
            if is_open:
                self.wants = 0
                return
            if not self._fill():
                self.wants = selectors.EVENT_READ
                return

    def _wrapped(self) -> ssl.SSLObject:
        if self._tls is None:
            try:
                self._tls = self._end.wrap(self._incoming, self._outgoing)
            except CredentialsError as error:
                raise PeerRefusedError(f"no TLS with {self._other}: {error}") from error
        return self._tls

    def _shake_hands(self, tls: ssl.SSLObject) -> bool:
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError as error:
            with contextlib.suppress(OSError):  # the other end learns of it, if it still listens
                self._flush()
            raise self._explained(error) from error
        return True

    def _check_first(self, data: bytes) -> None:
        """Refuse another end that speaks frames without TLS."""
        if data[:2] != _MAGIC[: len(data)]:
            return
        if data[_KIND_OFFSET : _KIND_OFFSET + 1] == bytes([FrameKind.REFUSED]):
            # This process was too slow to begin, so the other end took it for one without TLS.
            raise PeerClosedError(f"{self._other} waited too long for this end's TLS handshake")
        raise PeerRefusedError(
            f"{self._other} speaks no TLS, and this end has credentials; give them to both ends, or"
            " to none"
        )

    # An open stream.

    def receive(self, places: Sequence[memoryview]) -> int:
        """Decrypt what has come, at most TURN_BYTES."""
        if self._failure is not None:
            raise self._failure
        total = 0
        try:
            for place in places:
                rest = place[: TURN_BYTES - total]
                while rest.nbytes:
                    count = self._decrypt(rest)
                    if count == 0:
                        return self._checked(total)
                    total += count
                    rest = rest[count:]
            self._answer()
        except (OSError, PeerError) as error:
            if not total:
                raise
            self._failure = error
        return total

    def _decrypt(self, place: memoryview) -> int:
        """Return the number of bytes; 0: none now, or the end."""
        tls = self._tls
        assert tls is not None
        while not self._is_over:
            try:
                count = tls.read(place.nbytes, place)  # pyright: ignore[reportArgumentType]
            except ssl.SSLWantReadError:
                if not self._fill():
                    return 0
            except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
                self._is_over = True
            except ssl.SSLError as error:
                raise self._explained(error) from error
            else:
                if count:
                    return int(count)
                self._is_over = True
        return 0

    def _checked(self, total: int) -> int:
        self._answer()
        if not total and not self._is_over:
            raise BlockingIOError
        return total

    def _answer(self) -> None:
        """Send what TLS itself has to say, such as a new key."""
        if self._outgoing.pending and not self._flush() and self._outgoing.pending > CONTROL_BYTES:
            raise PeerProtocolError(f"{self._other} does not read TLS's answers to it")

    def send(self, buffers: Sequence[memoryview]) -> int:
        """Encrypt at most SEAL_BYTES, and send what has been encrypted."""
        if not self._num_sealed:
            self._num_sealed = self._seal(buffers)
        left = 0
        if not self._flush():
            # Ciphertext is never shorter than what it hides.
            left = min(self._num_sealed, self._leaving.nbytes + self._outgoing.pending)
        sent, self._num_sealed = self._num_sealed - left, left
        if not sent:
            raise BlockingIOError
        return sent

    def _seal(self, buffers: Sequence[memoryview]) -> int:
        room = SEAL_BYTES
        record: list[memoryview] = []  # parts that will share one
        record_room = RECORD_BYTES
        for buffer in buffers:
            part = buffer[:room]
            room -= part.nbytes
            if record or part.nbytes < RECORD_BYTES:
                record.append(part[:record_room])
                record_room -= record[-1].nbytes
                part = part[record[-1].nbytes :]
                if not record_room:
                    self._encrypt(memoryview(b"".join(record)))
                    record, record_room = [], RECORD_BYTES
            if part.nbytes:
                self._encrypt(part)
            if not room:
                break
        self._encrypt(memoryview(b"".join(record)))
        return SEAL_BYTES - room

    def _encrypt(self, data: memoryview) -> None:
        assert self._tls is not None
        while data.nbytes:
            data = data[self._tls.write(data) :]

    def end_sending(self) -> None:
        """Send TLS's own farewell, then close this direction."""
        if self._tls is not None and not self.has_unread:
            # `unwrap` looks for the other end's farewell once, and stumbles over anything else.
            with contextlib.suppress(ssl.SSLError):
                self._tls.unwrap()
            self._flush()
        self._socket.shutdown(socket.SHUT_WR)

    def check_role(self, role: Role) -> None:
        """Refuse a caller whose certificate is that of another role."""
        assert self._tls is not None
        shown = roles_of(self._tls.getpeercert())
        if role not in shown:
            names = ", ".join(sorted(shown)) or "no role"
            raise PeerRefusedError(
                f"the caller's certificate is for {names}; this server takes a {role}: give the"
                f" caller the credentials of a {role}"
            )

    def refuse_silent(self, frame: bytes) -> bool:
        """Tell a caller that sends no handshake: it may wait for a frame without TLS."""
        if self._has_heard:
            return False
        with contextlib.suppress(OSError):
            self._socket.send(frame)
        return True

    # Both.

    def _fill(self) -> bool:
        """Receive ciphertext; return False if there is none now."""
        try:
            data = self._socket.recv(STRANGER_BYTES if self.wants else FILL_BYTES)
        except (BlockingIOError, InterruptedError):
            return False
        if not data:
            self._incoming.write_eof()
            return True
        if not self._has_heard:
            self._check_first(data)
            self._has_heard = True
        self._incoming.write(data)
        return True

    def _flush(self) -> bool:
        """Send ciphertext; return whether the kernel has all of it."""
        while True:
            if not self._leaving.nbytes:
                if not self._outgoing.pending:
                    return True
                self._leaving = memoryview(self._outgoing.read())
            try:
                sent = self._socket.send(self._leaving)
            except (BlockingIOError, InterruptedError):
                return False
            self._leaving = self._leaving[sent:]

    @property
    def _other(self) -> str:
        try:
            host, port = self._socket.getpeername()
        except OSError:
            return "the other end"
        return f"{host}:{port}"

    def _explained(self, error: ssl.SSLError) -> PeerError:
        if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return PeerClosedError(f"{self._other} closed the connection during the TLS handshake")
        refusal = describe_refusal(error, self._end.calls)
        if refusal is not None:
            return PeerRefusedError(f"TLS with {self._other}: {refusal}")
        return PeerProtocolError(
            f"TLS with {self._other} failed: {error.reason or error}; do both ends run this"
            " release, with credentials?"
        )
