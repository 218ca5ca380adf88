# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The tensors of a session in their order, and the view that they run in.

Tensors start, and complete, in the order of their numbers. One completes by the streams of its
path; by the retained result of another worker; or by an error that all workers share.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from itertools import chain

from ..allgather import AllgatherTask
from ..control.view import Endpoint, JobView
from ..errors import HostlibError, RoundClosedError, SessionBrokenError
from ..hosts.host_reducer import HostReducer
from ..options import SessionOptions
from ..peers import PeerServer
from ..slots.datagram_ring import Words
from ..slots.slot_probe import PROBES_SENT
from ..slots.switch_reducer import SwitchReducer
from ..slots.wire import datagram_bytes
from ..transports.base import Transport
from .allreduce_task import AllreduceTask, Quantizers
from .array_pool import ArrayPool
from .reducer import Reducer, Task
from .result_fetcher import Outcome, Request, ResultFetcher
from .view_change import Commit

_logger = logging.getLogger(__name__)


class ViewRunner:
    """Used by the I/O thread alone, but for `statistics`, `view` and `num_completed`."""

    view: JobView

    def __init__(
        self,
        transport: Transport,
        options: SessionOptions,
        peers: PeerServer | None,
        *,
        first_tensor: int,
        wake: Callable[[], None],
        post: Callable[[Callable[[], None]], None],
    ) -> None:
        self.counters: Counter[str] = Counter()
        """Received datagrams that were no awaited results by cause, and probes sent."""
        self.reducer: Reducer | None = None
        """The view at work; None while it is given up and the next one not known."""
        self.num_gathers = 0
        """Allgathers under way: sending may end them, not only what comes."""
        self.num_completed = first_tensor
        """Tensors of the job that are complete, from its first; they complete in order."""
        self._transport = transport
        self._options = options
        self._peers = peers
        self._pool = ArrayPool()
        self._wake = wake
        self._post = post
        self._fetcher: ResultFetcher | None = None
        if peers is not None:
            self._fetcher = ResultFetcher(peers, self._on_fetched)
        self._fetching: dict[int, Request] = {}  # by tensor number
        self._arrived: deque[tuple[Task, Outcome]] = deque()
        self._source_worker = -1
        self._is_retention_due = True
        self._remote: Endpoint | None = None
        self._retired: Counter[str] = Counter()
        self._queued: deque[Task] = deque()  # not started
        self._started: deque[Task] = deque()  # not complete
        self._waiting: deque[AllreduceTask] = deque()  # of these, not in the value stream yet

    @property
    def is_open(self) -> bool:
        """Whether the transport leads to a switch."""
        return self._remote is not None

    @property
    def num_started(self) -> int:
        """Tensors of the job that were started, from its first."""
        return self.num_completed + len(self._started)

    @property
    def is_behind(self) -> bool:
        """Whether results from before the view at work are still lacking here."""
        reducer = self.reducer
        if reducer is None or not self._started:
            return False
        return self._started[0].number < reducer.first_tensor

    @property
    def unfinished(self) -> Iterable[Task]:
        """All tensors without a result."""
        return chain(self._started, self._queued)

    def queue(self, tasks: Iterable[Task]) -> None:
        """Append tensors."""
        self._queued.extend(tasks)

    def stop(self) -> None:
        """Give the view up: tensors without a result go back to the queue."""
        if self.reducer is not None:
            self._retire(self.reducer)
            self.reducer = None
        self._fetching.clear()
        self._arrived.clear()
        self._waiting.clear()
        self.num_gathers = 0
        while self._started:
            task = self._started.pop()
            task.has_begun = False
            self._queued.appendleft(task)

    def enter(self, commit: Commit) -> None:
        """Run in a view from now on; what ran in the one before is complete, or starts anew."""
        if commit.boundary < self.num_completed:
            raise SessionBrokenError(
                f"the job goes back to tensor {commit.boundary + 1}, but {self.num_completed}"
                " are complete here; join the job again"
            )
        self.stop()
        view = commit.view
        if view.is_on_switch and view.switch != self._remote:
            self._transport.open(view.switch, datagram_bytes(view.values_per_packet))
            self._remote = view.switch
        self.view = view
        self._source_worker = commit.source_worker
        # Others may still lack results of the view before, as many as that one allows, until a
        # tensor of this one shows that they are here.
        self._is_retention_due = True
        self.reducer = self._open_reducer(commit.boundary)

    def _open_reducer(self, first_tensor: int) -> Reducer:
        if self.view.is_on_switch:
            return SwitchReducer(
                self.view,
                self._transport,
                self._options,
                self.counters,
                first_tensor=first_tensor,
            )
        if self._peers is None:
            raise SessionBrokenError(
                f"job {self.view.job} moves to the host path, but this session has no peer server"
            )
        return HostReducer(self.view, self._peers, self._wake, first_tensor=first_tensor)

    def _limit_retention(self) -> None:
        """Keep results as long as a member may lack them."""
        self._is_retention_due = False
        if self._peers is None:
            return
        view = self.view
        if view.is_on_switch and not view.straggler.allow_partial:
            # Who contributes to a slot again holds the slot's result before: so nobody is further
            # behind than all slots.
            self._peers.results.set_limits(limit_chunks=view.slot_count, limit_bytes=None)
        else:
            limit_bytes = self._options.retain_bytes
            self._peers.results.set_limits(limit_chunks=None, limit_bytes=limit_bytes)

    def start(self, limit: int | None, quantizers: Quantizers) -> None:
        """Start queued tensors below `limit`, and move those that can to the value stream."""
        reducer = self.reducer
        if reducer is None:
            return
        while self._queued and (limit is None or self._queued[0].number < limit):
            task = self._queued[0]
            if task.number >= reducer.first_tensor and self.is_behind:
                break  # the others forget what is older once they have a tensor of this view
            self._begin(task)
            self._started.append(self._queued.popleft())
            if task.number < reducer.first_tensor:
                self._fetch(task)
            else:
                self._enqueue(task, reducer)
        self._load_arrived(reducer, quantizers)
        self._start_values(reducer, quantizers)

    def _begin(self, task: Task) -> None:
        """Begin a tensor in this view."""
        retains = self._peers is not None
        if isinstance(task, AllgatherTask):
            task.begin(self.view, retains=retains)
        else:
            task.begin(self.view, retains=retains, empty=self._pool.empty)

    def _enqueue(self, task: Task, reducer: Reducer) -> None:
        """Give a tensor that has begun to the reducer."""
        if isinstance(task, AllgatherTask):
            self.num_gathers += 1
            if reducer.multicast is not None:
                reducer.multicast.enqueue(task, time.monotonic())
            else:
                task.refuse()  # on all workers alike
            return
        if task.exponents is not None:
            reducer.exponents.enqueue(task.exponents)
        self._waiting.append(task)

    def _load_arrived(self, reducer: Reducer, quantizers: Quantizers) -> None:
        """Take results that other workers have retained; raise the error of a fetch."""
        while self._arrived:
            task, outcome = self._arrived.popleft()
            if isinstance(outcome, HostlibError):
                raise outcome
            if isinstance(task, AllgatherTask):
                task.load(outcome)
                continue
            if task.exponents is not None:
                reducer.exponents.abandon(task.exponents)
            if task.is_in_values and task.source is not None:
                reducer.values.abandon(task.source)
            task.load(outcome, quantizers)

    def _start_values(self, reducer: Reducer, quantizers: Quantizers) -> None:
        """Move tensors to the value stream, in their order."""
        while self._waiting:
            task = self._waiting[0]
            if not task.is_settled and task.source is None:
                assert task.exponents is not None
                if not reducer.exponents.is_finished(task.exponents):
                    return
                task.quantize_with(quantizers)
            self._waiting.popleft()
            task.is_in_values = True
            source = task.source
            if source is None:
                continue  # an error that all workers share: the tensor has no values
            reducer.values.enqueue(source)
            if task.is_settled:
                reducer.values.abandon(source)
            elif source.withheld is not None:
                # A result that is lost on its way down cannot be asked for without contributing.
                self._fetch(task, is_optional=True)

    def take(self, words: Words, now_s: float) -> bool:
        """Take datagrams; return whether there were results among them."""
        reducer = self.reducer
        assert reducer is not None
        arrivals = reducer.take(words, now_s)
        if not self.view.is_on_switch:
            self.counters["generation"] += len(words)
        for tensor_id in arrivals.behind:
            for task in self._started:
                if task.wire_id == tensor_id:
                    self._fetch(task)
        return arrivals.results > 0

    def finish(self) -> bool:
        """Complete tensors in their order; return whether there were any."""
        reducer = self.reducer
        assert reducer is not None
        has_finished = False
        while self._started:
            task = self._started[0]
            is_elsewhere = task.number < reducer.first_tensor
            if not _is_complete(task, reducer, is_elsewhere=is_elsewhere):
                break
            self._fetching.pop(task.number, None)
            if self._is_retention_due and not is_elsewhere:
                self._limit_retention()
            if self._peers is not None:
                self._peers.results.put(task.retained_result())
            self._started.popleft()
            self.num_completed += 1
            if isinstance(task, AllgatherTask) and not is_elsewhere:
                self.num_gathers -= 1
            task.finish()
            has_finished = True
        return has_finished

    def fetch_gathers(self) -> None:
        """Ask for the allgathers under way elsewhere too: the view is to be left.

        Who has all blocks leaves it at once, and sends nothing again to those who lack some.
        """
        for task in self._started:
            if isinstance(task, AllgatherTask) and not task.is_asked_for:
                task.is_asked_for = True
                self._fetch(task, is_optional=True)

    def _fetch(self, task: Task, *, is_optional: bool = False) -> None:
        """Get a tensor's result from another worker: its rounds here are over.

        With `is_optional` the result may still come by the streams.
        """
        request = self._fetching.get(task.number)
        if task.is_settled or (request is not None and request.is_optional <= is_optional):
            return
        others = [
            member
            for member in self.view.members
            if member.peer_port and member.worker_id != self.view.worker_id
        ]
        others.sort(key=lambda member: member.worker_id != self._source_worker)
        if self._fetcher is None or not others:
            if is_optional:
                return
            raise RoundClosedError(
                f"tensor {task.tensor_id}: the job went on without this worker, and no other"
                " worker serves results; fetch the model from another worker and join again"
            )
        request = Request(
            tensor=task.number,
            members=others,
            deadline_s=task.deadline_s,
            is_optional=is_optional,
        )
        self._fetching[task.number] = request
        self._fetcher.request(request)

    def _on_fetched(self, request: Request, outcome: Outcome) -> None:
        """Take a result in the fetcher's thread."""

        def take() -> None:
            # A request of a view that was given up since is none any more.
            if self._fetching.get(request.tensor) is request:
                del self._fetching[request.tensor]
                if request.is_optional and isinstance(outcome, HostlibError):
                    _logger.info("result of tensor %d not fetched: %s", request.tensor, outcome)
                    return
                for task in self._started:
                    if task.number == request.tensor and not task.is_settled:
                        self._arrived.append((task, outcome))

        self._post(take)

    def _retire(self, reducer: Reducer) -> None:
        self._retired.update(_stream_counts(reducer))
        reducer.close()

    def statistics(self) -> Counter[str]:
        """Return packets by stream over all views, and what was refused by cause."""
        counts = Counter(self._retired)
        reducer = self.reducer
        if reducer is not None:
            counts.update(_stream_counts(reducer))
        counts[PROBES_SENT] += 0
        for cause, number in list(self.counters.items()):
            counts[cause if cause == PROBES_SENT else f"refused_{cause}"] += number
        return counts

    def close(self) -> None:
        """Give everything up."""
        if self.reducer is not None:
            self.reducer.close()
        if self._fetcher is not None:
            self._fetcher.close()


def _is_complete(task: Task, reducer: Reducer, *, is_elsewhere: bool) -> bool:
    """Whether a started tensor can end; one that is elsewhere has no part in the path."""
    if isinstance(task, AllgatherTask):
        return task.is_settled
    if not task.is_settled:
        if is_elsewhere or not task.is_in_values or task.source is None:
            return False
        return reducer.values.is_finished(task.source)
    # Its chunks must have their place in the sequence first.
    return is_elsewhere or task.is_in_values


def _stream_counts(reducer: Reducer) -> Counter[str]:
    counts: Counter[str] = Counter()
    for name, stream in (("exponent", reducer.exponents), ("value", reducer.values)):
        for key, number in vars(stream.counters).items():
            counts[f"{name}_packets_{key}"] = number
    if reducer.multicast is not None:
        counts.update(reducer.multicast.counts)
    return counts
