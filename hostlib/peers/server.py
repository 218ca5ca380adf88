# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The listening end of a worker: other members fetch results here and bring lanes to reduce."""

from __future__ import annotations

import contextlib
import logging
import selectors
import socket
import threading
from collections import Counter
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self, final

from ..errors import AddressUnreachableError, PeerError
from .connection import LINGER_S, Connection
from .event_loop import EventLoop
from .fetch import Fetch
from .frames import Greeting, Purpose
from .inbound import InboundPeer
from .results import RetainedResult, RetainedResults

MAX_INBOUND = 512
"""Connections that no view has taken over; with more, the oldest stranger is closed."""
_logger = logging.getLogger(__name__)


class PeerAddress(Protocol):
    """Where a member's peer server listens; `hostlib.control.view.Member` is one."""

    @property
    def worker_id(self) -> int:
        """Id in the job."""
        ...

    @property
    def peer_address(self) -> str:
        """Dotted IPv4 address."""
        ...

    @property
    def peer_port(self) -> int:
        """TCP port; 0: this member has no peer server."""
        ...


class View(Protocol):
    """A host path, as the server sees it; called in the loop's thread."""

    def adopt(self, connection: Connection, greeting: Greeting) -> None:
        """Take over a connection of a member; raise PeerRefusedError otherwise."""
        ...

    def close(self) -> None:
        """Give up all connections."""
        ...


@dataclass(frozen=True)
class JobPlace:
    """Whom this server serves."""

    job: int
    worker_id: int


@final
class PeerServer:
    """Serves one session over one listening TCP socket, in one thread.

    Open it before joining, as the port is part of the greeting to the controller; strangers are
    refused and counted in `counters`. `token` is a secret that all workers of the job hold.
    """

    def __init__(
        self,
        address: str,
        port: int = 0,
        *,
        token: str = "",
        results: RetainedResults | None = None,
    ) -> None:
        self.address = address
        self.token = token
        self.results = results or RetainedResults()
        """What other members may fetch."""
        self.counters: Counter[str] = Counter()
        """Connections by fate: accepted, refused_*, served results."""
        self.place: JobPlace | None = None
        """Job number and worker id, once the job is entered."""
        self._lock = threading.Lock()
        self._is_closed = False
        self._listener = self._listen(address, port)
        self.port: int = self._listener.getsockname()[1]
        """Where it listens."""
        self._peers: dict[InboundPeer, None] = {}  # oldest first
        self._views: dict[int, View] = {}
        self._newest_generation = 0
        self.loop = EventLoop("switchfold-peers")
        """The thread that serves; host paths run in it too."""
        self.results.on_put(self._announce_result)
        self.loop.run(lambda: self.loop.watch(self._listener, selectors.EVENT_READ, self))

    @staticmethod
    def _listen(address: str, port: int) -> socket.socket:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((address, port))
            listener.listen(MAX_INBOUND)
            listener.setblocking(False)
        except OSError as error:
            listener.close()
            raise AddressUnreachableError(
                f"cannot listen for other workers at {address}:{port}: {error}; choose an address"
                " of this host"
            ) from error
        return listener

    def enter_job(self, job: int, worker_id: int) -> None:
        """Serve the members of this job from now on; who came earlier has waited."""
        self.place = JobPlace(job, worker_id)
        self.loop.run(self._review)

    def fetch_result(
        self, member: PeerAddress, tensor: int, timeout_s: float = 5.0
    ) -> RetainedResult:
        """Fetch a tensor's result from another member, which may still have to complete it.

        Blocks, in the caller's thread. Raises ResultForgottenError, ResultTimeoutError,
        PeerUnreachableError, PeerRefusedError, PeerProtocolError, or PeerClosedError after `close`.
        """
        assert self.place is not None, "enter_job comes first"
        assert not self.loop.is_own_thread, "the answer comes in the loop's thread"
        fetch = Fetch(
            self.loop,
            (member.peer_address, member.peer_port),
            Greeting(
                self.place.job,
                self._newest_generation,
                self.place.worker_id,
                member.worker_id,
                Purpose.FETCH,
            ),
            tensor,
            timeout_s=timeout_s,
            source=self.address,
            token=self.token,
        )
        return fetch.result()

    def close(self) -> None:
        """Close all connections and end the thread; a second call does nothing.

        Waits at most LINGER_S for the last lanes of closed host paths to arrive.
        """
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        if not self.loop.is_own_thread:
            self.loop.wait_for_lingering(LINGER_S)
        self.loop.stop(self._close_sockets)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # What follows runs in the loop's thread.

    def add_view(self, generation: int, view: View) -> None:
        """Give the connections of a generation to `view`, those that wait for it too."""
        self._views[generation] = view
        self._newest_generation = max(self._newest_generation, generation)
        self._review()

    def remove_view(self, generation: int, view: View) -> None:
        """Refuse the connections of this generation from now on."""
        if self._views.get(generation) is view:
            del self._views[generation]

    def view(self, generation: int) -> View | None:
        """Return the view of a generation."""
        return self._views.get(generation)

    def is_over(self, generation: int) -> bool:
        """Return whether a view of this generation will not come (again)."""
        return generation <= self._newest_generation and generation not in self._views

    def forget(self, peer: InboundPeer) -> None:
        """Learn that a connection is closed, or that a view took it over."""
        self._peers.pop(peer, None)

    def on_ready(self, events: int) -> None:
        """Accept connections."""
        while True:
            try:
                sock, address = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                # Of one connection (aborted), or of the process (too many files): the next
                # attempt will tell.
                self.counters["refused_accept"] += 1
                _logger.warning("cannot accept a connection: %s", error)
                return
            self.counters["accepted"] += 1
            if len(self._peers) >= MAX_INBOUND:
                self._make_room()
            self._peers[InboundPeer(self, sock, address)] = None

    def _make_room(self) -> None:
        """Close the oldest stranger, so that silent ones cannot keep members out."""
        oldest = next((peer for peer in self._peers if not peer.is_known), None)
        if oldest is None:
            oldest = next(iter(self._peers))
        self.counters["refused_full"] += 1
        oldest.connection.close()
        self.forget(oldest)

    def _review(self) -> None:
        for peer in list(self._peers):
            peer.review()

    def _announce_result(self) -> None:
        with contextlib.suppress(PeerError):  # the server is closed: nobody waits any more
            self.loop.post(self._review)

    def _close_sockets(self) -> None:
        # First: who loses a connection calls here, and nobody may seem to answer.
        self.loop.watch(self._listener, 0, self)
        self._listener.close()
        for view in list(self._views.values()):
            view.close()
        for peer in list(self._peers):
            peer.connection.close()
