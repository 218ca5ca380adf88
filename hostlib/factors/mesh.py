# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One connection between every two workers: worker i dials all below i."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, final

from ..errors import (
    ConfigurationError,
    MemberLostError,
    PeerClosedError,
    PeerError,
    PeerProtocolError,
    PeerRefusedError,
)
from ..peers import PeerServer
from ..peers.connection import LINGER_S, Connection
from ..peers.dialled import DialledLink
from ..peers.frames import Frame, FrameKind, Greeting, Packable, Purpose
from ..peers.heartbeat import Heartbeat

if TYPE_CHECKING:
    from .exchange import FactorExchange

GENERATION = 1
_DRAIN_CHECK_S = 0.005


@final
class Mesh:
    """Connections by worker id; frames for a connection that is not up wait here."""

    def __init__(
        self,
        server: PeerServer,
        worker_id: int,
        peers: Sequence[tuple[str, int]],
        exchange: FactorExchange,
        *,
        connect_s: float,
        job: int,
    ) -> None:
        if server.place is not None:
            raise ConfigurationError("this peer server serves another job")
        self.lost: dict[int, MemberLostError] = {}
        self._server = server
        self._exchange = exchange
        self._worker_id = worker_id
        self._num_workers = len(peers)
        self._connect_s = connect_s
        self._is_closed = False
        self._waiting: dict[int, deque[tuple[Packable, memoryview]]] = {
            peer: deque() for peer in range(len(peers)) if peer != worker_id
        }
        self._welcomed: set[Connection] = set()
        """Connections that are not known to be in use. A worker that gets no welcome in time dials
        again, and then uses only the newer connection."""
        self._inbound: dict[int, Connection] = {}
        self._dialled: dict[int, DialledLink] = {}
        self._drained = threading.Event()
        server.loop.run(lambda: self._start(peers, job))
        server.enter_job(job, worker_id)

    def close(self) -> None:
        """Close the connections and the server when all frames have left, or after LINGER_S."""
        if self._is_closed:
            return
        if not self._server.loop.is_own_thread:
            try:
                self._server.loop.post(self._check_drained)
                self._drained.wait(LINGER_S)
                self._server.loop.run(self._end)
            except PeerClosedError:
                self._is_closed = True  # the server is closed, and its thread with it
        self._server.close()

    # The methods below run in the loop's thread.

    def _start(self, peers: Sequence[tuple[str, int]], job: int) -> None:
        self._server.add_view(GENERATION, _Door(self))
        for peer in range(self._worker_id):
            greeting = Greeting(job, GENERATION, self._worker_id, peer, Purpose.FACTORS)
            self._dialled[peer] = DialledLink(
                self._server.loop,
                self._server.call(peers[peer], greeting),
                _DialledEnd(self, peer),
                unreachable_s=self._connect_s,
            )
        self._server.loop.call_later(self._connect_s, self._lose_absent)

    def send(self, worker_id: int, frame: Packable, payload: memoryview) -> None:
        """Send a frame; its payload must never change again."""
        inbound, dialled = self._inbound.get(worker_id), self._dialled.get(worker_id)
        if worker_id in self.lost:
            return
        if inbound is not None:
            inbound.send(frame, payload)
        elif dialled is not None and dialled.is_up:
            dialled.send(frame, payload)
        else:
            self._waiting[worker_id].append((frame, payload))

    def adopt(self, connection: Connection, greeting: Greeting) -> None:
        """Take over the connection of a worker with a higher id."""
        peer = greeting.sender
        if greeting.purpose is not Purpose.FACTORS:
            raise PeerRefusedError("this is an exchange of factors")
        if not self._worker_id < peer < self._num_workers or peer in self._inbound:
            raise PeerRefusedError(
                f"worker {peer}: unknown to worker {self._worker_id} of {self._num_workers}, or"
                " here already"
            )
        self._welcomed.add(connection)
        connection.receiver = _InboundEnd(self, peer)
        Heartbeat(self._server.loop, connection)
        connection.send(Frame(FrameKind.WELCOME))

    def confirm(self, peer: int, connection: Connection) -> None:
        """Use this connection from now on: the other end has the welcome, and sends."""
        if connection not in self._welcomed:
            return
        if peer in self._inbound:
            raise PeerProtocolError(f"a second connection of worker {peer} in use")
        self._welcomed.remove(connection)
        self._inbound[peer] = connection
        self.flush(peer)

    def end_inbound(self, peer: int, connection: Connection, error: PeerError) -> None:
        """Give a worker up if its connection was in use; otherwise the worker dials again."""
        if connection in self._welcomed:
            self._welcomed.remove(connection)
        else:
            self.lose(peer, error)

    def flush(self, peer: int) -> None:
        """Send the frames that wait for this worker."""
        waiting = self._waiting[peer]
        while waiting:
            self.send(peer, *waiting.popleft())

    def target(self, worker_id: int, frame: Frame) -> memoryview:
        """Return where a payload goes."""
        if frame.kind is FrameKind.HEARTBEAT:
            return memoryview(bytearray(frame.payload_bytes))
        return self._exchange.target(worker_id, frame)

    def on_frame(self, worker_id: int, frame: Frame) -> None:
        """Pass a frame on."""
        if frame.kind is not FrameKind.HEARTBEAT:
            self._exchange.on_frame(worker_id, frame)

    def lose(self, worker_id: int, cause: PeerError) -> None:
        """Give a worker up."""
        if worker_id in self.lost or self._is_closed:
            return
        error = MemberLostError(f"worker {worker_id} is lost: {cause}", worker_id)
        error.__cause__ = cause
        self.lost[worker_id] = error
        self._waiting[worker_id].clear()
        self._exchange.on_lost(error)

    def _lose_absent(self) -> None:
        for peer in range(self._worker_id + 1, self._num_workers):
            if peer not in self._inbound:
                text = f"it did not connect in {self._connect_s:g} s"
                self.lose(peer, PeerClosedError(text))

    def _check_drained(self) -> None:
        ends = [c for c in self._inbound.values() if not c.is_closed]
        links = [link for link in self._dialled.values() if link.is_up]
        if all(end.is_drained for end in (*ends, *links)):
            self._drained.set()
        elif not self._is_closed:
            self._server.loop.call_later(_DRAIN_CHECK_S, self._check_drained)

    def _end(self) -> None:
        self._is_closed = True
        for connection in self._inbound.values():
            connection.close_gently()
        for connection in self._welcomed:
            connection.close()
        for link in self._dialled.values():
            link.close(is_gentle=True)


@final
class _Door:
    """Gives workers' connections from the peer server to the mesh."""

    def __init__(self, mesh: Mesh) -> None:
        self._mesh = mesh

    def adopt(self, connection: Connection, greeting: Greeting) -> None:
        self._mesh.adopt(connection, greeting)

    def close(self) -> None:
        """Do nothing: the mesh closes its connections, and the server itself."""


@final
class _InboundEnd:
    """The end of a connection that a worker with a higher id has opened."""

    def __init__(self, mesh: Mesh, worker_id: int) -> None:
        self._mesh = mesh
        self._worker_id = worker_id

    def target(self, connection: Connection, frame: Frame) -> memoryview | None:
        self._mesh.confirm(self._worker_id, connection)
        return self._mesh.target(self._worker_id, frame)

    def on_frame(self, connection: Connection, frame: Frame, payload: memoryview) -> None:
        self._mesh.on_frame(self._worker_id, frame)

    def on_drained(self, connection: Connection) -> None:
        pass

    def on_closed(self, connection: Connection, error: PeerError) -> None:
        self._mesh.end_inbound(self._worker_id, connection, error)


@final
class _DialledEnd:
    """A connection to a worker with a lower id; once it was up, it is never opened again."""

    def __init__(self, mesh: Mesh, worker_id: int) -> None:
        self._mesh = mesh
        self._worker_id = worker_id

    def on_up(self, link: DialledLink) -> None:
        link.send(Frame(FrameKind.HEARTBEAT))  # tells the other end that this connection is in use
        self._mesh.flush(self._worker_id)

    def target(self, frame: Frame) -> memoryview:
        return self._mesh.target(self._worker_id, frame)

    def on_frame(self, frame: Frame, payload: memoryview) -> None:
        self._mesh.on_frame(self._worker_id, frame)

    def on_down(self, link: DialledLink, error: PeerError) -> bool:
        self._mesh.lose(self._worker_id, error)
        return False

    def on_lost(self, link: DialledLink, error: PeerError) -> None:
        self._mesh.lose(self._worker_id, error)


def out_of_place(worker_id: int, frame: Frame) -> PeerProtocolError:
    """Return the error for a frame of another purpose."""
    return PeerProtocolError(f"{frame.kind.name} frame from worker {worker_id}")
