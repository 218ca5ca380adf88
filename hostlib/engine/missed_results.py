# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The results that this worker misses in a view, and asks other workers for."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import final

from ..control.view import JobView
from ..errors import HostlibError, RoundClosedError
from ..peers import PeerServer
from .reducer import Task
from .result_fetcher import FetchAnswer, Request, ResultFetcher

_logger = logging.getLogger(__name__)


@final
class MissedResults:
    """Asks for results, and keeps those that arrived; used by the I/O thread alone."""

    def __init__(
        self, peers: PeerServer | None, post: Callable[[Callable[[], None]], None]
    ) -> None:
        """Without `peers` no result can be asked for; `post` has the I/O thread call something."""
        self._post = post
        self._fetcher: ResultFetcher | None = None
        if peers is not None:
            self._fetcher = ResultFetcher(peers, self._on_fetched)
        self._requests: dict[int, tuple[Request, Task]] = {}  # by tensor number
        self._arrived: deque[tuple[Task, FetchAnswer]] = deque()

    def ask_for(
        self, task: Task, view: JobView, source_worker: int, *, is_optional: bool = False
    ) -> None:
        """Get a tensor's result from another member, from `source_worker` first.

        With `is_optional` the result may still come by the streams. Without it, this worker's
        rounds are over: raises RoundClosedError if there is no member to ask.
        """
        number = task.number
        known = self._requests.get(number)
        if task.is_settled or (known is not None and known[0].is_optional <= is_optional):
            return
        others = [
            member
            for member in view.members
            if member.peer_port and member.worker_id != view.worker_id
        ]
        others.sort(key=lambda member: member.worker_id != source_worker)
        if self._fetcher is None or not others:
            if is_optional:
                return
            raise RoundClosedError(
                f"tensor {task.tensor_id}: the job went on without this worker, and no other"
                " worker serves results; fetch the model from another worker and join again"
            )
        request = Request(
            tensor=number,
            members=others,
            deadline_s=task.deadline_s,
            is_optional=is_optional,
        )
        self._requests[number] = request, task
        self._fetcher.request(request)

    def _on_fetched(self, request: Request, answer: FetchAnswer) -> None:
        """Take a result in the fetcher's thread."""
        self._post(lambda: self._note_arrived(request, answer))

    def _note_arrived(self, request: Request, answer: FetchAnswer) -> None:
        known = self._requests.get(request.tensor)
        if known is None or known[0] is not request:
            return  # asked for in a view that was left since, or not needed any more
        del self._requests[request.tensor]
        if request.is_optional and isinstance(answer, HostlibError):
            _logger.info("result of tensor %d not fetched: %s", request.tensor, answer)
        elif not known[1].is_settled:
            self._arrived.append((known[1], answer))

    @property
    def unreached(self) -> frozenset[int]:
        """Workers that alone may have a result of the view at work, and answer nobody."""
        needed = (request for request, _ in self._requests.values() if not request.is_optional)
        return frozenset[int]().union(*(request.unreached for request in needed))

    def arrived(self) -> Iterator[tuple[Task, FetchAnswer]]:
        """Return the results that have arrived since the last call, or errors in their place."""
        while self._arrived:
            yield self._arrived.popleft()

    def forget(self, task: Task) -> None:
        """Do not wait any more for the result of a tensor that is complete."""
        self._requests.pop(task.number, None)

    def forget_all(self) -> None:
        """Do not wait any more for results of a view that is left."""
        self._requests.clear()
        self._arrived.clear()

    def close(self) -> None:
        """Give up all requests."""
        if self._fetcher is not None:
            self._fetcher.close()
