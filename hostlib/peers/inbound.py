# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""An accepted connection: challenge, greeting, then a view takes it, or it fetches results."""

from __future__ import annotations

import logging
import os
import socket
from typing import TYPE_CHECKING, final

from ..credentials import CredentialsError, Role
from ..errors import PeerError, PeerProtocolError, PeerRefusedError, ResultForgottenError
from .connection import Connection
from .event_loop import Timer
from .frames import NONCE_BYTES, PIECE_BYTES, FetchFrame, Frame, FrameKind, Greeting, Purpose
from .heartbeat import Heartbeat
from .results import RetainedResult
from .tls_stream import called

if TYPE_CHECKING:
    from .server import PeerServer

GREETING_S = 5.0
"""Longest time until the greeting; a connection without one is a stranger's."""
TLS_GREETING_S = 20.0
"""The same with TLS: on a busy machine, many handshakes at once take seconds of the processor."""
SILENT_S = 2.0
"""A caller that has not begun with TLS after this time may not know of it, and is told."""
IDLE_FETCHER_S = 60.0
"""Longest time between two requests for results."""
REFUSED_S = 1.0
"""Time for the other end to read why it was refused."""
_logger = logging.getLogger(__name__)


@final
class InboundPeer:
    """Handles a connection until a view takes it over; runs in the loop's thread."""

    def __init__(self, server: PeerServer, sock: socket.socket, address: tuple[str, int]) -> None:
        self._server = server
        self._address = address
        self._nonce = os.urandom(NONCE_BYTES)
        self._greeting: Greeting | None = None
        self._heartbeat: Heartbeat | None = None
        self._wanted: int | None = None
        self._is_refused = False
        self._sent_bytes = 0
        self.connection = Connection(
            server.loop, sock, self, is_connecting=False, tls=called(server.credentials)
        )
        self.connection.send(
            Frame(FrameKind.CHALLENGE, payload_bytes=NONCE_BYTES), memoryview(self._nonce)
        )
        limit_s = GREETING_S if server.credentials is None else TLS_GREETING_S
        self._timer = server.loop.call_later(limit_s, self._expire)
        self._silence: Timer | None = None
        if server.credentials is not None:
            self._silence = server.loop.call_later(SILENT_S, self._refuse_silent)

    def drop(self) -> None:
        """Close the connection at once; nothing of it stays in memory."""
        self.connection.close()
        self._forget()

    def _forget(self) -> None:
        self._timer.cancel()
        if self._silence is not None:
            self._silence.cancel()
        self._server.forget(self)

    @property
    def is_known(self) -> bool:
        """Whether it has greeted with the right secret."""
        return self._greeting is not None

    def target(self, connection: Connection, frame: Frame) -> memoryview | None:
        """Return room for greetings and requests; raise PeerProtocolError for other kinds."""
        if self._is_refused:
            return memoryview(bytearray(frame.payload_bytes))
        if self._greeting is None:
            if frame.kind is not FrameKind.GREETING:
                raise PeerProtocolError(f"{frame.kind.name} frame before the greeting")
        elif self._greeting.purpose is not Purpose.FETCH:
            if frame.kind is not FrameKind.HEARTBEAT:
                raise PeerProtocolError(f"{frame.kind.name} frame before the welcome")
        elif frame.kind is not FrameKind.FETCH:
            raise PeerProtocolError(f"{frame.kind.name} frame instead of a request")
        return memoryview(bytearray(frame.payload_bytes))

    def on_frame(self, connection: Connection, frame: Frame, payload: memoryview) -> None:
        """Take a greeting or a request."""
        if self._is_refused:
            return
        if frame.kind is FrameKind.GREETING:
            try:
                connection.check_role(Role.WORKER)
            except PeerRefusedError as error:
                self._refuse(str(error), "refused_certificate")
                return
            try:
                greeting = Greeting.unpack(bytes(payload), self._server.token, self._nonce)
            except PeerRefusedError as error:
                self._refuse(str(error), "refused_stranger")
                return
            self._greeting = greeting
            self._heartbeat = Heartbeat(self._server.loop, connection)
            self._timer.cancel()
            if self._greeting.purpose is Purpose.FETCH:
                self._timer = self._server.loop.call_later(IDLE_FETCHER_S, self._expire)
            self.review()
        elif frame.kind is FrameKind.FETCH:
            if self._wanted is not None:
                raise PeerProtocolError("a second request before the answer to the first")
            fetch = FetchFrame.unpack(frame)
            self._wanted = fetch.tensor
            self._timer.cancel()
            self._timer = self._server.loop.call_later(fetch.timeout_ms / 1000, self._expire)
            self.review()

    def on_drained(self, connection: Connection) -> None:
        """Do nothing: no frame waits for this."""

    def on_closed(self, connection: Connection, error: PeerError) -> None:
        """Forget the connection; count it if it was a stranger's."""
        self._forget()
        if self._is_refused:
            return
        if self._greeting is None or isinstance(error, PeerProtocolError):
            is_certificate = isinstance(error, PeerRefusedError)
            cause = "refused_certificate" if is_certificate else "refused_stranger"
            self._server.counters[cause] += 1
            # Anybody may cause the others.
            is_own_fault = isinstance(error.__cause__, CredentialsError)
            level = logging.WARNING if is_own_fault else logging.INFO
            _logger.log(level, "refused the connection from %s: %s", self._address, error)

    def review(self) -> None:
        """Answer, refuse or hand over, if this connection's view or result is there now."""
        server, greeting = self._server, self._greeting
        if greeting is None or server.place is None or self._is_refused:
            return
        if (greeting.job, greeting.receiver) != (server.place.job, server.place.worker_id):
            self._refuse(
                f"this is worker {server.place.worker_id} of job {server.place.job}, not"
                f" {greeting.receiver} of {greeting.job}",
                "refused_job",
            )
        elif greeting.purpose is Purpose.FETCH:
            if self._wanted is not None:
                self._answer(self._wanted)
        else:
            self._hand_over(greeting)

    def _hand_over(self, greeting: Greeting) -> None:
        server = self._server
        view = server.view(greeting.generation)
        if view is not None:
            try:
                view.adopt(self.connection, greeting)
            except PeerRefusedError as error:
                self._refuse(str(error), "refused_member")
                return
            self._timer.cancel()
            self._stop_heartbeat()
            server.forget(self)
        elif server.is_over(greeting.generation):
            self._refuse(f"generation {greeting.generation} is over", "refused_generation")

    def _answer(self, tensor: int) -> None:
        try:
            result = self._server.results.get(tensor)
        except ResultForgottenError:
            self._reply(Frame(FrameKind.FORGOTTEN))
            return
        if result is not None:
            self._send_result(result)

    def _send_result(self, result: RetainedResult) -> None:
        description = result.description()
        arrays = result.arrays()
        for array in arrays:
            assert array.flags.c_contiguous
        self._server.counters["served_results"] += 1
        self._reply(
            Frame(FrameKind.RESULT, payload_bytes=len(description)),
            memoryview(description),
        )
        for array in arrays:
            if not array.size:
                continue
            content = array.data.cast("B")
            for start in range(0, content.nbytes, PIECE_BYTES):
                piece = content[start : start + PIECE_BYTES]
                self.connection.send(Frame(FrameKind.PIECE, payload_bytes=piece.nbytes), piece)

    def _reply(self, frame: Frame, payload: memoryview | None = None) -> None:
        self._wanted = None
        self._timer.cancel()
        self._timer = self._server.loop.call_later(IDLE_FETCHER_S, self._expire)
        self.connection.send(frame, payload)

    def _expire(self) -> None:
        if self._is_refused:
            self.drop()
        elif self._wanted is not None:
            self._reply(Frame(FrameKind.NOT_COMPLETE))
        elif self._greeting is None:
            self.connection.close(PeerProtocolError("no greeting in time"))
        elif self.connection.sent_bytes > self._sent_bytes:
            # A large result on a slow link is still moving.
            self._sent_bytes = self.connection.sent_bytes
            self._timer = self._server.loop.call_later(IDLE_FETCHER_S, self._expire)
        else:
            self.connection.close(PeerProtocolError("no request in time"))

    def _stop_heartbeat(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.stop()

    def _refuse_silent(self) -> None:
        text = (
            b"this server speaks TLS, and the caller does not begin with it; give the caller"
            b" credentials: SessionOptions.credentials, or the variable SWITCHFOLD_CREDENTIALS"
        )
        if self.connection.refuse_silent(Frame(FrameKind.REFUSED, len(text)).pack() + text):
            self._server.counters["refused_stranger"] += 1
            _logger.info("refused the connection from %s: it does not begin TLS", self._address)
            self._end_refused()

    def _refuse(self, reason: str, counter: str) -> None:
        self._server.counters[counter] += 1
        self._stop_heartbeat()
        text = reason.encode()
        self.connection.send(Frame(FrameKind.REFUSED, payload_bytes=len(text)), memoryview(text))
        self._end_refused()

    def _end_refused(self) -> None:
        self._is_refused = True
        # Closing with unread bytes would reset the connection, and the reason might get lost.
        self._timer.cancel()
        self._timer = self._server.loop.call_later(REFUSED_S, self._expire)
