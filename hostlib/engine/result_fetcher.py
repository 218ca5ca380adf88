# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Fetching the results that this worker missed from workers that retain them."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from ..control.view import Member
from ..errors import (
    HostlibError,
    PeerError,
    PeerUnreachableError,
    ResultForgottenError,
    ResultTimeoutError,
    RoundClosedError,
)
from ..guarded_thread import thread_failure
from ..peers import PeerServer, RetainedResult

ATTEMPT_S = 1.0
"""How long one member may take: to answer, or to complete the tensor itself."""
UNREACHABLE_S = 3.0
"""How long members that do not answer are asked again."""
PAUSE_S = 0.02
"""Pause before all members are asked again, if none has the result yet or none answers."""

FetchAnswer = RetainedResult | HostlibError
OnFetched = Callable[["Request", FetchAnswer], None]


@dataclass(kw_only=True, eq=False)
class Request:
    """One result to fetch."""

    tensor: int
    """Number in the job, from 0."""
    members: Sequence[Member]
    """The members to ask, in this order."""
    deadline_s: float
    """When to give up (monotonic clock)."""
    is_optional: bool = False
    """Whether the result may also come by the streams."""
    unreached: frozenset[int] = frozenset()
    """Workers that have not answered for UNREACHABLE_S, while another one has, but lacks the
    result: only they may have it, and the network is not to blame. Set by the fetcher."""


@final
class ResultFetcher:
    """Fetches one result after the other in a thread of its own; started at the first request."""

    def __init__(self, server: PeerServer, on_fetched: OnFetched) -> None:
        """`on_fetched` is called in the fetcher's thread with the result, or with an error."""
        self._server = server
        self._on_fetched = on_fetched
        self._requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_closing = threading.Event()

    def request(self, request: Request) -> None:
        """Queue a request; from one thread only."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="switchfold-fetch", daemon=True)
            self._thread.start()
        self._requests.put(request)

    def close(self) -> None:
        """Give up all requests; the thread ends within ATTEMPT_S."""
        self._is_closing.set()
        self._requests.put(None)

    def _run(self) -> None:
        while not self._is_closing.is_set():
            request = self._requests.get()
            if request is not None:
                self._on_fetched(request, self._answer(request))

    def _answer(self, request: Request) -> FetchAnswer:
        try:
            return self._fetch(request)
        except BaseException as cause:  # a defect: later requests are answered, too
            return thread_failure(cause)

    def _fetch(self, request: Request) -> FetchAnswer:
        give_up_s = time.monotonic() + UNREACHABLE_S
        what = f"tensor {request.tensor + 1}: the job went on without this worker"
        while not self._is_closing.is_set():
            errors: list[PeerError] = []
            unreached: set[int] = set()
            for member in request.members:
                left_s = request.deadline_s - time.monotonic()
                if left_s <= 0 or self._is_closing.is_set():
                    break
                try:
                    return self._server.fetch_result(
                        member, request.tensor, timeout_s=min(ATTEMPT_S, left_s)
                    )
                except PeerError as error:
                    errors.append(error)
                    if isinstance(error, PeerUnreachableError):
                        unreached.add(member.worker_id)
            causes = "; ".join(str(error) for error in errors)
            has_hope = any(isinstance(error, ResultTimeoutError) for error in errors)
            if time.monotonic() >= give_up_s:
                request.unreached = frozenset(unreached if has_hope else ())
            else:
                has_hope |= any(not isinstance(error, ResultForgottenError) for error in errors)
            if time.monotonic() >= request.deadline_s or not has_hope:
                return RoundClosedError(
                    f"{what}, and no other worker has its result ({causes}); fetch the model from"
                    " another worker and join the job again"
                )
            self._is_closing.wait(PAUSE_S)
        return RoundClosedError(f"{what}; the session was closed")
