# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Changes of the view as one worker sees them: what was asked, answered, and entered.

The controller repeats what may have been lost with a stream; the same question gets the same
answer, and the session hears of each change once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from ..control.controller_seam import ViewListener
from ..control.session_api import session_pb2 as api
from ..control.view import JobView
from ..control.view_message import decode_view
from ..errors import HostlibError


class ViewChanges:
    """Stands between the stream and the session; `send` must not block."""

    def __init__(self, send: Callable[[api.WorkerMessage], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._listener: ViewListener | None = None
        self._missed: list[api.ControllerMessage] = []
        self._view: JobView | None = None
        self._proposed = 0
        self._position: int | None = None
        self._entered = 0

    @property
    def view(self) -> JobView | None:
        """The view that was committed last."""
        return self._view

    @property
    def proposed(self) -> int:
        """Generation of a proposal whose commit has not come, 0 if there is none."""
        with self._lock:
            is_open = self._view is not None and self._proposed > self._view.generation
            return self._proposed if is_open else 0

    def start(self, view: JobView) -> None:
        """Begin with the view of the join reply."""
        with self._lock:
            self._view = view
            self._entered = view.generation

    def listen(self, listener: ViewListener) -> None:
        """Tell `listener` from now on, and first what has come before."""
        while True:
            with self._lock:
                missed, self._missed = self._missed, []
                if not missed:
                    self._listener = listener
                    return
            for message in missed:
                self._handle(message, listener)

    def take(self, message: api.ControllerMessage) -> None:
        """Take a proposal, a commit or who is missing from the stream."""
        with self._lock:
            listener = self._listener
            if listener is None:
                self._missed.append(message)
                return
        self._handle(message, listener)

    def view_entered(self, generation: int) -> None:
        """Note and say that no view older than `generation` is used any more."""
        with self._lock:
            self._entered = max(self._entered, generation)
        self._send(_entered_message(generation))

    def _handle(self, message: api.ControllerMessage, listener: ViewListener) -> None:
        if message.HasField("view_proposal"):
            self._propose(message.view_proposal, listener)
            return
        if message.HasField("missing"):
            listener.on_missing(message.missing.generation, message.missing.missing_workers)
            return
        try:
            self._commit(message.view_commit, listener)
        except HostlibError as error:
            listener.fail(error)

    def _propose(self, proposal: api.ViewProposal, listener: ViewListener) -> None:
        generation = proposal.generation
        with self._lock:
            is_old = self._view is not None and generation <= self._view.generation
            if is_old or generation < self._proposed:
                return
            is_new = generation > self._proposed
            self._proposed = generation
            if is_new:
                self._position = None
            position = self._position
        if is_new:
            listener.on_view_proposal(
                generation, proposal.is_abort, partial(self._reply, generation)
            )
        elif position is not None:
            self._send(_ready_message(generation, position))

    def _reply(self, generation: int, position: int) -> None:
        with self._lock:
            if generation != self._proposed:
                return
            self._position = position
        self._send(_ready_message(generation, position))

    def _commit(self, commit: api.ViewCommit, listener: ViewListener) -> None:
        generation = commit.view.generation
        with self._lock:
            old = self._view
            assert old is not None, "no change comes before the join reply"
            view = None
            if generation > old.generation:
                view = self._view = decode_view(
                    commit.view,
                    job=old.job,
                    worker_id=old.worker_id,
                    values_per_packet=old.values_per_packet,
                )
                self._proposed = max(self._proposed, generation)
            has_entered = self._entered >= generation
        if view is not None:
            listener.on_view_commit(view, commit.boundary, commit.source_worker)
        elif has_entered:
            self._send(_entered_message(generation))


def _ready_message(generation: int, position: int) -> api.WorkerMessage:
    return api.WorkerMessage(view_ready=api.ViewReady(generation=generation, position=position))


def _entered_message(generation: int) -> api.WorkerMessage:
    return api.WorkerMessage(view_entered=api.ViewEntered(generation=generation))
