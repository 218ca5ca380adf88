# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The listening end of a worker: other members connect here to fetch results and to reduce."""

from __future__ import annotations

import contextlib
import errno
import logging
import selectors
import socket
import threading
from collections import Counter
from dataclasses import dataclass
from typing import Protocol, final

from ..closable import Closable
from ..credentials import Credentials
from ..errors import AddressUnreachableError, PeerError, PortTakenError, TransportError
from ..transports.sockets import open_udp
from .connection import LINGER_S, Connection
from .event_loop import EventLoop
from .fetch import Fetch
from .frames import Greeting, Purpose
from .handshake import PeerCall
from .inbound import InboundPeer
from .results import RetainedResult, RetainedResults

MAX_INBOUND = 512
"""Most connections that no view has taken over; beyond it, the oldest stranger's is closed."""
ACCEPTS = 64
"""Most connections that one turn of the loop accepts: a flood of them must not hold up sums."""
PORT_TRIES = 100
"""Ports that are tried if one has to be free for UDP as well."""
NO_FILES_S = 0.5
"""Pause before the next attempt if the process has no file left, and no stranger to close."""
_NO_FILES = (errno.EMFILE, errno.ENFILE)
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


class PeerView(Protocol):
    """Takes the connections of one generation; called in the loop's thread."""

    def adopt(self, connection: Connection, greeting: Greeting) -> None:
        """Take over a connection; raise PeerRefusedError if it is not a member's."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...


@dataclass(frozen=True)
class JobPlace:
    """The job and the worker of a server."""

    job: int
    worker_id: int


@final
class PeerServer(Closable):
    """Serves one session over one listening TCP socket, in one thread.

    Open it before joining, as the port is part of the join request. Strangers are refused and
    counted in `counters`. `token` is a secret that all workers of the job hold. With `credentials`,
    all connections use TLS, and callers must show a worker's certificate. Port 0 takes any free
    port, whose number is free for UDP at `udp_address` as well, if that is not empty.
    """

    def __init__(
        self,
        address: str,
        port: int = 0,
        *,
        token: str = "",
        credentials: Credentials | None = None,
        results: RetainedResults | None = None,
        udp_address: str = "",
    ) -> None:
        self.address = address
        self.token = token
        self.credentials = credentials
        self.results = results or RetainedResults()
        """Results that other members may fetch."""
        self.counters: Counter[str] = Counter()
        """Connections by fate: accepted, refused_*, served results."""
        self.place: JobPlace | None = None
        """Job number and worker id, once the job is entered."""
        self._lock = threading.Lock()
        self._is_closed = False
        self._listener = self._listen(address, port)
        if port == 0 and udp_address:
            self._move_to_udp_port(udp_address)
        self.port: int = self._listener.getsockname()[1]
        """TCP port on which it listens."""
        self._peers: dict[InboundPeer, None] = {}  # oldest first
        self._views: dict[int, PeerView] = {}
        self._newest_generation = 0
        self.loop = EventLoop("switchfold-peers")
        """The thread that serves; host allreduces run in it, too."""
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

    def _move_to_udp_port(self, udp_address: str) -> None:
        """Listen at other ports until one is free for UDP; raise what the last one raises."""
        for tries_left in reversed(range(PORT_TRIES)):
            try:
                open_udp(udp_address, self._listener.getsockname()[1]).close()
            except PortTakenError:
                taken = self._listener  # open until there is another, which has another port
                if not tries_left:
                    taken.close()
                    raise
                with contextlib.closing(taken):
                    self._listener = self._listen(self.address, 0)
            except TransportError:
                self._listener.close()
                raise
            else:
                return

    def enter_job(self, job: int, worker_id: int) -> None:
        """Serve the members of this job from now on, and those whose connections wait for it."""
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
        greeting = Greeting(
            self.place.job,
            self._newest_generation,
            self.place.worker_id,
            member.worker_id,
            Purpose.FETCH,
        )
        call = self.call((member.peer_address, member.peer_port), greeting)
        return Fetch(self.loop, call, tensor, timeout_s=timeout_s).result()

    def call(self, address: tuple[str, int], greeting: Greeting) -> PeerCall:
        """Return a call of another worker's server from this one's address."""
        return PeerCall(
            address=address,
            source=self.address,
            greeting=greeting,
            token=self.token,
            credentials=self.credentials,
        )

    def close(self) -> None:
        """Close all connections and end the thread; a second call does nothing.

        Waits at most LINGER_S for the last values of closed host allreduces to arrive.
        """
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        if not self.loop.is_own_thread:
            self.loop.wait_for_lingering(LINGER_S)
        self.loop.stop(self._close_sockets)

    # The methods below run in the loop's thread.

    def add_view(self, generation: int, view: PeerView) -> None:
        """Give the connections of a generation to `view`, including those that wait for it."""
        self._views[generation] = view
        self._newest_generation = max(self._newest_generation, generation)
        self._review()

    def remove_view(self, generation: int, view: PeerView) -> None:
        """Refuse the connections of this generation from now on."""
        if self._views.get(generation) is view:
            del self._views[generation]

    def view(self, generation: int) -> PeerView | None:
        """Return the view of a generation."""
        return self._views.get(generation)

    def is_over(self, generation: int) -> bool:
        """Return whether no view of this generation will come any more."""
        return generation <= self._newest_generation and generation not in self._views

    def forget(self, peer: InboundPeer) -> None:
        """Learn that a connection is closed, or that a view took it over."""
        self._peers.pop(peer, None)

    def on_ready(self, events: int) -> None:
        """Accept connections."""
        for _ in range(ACCEPTS):
            try:
                sock, address = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self.counters["refused_accept"] += 1
                if error.errno in _NO_FILES and self._close_oldest(is_known=False):
                    continue
                _logger.warning("cannot accept a connection: %s", error)
                if error.errno in _NO_FILES:  # the next event would come at once
                    self.loop.watch(self._listener, 0, self)
                    self.loop.call_later(NO_FILES_S, self._listen_on)
                return
            self.counters["accepted"] += 1
            if len(self._peers) >= MAX_INBOUND and not self._close_oldest(is_known=False):
                self._close_oldest(is_known=True)
            self._peers[InboundPeer(self, sock, address)] = None

    def _listen_on(self) -> None:
        if not self._is_closed:
            self.loop.watch(self._listener, selectors.EVENT_READ, self)

    def _close_oldest(self, *, is_known: bool) -> bool:
        """Close the oldest connection of a stranger, or of a member; return whether there is one.

        Silent strangers must not keep members out.
        """
        oldest = next((peer for peer in self._peers if peer.is_known == is_known), None)
        if oldest is None:
            return False
        self.counters["refused_full"] += 1
        oldest.drop()
        return True

    def _review(self) -> None:
        for peer in list(self._peers):
            peer.review()

    def _announce_result(self) -> None:
        with contextlib.suppress(
            PeerError
        ):  # the server is closed, and so are the waiting connections
            self.loop.post(self._review)

    def _close_sockets(self) -> None:
        # The listener first: a member that loses a connection calls here, and none may be accepted.
        self.loop.watch(self._listener, 0, self)
        self._listener.close()
        for view in list(self._views.values()):
            view.close()
        for peer in list(self._peers):
            peer.connection.close()
