# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Changes the view of sessions as a controller would, without a connection."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from loopback import LOOPBACK
from switchfold.hostlib.control.controller_seam import ViewListener
from switchfold.hostlib.control.submitted_tensor import SubmittedTensors
from switchfold.hostlib.control.view import JobView, Member
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.peers import PeerServer
from switchfold.hostlib.session import Session
from switchfold.hostlib.straggler import StragglerPolicy
from switchfold.hostlib.transports.base import Transport

QUICK = SessionOptions(
    timeout_s=120.0, min_rto_s=0.01, initial_rto_s=0.02, max_rto_s=0.1, coalesce_s=0
)
"""Options with early retransmissions, and a timeout that no busy machine reaches."""
LIMIT_S = 60.0


class Fabric(Protocol):
    """Where views are installed; the fake switch is one."""

    def install(
        self,
        generation: int,
        members: tuple[int, ...],
        trees: dict[int, int],
        straggler: StragglerPolicy = ...,
    ) -> None: ...

    def remove(self, generation: int) -> None: ...

    def view(self, worker_id: int) -> JobView: ...

    def transport(self, worker_id: int) -> Transport: ...


class DriverLink:
    """The link of one session: it keeps what the session reports."""

    def __init__(self, boundary: int = 0) -> None:
        self.boundary = boundary
        self.listener: ViewListener | None = None
        self.ready: list[tuple[int, int]] = []
        self.entered: list[int] = []
        self.reports: list[tuple[int, list[int]]] = []
        self.submitted: SubmittedTensors | None = None
        self.position: int | None = None
        self.is_closed = False
        self.changed = threading.Condition()

    def listen(self, listener: ViewListener) -> None:
        self.listener = listener

    @property
    def engine(self) -> ViewListener:
        """The session's listener."""
        assert self.listener is not None
        return self.listener

    def barrier(self, name: str, timeout_s: float) -> None: ...

    def view_ready(self, generation: int, position: int) -> None:
        with self.changed:
            self.ready.append((generation, position))
            self.changed.notify_all()

    def wait_ready(self, generation: int) -> int:
        """Wait for the answer to a proposal; return the position."""
        with self.changed:
            assert self.changed.wait_for(lambda: generation in dict(self.ready), LIMIT_S)
            return dict(self.ready)[generation]

    def view_entered(self, generation: int) -> None:
        with self.changed:
            self.entered.append(generation)
            self.changed.notify_all()

    def stalled(
        self,
        generation: int,
        missing_workers: Sequence[int],
        submitted: SubmittedTensors,
        silent_s: float = 0.0,
        silent_tree: int = 0,
    ) -> None:
        with self.changed:
            self.submitted = submitted
            self.reports.append((generation, list(missing_workers)))
            self.changed.notify_all()

    def close(self, position: int | None = None) -> None:
        self.position = position
        self.is_closed = True


class ViewDriver:
    """A job of sessions over a fabric, and what a controller does with it."""

    def __init__(
        self, fabric: Fabric, members: Sequence[int], options: SessionOptions = QUICK
    ) -> None:
        self.fabric = fabric
        self.options = options
        self.sessions: dict[int, Session] = {}
        self.links: dict[int, DriverLink] = {}
        self.peers: dict[int, PeerServer] = {}
        self.generation = fabric.view(members[0]).generation
        self.straggler = fabric.view(members[0]).straggler
        for worker_id in members:
            self.peers[worker_id] = PeerServer(LOOPBACK)
        for worker_id in members:
            self._open(worker_id, fabric.view(worker_id), 0)

    def _open(self, worker_id: int, view: JobView, boundary: int) -> None:
        self.links[worker_id] = DriverLink(boundary)
        self.sessions[worker_id] = Session(
            replace(view, members=self._members(view)),
            self.fabric.transport(worker_id),
            self.options,
            self.links[worker_id],
            self.peers[worker_id],
        )

    def _members(self, view: JobView) -> tuple[Member, ...]:
        return tuple(
            Member(
                worker_id=i,
                peer_address=self.peers[i].address,
                peer_port=self.peers[i].port,
            )
            for i in view.member_ids
        )

    def propose(self, *, is_abort: bool) -> dict[int, int]:
        """Propose the next view; return the positions of all sessions."""
        self.generation += 1
        for worker_id in self.sessions:
            self.links[worker_id].engine.propose(self.generation, is_abort=is_abort)
        return {i: self.links[i].wait_ready(self.generation) for i in self.sessions}

    def commit(
        self,
        positions: dict[int, int],
        trees: dict[int, int],
        *,
        joining: Sequence[int] = (),
    ) -> int:
        """Install and commit the view that was proposed; return its boundary."""
        source, boundary = max(positions.items(), key=lambda item: item[1])
        for worker_id in joining:
            self.peers[worker_id] = PeerServer(LOOPBACK)
        members = tuple(sorted({*positions, *joining}))
        # A view without trees is known by a tree that no worker uses.
        self.fabric.install(self.generation, members, trees or {9999: 2}, self.straggler)
        for worker_id in members:
            view = self.fabric.view(worker_id)
            view = replace(view, members=self._members(view))
            if not trees:
                view = replace(view, trees=())
            if worker_id in positions:
                self.links[worker_id].engine.commit(view, boundary, source)
            else:
                self._open(worker_id, view, boundary)
        return boundary

    def change(
        self,
        trees: dict[int, int],
        *,
        is_abort: bool = False,
        joining: Sequence[int] = (),
    ) -> int:
        """Propose and commit a view of all open sessions (and new ones); return the boundary."""
        return self.commit(self.propose(is_abort=is_abort), trees, joining=joining)

    def wait_entered(self) -> None:
        """Wait until all sessions have left the views before; then remove these."""
        deadline_s = time.monotonic() + LIMIT_S
        for worker_id, session in self.sessions.items():
            link = self.links[worker_id]
            with link.changed:
                assert link.changed.wait_for(
                    lambda i=worker_id: self.sessions[i].view.generation == self.generation,
                    deadline_s - time.monotonic(),
                ), f"worker {worker_id} stays in {session.view.generation}"
        for generation in range(self.generation - 5, self.generation):
            self.fabric.remove(generation)

    def kill(self, worker_id: int) -> None:
        """End a session without telling the others."""
        self.sessions.pop(worker_id).close()

    def close(self) -> None:
        for session in self.sessions.values():
            session.close()
