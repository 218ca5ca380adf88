# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A TCP connection that carries frames, without blocking and without copies of payloads."""

from __future__ import annotations

import contextlib
import errno
import logging
import selectors
import socket
import struct
import time
from collections import deque
from typing import Protocol, final

from ..credentials import Role
from ..errors import (
    PeerClosedError,
    PeerError,
    PeerProtocolError,
    PeerUnreachableError,
)
from .event_loop import EventLoop
from .frames import HEADER_BYTES, Frame, Packable
from .pacing import limit_rate, unacknowledged_bytes
from .stream import ByteStream, PlainStream
from .tls_stream import TlsEnd, TlsStream

_logger = logging.getLogger(__name__)
READ_BUDGET_BYTES = 4 << 20
"""Bytes read from one connection before the loop turns to the others."""
AHEAD_BYTES = 16 << 10
"""Bytes that one system call may read beyond a payload: the next header, or whole small frames."""
KEEPALIVE_S = 1
"""Pause between two probes of a silent connection. The other kernel answers them, whatever its
process does."""
KEEPALIVE_PROBES = 90
"""This many probes without an answer end a connection; `alive_s` shows silence earlier."""
LINGER_S = 2.0
"""Longest time that a gently closed connection stays open."""
SEND_BUFFERS = 16
"""Most buffers that one system call sends."""
_TCP_INFO_AGES = struct.Struct("=52x2I")
"""Fields of Linux's tcp_info: milliseconds since the last bytes and the last acknowledgement."""


class FrameReceiver(Protocol):
    """Takes the frames of a connection; called in the loop's thread."""

    def target(self, connection: Connection, frame: Frame) -> memoryview | None:
        """Return memory of at least the frame's payload_bytes for its payload.

        None: there is no place yet. Reading stops until `resume`, and then this is called again. A
        PeerError ends the connection.
        """
        ...

    def on_frame(self, connection: Connection, frame: Frame, payload: memoryview) -> None:
        """Take a whole frame. A PeerError ends the connection."""
        ...

    def on_drained(self, connection: Connection) -> None:
        """Learn that all waiting bytes have left, or that the other kernel has accepted."""
        ...

    def on_closed(self, connection: Connection, error: PeerError) -> None:
        """Learn that the other end, or an error, has ended the connection."""
        ...


@final
class Connection:
    """Both directions of one connection; used only in the loop's thread."""

    def __init__(
        self,
        loop: EventLoop,
        sock: socket.socket,
        receiver: FrameReceiver,
        *,
        is_connecting: bool,
        tls: TlsEnd | None = None,
    ) -> None:
        """`tls`: this end, if the connection is protected."""
        self.receiver = receiver
        self.sent_bytes = 0
        """Bytes that the kernel has taken."""
        self.sent_s = 0.0
        """When the kernel last took some, on the monotonic clock."""
        self.was_drained = True
        """After the end: whether the kernel had taken all that was sent."""
        self.arrived_ns = 0
        """When the frame at hand had arrived, on the loop's clock of measurements.

        For the first frame of a turn of the loop, it is when the loop learned that the socket is
        ready. For the others, which may have come later, it is when their last bytes were read.
        """
        self._ready_ns: int | None = None  # the turn's start, until its first read
        self._first_ns: int | None = None  # the same, until the first frame of this read
        self._taken_ns = 0  # when bytes were last read
        self._loop = loop
        self._socket = sock
        self._stream: ByteStream
        if tls is None:
            self._stream = PlainStream(sock, is_connecting=is_connecting)
        else:
            self._stream = TlsStream(sock, tls, is_connecting=is_connecting)
        self._is_opening = self._stream.wants != 0
        self._is_read_due = False  # without an event of the socket
        self._is_paused = False
        self._is_closed = False
        self._is_ending = False
        self._ahead = bytearray(AHEAD_BYTES)
        self._ahead_view = memoryview(self._ahead)
        self._ahead_start: int = 0  # of the bytes read that belong to no payload yet
        self._ahead_end: int = 0
        self._is_dry = False  # whether the kernel had fewer bytes than there was room for
        self._frame: Frame | None = None
        self._payload: memoryview | None = None
        self._filled = 0
        self._read_s = time.monotonic()
        self._payload_s = self._read_s
        self._low_water = 1
        self._outgoing: deque[memoryview] = deque()
        self._events = 0
        with contextlib.suppress(OSError):  # not TCP in a test
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # So that the connection to a host that vanished ends at last.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_S)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_S)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES)
        sock.setblocking(False)
        self._watch()

    @classmethod
    def open(
        cls,
        loop: EventLoop,
        address: tuple[str, int],
        source: str,
        receiver: FrameReceiver,
        *,
        tls: TlsEnd | None = None,
    ) -> Connection:
        """Start to connect from the address `source`; the receiver learns of later errors."""
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.bind((source, 0))
            code = sock.connect_ex(address)
        except OSError as error:
            sock.close()
            raise PeerUnreachableError(f"cannot connect to {address}: {error}") from error
        if code not in (0, errno.EINPROGRESS):
            sock.close()
            raise PeerUnreachableError(f"cannot connect to {address}: {errno.errorcode[code]}")
        return cls(loop, sock, receiver, is_connecting=True, tls=tls)

    @property
    def moved_s(self) -> float:
        """When bytes of a payload last arrived or left; at first, when the connection began."""
        if self._low_water == 1:
            return self._payload_s
        arrived_s, _ = self._kernel_times_s()  # the kernel collects a payload
        return max(self._payload_s, self._read_s, arrived_s)

    @property
    def alive_s(self) -> float:
        """When the other end's kernel last gave a sign of life: bytes, or receipts of our bytes.

        A stream that loses the same packets again and again brings no bytes for many seconds,
        although both ends live. A process that hangs still has a living kernel, so users of this
        need a timeout as well.
        """
        return max(self._read_s, *self._kernel_times_s())

    def _kernel_times_s(self) -> tuple[float, float]:
        """Return when the last bytes and the last receipt came; -inf if not TCP, or closed."""
        try:
            info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_AGES.size)
            bytes_ms, receipt_ms = _TCP_INFO_AGES.unpack(info)
        except (OSError, struct.error):
            return float("-inf"), float("-inf")
        now_s = time.monotonic()
        return now_s - bytes_ms / 1000, now_s - receipt_ms / 1000

    @property
    def is_established(self) -> bool:
        """Whether the other end's kernel has accepted, even before the loop notices it."""
        if self._is_closed:
            return False
        try:
            self._socket.getpeername()
        except OSError:
            return False
        return True

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be sent any more; the last bytes may still be on their path."""
        return self._is_closed or self._is_ending

    @property
    def is_drained(self) -> bool:
        """Whether the kernel has taken all that was sent."""
        return not self._outgoing

    @property
    def unacknowledged_bytes(self) -> int:
        """Bytes that the kernel has taken, and the other end's kernel has not acknowledged."""
        return 0 if self._is_closed else unacknowledged_bytes(self._socket)

    def limit_rate(self, bytes_per_s: float) -> None:
        """Have the kernel pace what it sends, where it can; `math.inf`: no longer."""
        if not self._is_closed:
            limit_rate(self._socket, bytes_per_s)

    def send(self, frame: Packable, payload: memoryview | None = None) -> None:
        """Send a frame; the payload must not change until `is_drained`."""
        if self.is_closed:
            return
        was_drained = not self._outgoing
        self._outgoing.append(memoryview(frame.pack()))
        if payload is not None and payload.nbytes:
            self._outgoing.append(payload)
        if was_drained and not self._is_opening:
            self._guard_write()

    def push(self) -> None:
        """Hand bytes to the kernel now, because the caller keeps the loop busy for longer."""
        if self._outgoing and not self._is_opening and not self._is_closed:
            self._guard_write()

    def check_role(self, role: Role) -> None:
        """Raise PeerRefusedError if the other end has shown a certificate without this role."""
        self._stream.check_role(role)

    def refuse_silent(self, frame: bytes) -> bool:
        """See `ByteStream.refuse_silent`."""
        return not self._is_closed and self._stream.refuse_silent(frame)

    def resume(self) -> None:
        """Read again, after the receiver had no place for a payload."""
        if self._is_paused and not self._is_closed:
            self._is_paused = False
            self._read_s = time.monotonic()
            self._watch()
            # The header has been read. If its payload is empty, no byte wakes the loop.
            self._loop.call_later(0, self._read_on)

    def close(self, error: PeerError | None = None) -> None:
        """Close at once; an error is reported to the receiver."""
        if self._is_closed:
            return
        self._is_closed = True
        self._loop.watch(self._socket, 0, self)
        self._socket.close()
        self.was_drained = self.was_drained and not self._outgoing
        self._outgoing.clear()
        self._payload = None
        receiver, self.receiver = self.receiver, _Nobody()  # else both stay until a collection
        if error is not None:
            receiver.on_closed(self, error)

    def close_gently(self) -> None:
        """Send nothing more, but let the sent bytes arrive; throw away what is received.

        Closing with unread bytes would reset the connection, and the sent bytes might get lost.
        """
        if self._is_closed or self._is_opening or self._outgoing or self._is_paused:
            self.close()
            return
        self._is_ending = True
        self.receiver = _Discard(self, self._loop)
        with contextlib.suppress(OSError):  # broken: the next read reports it
            self._stream.end_sending()

    def on_ready(self, events: int) -> None:
        """Read and write as far as the socket is ready."""
        if self._is_opening:
            self._go_on_opening(events)
        elif events & selectors.EVENT_READ:
            self._read_on()
        if events & selectors.EVENT_WRITE and not self._is_closed:
            if not self._is_opening:
                self._guard_write()
            if not self._outgoing and not self._is_closed:
                self.receiver.on_drained(self)

    def _go_on_opening(self, events: int) -> None:
        if not events & self._stream.wants:
            return
        try:
            self._stream.go_on_opening()
        except PeerError as error:
            self.close(error)
            return
        except OSError as error:
            self.close(PeerUnreachableError(f"connection broke: {error}"))
            return
        self._is_opening = self._stream.wants != 0
        self._watch()
        if not self._is_opening:
            self._read_s = time.monotonic()
            self._read_on()

    def _watch(self) -> None:
        events = self._stream.wants
        if not self._is_opening:
            if not self._is_paused:
                events |= selectors.EVENT_READ
            if self._outgoing:
                events |= selectors.EVENT_WRITE
        if events != self._events:
            self._loop.watch(self._socket, events, self)
            self._events = events

    def _read_on(self) -> None:
        self._is_read_due = False
        if self._is_closed or self._is_paused or self._is_opening:
            return
        try:
            self._read()
        except PeerError as error:
            self.close(error)
        except OSError as error:
            self.close(PeerUnreachableError(f"connection broke: {error}"))
        except Exception as error:
            _logger.exception("taking a frame failed")
            self.close(PeerProtocolError(f"taking a frame failed: {error!r}"))
        is_reading = not (self._is_closed or self._is_paused or self._is_read_due)
        if is_reading and self._stream.has_unread:
            self._is_read_due = True
            self._loop.call_later(0, self._read_on)

    def _read(self) -> None:
        budget = READ_BUDGET_BYTES
        self._ready_ns = self._loop.turn_ns
        self._is_dry = False
        while not self._is_closed:
            if self._frame is None:
                if self._ahead_end - self._ahead_start < HEADER_BYTES:
                    if budget <= 0 or self._is_dry or not self._read_ahead():
                        self._expect(0)  # the buffer may hold fewer bytes than the kernel waits for
                        return
                    continue
                end = self._ahead_start + HEADER_BYTES
                self._frame = Frame.unpack(self._ahead_view[self._ahead_start : end])
                self._ahead_start = end
            frame = self._frame
            if self._payload is None:
                self._payload = self.receiver.target(self, frame)
                if self._payload is None:
                    self._is_paused = True
                    self._expect(0)
                    self._watch()
                    return
                self._filled = 0
                self._take_ahead(frame.payload_bytes)
            if self._filled < frame.payload_bytes:
                count = self._read_payload(frame.payload_bytes) if budget > 0 else 0
                budget -= count
                if self._filled < frame.payload_bytes:
                    self._expect(frame.payload_bytes - self._filled)
                    return
            self.arrived_ns = self._taken_ns if self._first_ns is None else self._first_ns
            self._first_ns = None
            payload, self._payload, self._frame = self._payload, None, None
            self.receiver.on_frame(self, frame, payload)

    def _read_ahead(self) -> bool:
        """Read into the buffer; return whether it holds a whole header."""
        held = self._ahead_end - self._ahead_start
        if self._ahead_start:
            self._ahead[:held] = self._ahead[self._ahead_start : self._ahead_end]
            self._ahead_start, self._ahead_end = 0, held
        self._ahead_end += self._receive(AHEAD_BYTES - held, self._ahead_view[held:])
        return self._ahead_end >= HEADER_BYTES

    def _take_ahead(self, payload_bytes: int) -> None:
        """Move bytes read beyond a header to the payload's place."""
        assert self._payload is not None
        count = min(payload_bytes, self._ahead_end - self._ahead_start)
        if count:
            end = self._ahead_start + count
            self._payload[:count] = self._ahead_view[self._ahead_start : end]
            self._ahead_start = end
            self._filled = count
            self._payload_s = self._read_s

    def _read_payload(self, payload_bytes: int) -> int:
        """Read the rest of a payload, and bytes beyond it; return the number of bytes."""
        assert self._payload is not None
        rest = payload_bytes - self._filled
        self._ahead_start = 0
        rest_view = self._payload[self._filled : payload_bytes]
        count = self._receive(rest + AHEAD_BYTES, rest_view, self._ahead_view)
        if count:
            self._payload_s = self._read_s
        self._filled += min(count, rest)
        self._ahead_end = max(0, count - rest)
        return count

    def _expect(self, num_bytes: int) -> None:
        """Let the kernel wake this thread after so many bytes; 0: at the first byte."""
        low_water = max(1, min(num_bytes, self._stream.low_water_bytes))
        if low_water != self._low_water:
            self._low_water = low_water
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, low_water)

    def _receive(self, room: int, *places: memoryview) -> int:
        """Return the number of bytes received, 0 if there are none; raise at the stream's end."""
        self._is_dry = True
        try:
            count = self._stream.receive(places)
        except (BlockingIOError, InterruptedError):
            return 0
        if count == 0:
            raise PeerClosedError("the other end closed the connection")
        self._read_s = time.monotonic()
        self._taken_ns = self._loop.clock_ns()
        self._first_ns, self._ready_ns = self._ready_ns, None
        self._is_dry = count < room
        return count

    def _guard_write(self) -> None:
        try:
            self._write()
        except OSError as error:
            # Reported from the loop: whoever called `send` is not prepared for `on_closed`.
            broken = PeerUnreachableError(f"connection broke: {error}")
            self.was_drained = False
            self._outgoing.clear()
            self._loop.call_later(0, lambda: self.close(broken))
            return
        self._watch()

    def _write(self) -> None:
        outgoing = self._outgoing
        while outgoing:
            buffers = [outgoing[i] for i in range(min(SEND_BUFFERS, len(outgoing)))]
            try:
                sent = self._stream.send(buffers)
            except (BlockingIOError, InterruptedError):
                return
            self.sent_bytes += sent
            self.sent_s = time.monotonic()
            if sent > HEADER_BYTES:
                self._payload_s = self.sent_s
            while sent:
                first = outgoing[0]
                if sent < first.nbytes:
                    outgoing[0] = first[sent:]
                    break
                sent -= first.nbytes
                outgoing.popleft()


class _Nobody:
    """Throws everything away."""

    def target(self, connection: Connection, frame: Frame) -> memoryview | None:
        return memoryview(bytearray(frame.payload_bytes))

    def on_frame(self, connection: Connection, frame: Frame, payload: memoryview) -> None:
        pass

    def on_drained(self, connection: Connection) -> None:
        pass

    def on_closed(self, connection: Connection, error: PeerError) -> None:
        pass


@final
class _Discard(_Nobody):
    """Reads on until the other end closes too, or for LINGER_S."""

    def __init__(self, connection: Connection, loop: EventLoop) -> None:
        self._loop = loop
        self._timer = loop.call_later(
            LINGER_S, lambda: connection.close(PeerClosedError("the other end stays open"))
        )
        loop.note_lingering(1)

    def on_closed(self, connection: Connection, error: PeerError) -> None:
        self._timer.cancel()
        self._loop.note_lingering(-1)
