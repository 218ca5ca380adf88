# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The tensors of a session in their order, and the view that they run in.

Tensors start, and complete, in the order of their numbers. A tensor completes by the streams of its
reducer, by the retained result of another worker, or by an error that all workers share.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import final

from ..allgather import AllgatherTask
from ..control.controller_seam import ControllerLink
from ..control.submitted_tensor import MAX_REPORTED, SubmittedTensor
from ..control.view import Endpoint, JobView
from ..errors import HostlibError, SessionBrokenError
from ..hosts.host_reducer import HostReducer
from ..options import SessionOptions
from ..peers import PeerServer
from ..slots.slot_probe import PROBES_SENT
from ..slots.switch_reducer import SwitchReducer
from ..slots.wire import datagram_bytes
from ..transports.base import Transport, trees_transport
from .allreduce_task import AllreduceTask
from .array_pool import ArrayPool
from .deadlines import Deadlines
from .missed_results import MissedResults
from .reducer import Reducer, Task
from .view_change import Commit


@final
class ViewRunner:
    """Drives the reducer of the view at work; nothing else calls it.

    Used by the I/O thread alone. Other threads may read `statistics`, `round_trip_s`, `window`,
    `view` and `num_completed`.
    """

    view: JobView

    def __init__(
        self,
        transport: Transport,
        options: SessionOptions,
        peers: PeerServer | None,
        *,
        first_tensor: int,
        link: ControllerLink | None,
        post: Callable[[Callable[[], None]], None],
    ) -> None:
        """Begin with tensor `first_tensor`, and report stalls to `link`.

        `post` has the I/O thread call something.
        """
        self.counters: Counter[str] = Counter()
        """Received datagrams that were no awaited results, by cause; and probes sent."""
        self.num_completed = first_tensor
        """Tensors of the job that are complete, from its first; they complete in order."""
        self._reducer: Reducer | None = None  # None while no view is at work
        self._complete: deque[SubmittedTensor] = deque(maxlen=MAX_REPORTED)
        self._deadlines = Deadlines(link, self._complete)
        self._num_gathers = 0  # allgathers under way
        self._transport = transport
        self._options = options
        self._peers = peers
        self._pool = ArrayPool()
        self._missed = MissedResults(peers, post)
        self._source_worker = -1
        self._is_retention_due = True
        self._remote: Endpoint | None = None
        self._retired: Counter[str] = Counter()
        self._queued: deque[Task] = deque()  # not started
        self._started: deque[Task] = deque()  # not complete
        self._waiting: deque[AllreduceTask] = deque()  # of these, not in the value stream yet

    @property
    def is_stopped(self) -> bool:
        """Whether no view is at work: one is given up and the next one not known."""
        return self._reducer is None

    @property
    def round_trip_s(self) -> float:
        """Smoothed round trip of the value stream, 0 without a measurement."""
        reducer = self._reducer
        return reducer.values.round_trip_s if reducer is not None else 0.0

    @property
    def exponent_round_trip_s(self) -> float:
        """The same of the exponent stream, whose packets are control packets."""
        reducer = self._reducer
        return reducer.exponents.round_trip_s if reducer is not None else 0.0

    @property
    def window(self) -> int:
        """Congestion window of the value stream in chunks, 0 if nothing limits them."""
        reducer = self._reducer
        return reducer.values.window if reducer is not None else 0

    @property
    def next_s(self) -> float:
        """When a deadline is due next."""
        return self._deadlines.next_s

    @property
    def _at_work(self) -> Reducer:
        assert self._reducer is not None, "a view is at work"
        return self._reducer

    @property
    def num_started(self) -> int:
        """Tensors of the job that were started, from its first."""
        return self.num_completed + len(self._started)

    @property
    def _is_behind(self) -> bool:
        """Whether this worker still misses results from before the view at work."""
        reducer = self._reducer
        if reducer is None or not self._started:
            return False
        return self._started[0].number < reducer.first_tensor

    @property
    def unfinished(self) -> Iterable[Task]:
        """All tensors without a result."""
        return chain(self._started, self._queued)

    def queue(self, tasks: Iterable[Task]) -> None:
        """Append tensors."""
        for task in tasks:
            self._queued.append(task)
            self._deadlines.add(task)

    def stop(self) -> None:
        """Leave the view: tensors without a result go back to the queue."""
        if self._reducer is not None:
            self._retire(self._reducer)
            self._reducer = None
        self._missed.forget_all()
        self._waiting.clear()
        self._num_gathers = 0
        while self._started:
            task = self._started.pop()
            task.has_begun = False
            self._queued.appendleft(task)

    def enter(self, commit: Commit) -> None:
        """Run in a view from now on; a tensor that is not complete begins again there."""
        if commit.boundary < self.num_completed:
            raise SessionBrokenError(
                f"the job goes back to tensor {commit.boundary + 1}, but {self.num_completed}"
                " are complete here; join the job again"
            )
        self.stop()
        view = commit.view
        if view.is_on_switch:
            self._connect(view)
        self.view = view
        self._source_worker = commit.source_worker
        # Until a tensor of this view completes, other workers may still be in the view before, and
        # miss as many results as that view allows.
        self._is_retention_due = True
        self._reducer = self._open_reducer(commit.boundary)
        self._deadlines.begin_view(time.monotonic())

    def _connect(self, view: JobView) -> None:
        """Have the transport reach the view's switch, or the root of each of its trees."""
        size = datagram_bytes(view.values_per_packet)
        roots = {tree.tree_id: tree.root for tree in view.trees if tree.root is not None}
        if roots:
            trees_transport(self._transport).open_trees(roots, size)
            self._remote = None
        elif view.switch != self._remote:
            self._transport.open(view.switch, size)
            self._remote = view.switch

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
                f"job {self.view.job} goes on without a switch, but this session has no peer server"
            )
        return HostReducer(self.view, self._peers, first_tensor=first_tensor)

    def _limit_retention(self) -> None:
        """Keep results as long as a member may have missed them."""
        self._is_retention_due = False
        if self._peers is None:
            return
        view = self.view
        if view.is_on_switch and not view.straggler.allow_partial:
            # A worker that contributes to a slot again has the slot's earlier result. So no worker
            # is further behind than the number of slots.
            self._peers.results.set_limits(limit_chunks=view.slot_count, limit_bytes=None)
        else:
            limit_bytes = self._options.retain_bytes
            self._peers.results.set_limits(limit_chunks=None, limit_bytes=limit_bytes)

    def start(self, limit: int | None) -> None:
        """Start queued tensors below `limit`, and move those that can to the value stream."""
        reducer = self._reducer
        if reducer is None:
            return
        if not (reducer.is_waiting or self._missed.unreached):
            self._deadlines.note_progress(time.monotonic())  # no result is due: nothing stalls
        while self._queued and (limit is None or self._queued[0].number < limit):
            task = self._queued[0]
            if task.number >= reducer.first_tensor and self._is_behind:
                break  # others forget older results once they have a tensor of this view
            self._begin(task)
            self._started.append(self._queued.popleft())
            if task.number < reducer.first_tensor:
                self._fetch(task)
            else:
                self._enqueue(task, reducer)
        self._load_arrived(reducer)
        self._start_values(reducer)

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
            self._num_gathers += 1
            if reducer.multicast is not None:
                reducer.multicast.enqueue(task, time.monotonic())
            else:
                task.refuse()  # as on all other workers
            return
        if task.exponents is not None:
            reducer.exponents.enqueue(task.exponents)
        self._waiting.append(task)

    def _load_arrived(self, reducer: Reducer) -> None:
        """Take results that other workers have retained; raise the error of a fetch."""
        for task, outcome in self._missed.arrived():
            if isinstance(outcome, HostlibError):
                raise outcome
            if isinstance(task, AllgatherTask):
                task.load(outcome)
                continue
            if task.exponents is not None:
                reducer.exponents.abandon(task.exponents)
            if task.is_in_values and task.source is not None:
                reducer.values.abandon(task.source)
            task.load(outcome)

    def _start_values(self, reducer: Reducer) -> None:
        """Move tensors to the value stream, in their order."""
        while self._waiting:
            task = self._waiting[0]
            if not task.is_settled and task.source is None:
                assert task.exponents is not None
                if not reducer.exponents.is_finished(task.exponents):
                    return
                task.quantize()
            self._waiting.popleft()
            task.is_in_values = True
            source = task.source
            if source is None:
                continue  # an error that all workers share: the tensor has no values
            reducer.values.enqueue(source)
            if task.is_settled:
                reducer.values.abandon(source)
            elif source.withheld is not None:
                # A lost result can be asked for only by contributing, which this worker does not.
                self._fetch(task, is_optional=True)

    def poll(self, until_s: float) -> None:
        """Send, receive and keep timers until something has come, or until `until_s`."""
        reducer = self._at_work
        # Fetched results end tensors from before this view, and joining may end allgathers.
        if (self._num_gathers or self._is_behind) and self.finish():
            self._deadlines.note_progress(time.monotonic())
            return  # they may have held back others
        arrivals = reducer.poll(until_s)
        for tensor_id in arrivals.behind:
            for task in self._started:
                if task.wire_id == tensor_id:
                    self._fetch(task)
        self._fetch_missed(reducer)
        if self.finish():
            self._deadlines.note_progress(time.monotonic())
        self._deadlines.note_progress(max(arrivals.progress_s, reducer.moved_s))

    def _fetch_missed(self, reducer: Reducer) -> None:
        """Ask for tensors of which this worker has given all, and missed results."""
        for task in self._started:
            if isinstance(task, AllgatherTask) or task.is_settled or not task.is_in_values:
                continue
            source = task.source
            if source is not None and source.has_missed and reducer.values.is_finished(source):
                self._fetch(task)

    def interrupt(self) -> None:
        """Make `poll` return (any thread)."""
        reducer = self._reducer
        if reducer is not None:
            reducer.interrupt()

    def keep_deadlines(self, now_s: float, generation: int) -> None:
        """Ask, report or give up where results do not come; see `Deadlines.keep`."""
        if self._reducer is not None:
            unreached = self._missed.unreached
            self._deadlines.keep(self._reducer, self.unfinished, now_s, generation, unreached)
        else:
            self._deadlines.keep_without_view(self.unfinished, now_s, generation)

    def note_missing(self, generation: int, missing_workers: Sequence[int]) -> None:
        """Learn which workers a view waits for."""
        reducer = self._reducer
        if reducer is not None and reducer.view.generation == generation:
            reducer.note_missing(missing_workers)

    @property
    def next_owed_s(self) -> float | None:
        """When `keep_owed` is due next; None once no member can miss blocks of this worker."""
        exchange = self._reducer.multicast if self._reducer is not None else None
        return exchange.next_s if exchange is not None and exchange.is_owing else None

    def finish(self) -> bool:
        """Complete tensors in their order; return whether there were any."""
        reducer = self._at_work
        has_finished = False
        while self._started:
            task = self._started[0]
            is_elsewhere = task.number < reducer.first_tensor
            if not _is_complete(task, reducer, is_elsewhere=is_elsewhere):
                break
            self._missed.forget(task)
            if self._is_retention_due and not is_elsewhere:
                self._limit_retention()
            if self._peers is not None:
                self._peers.results.put(task.retained_result())
            self._started.popleft()
            self.num_completed += 1
            self._complete.append(task.submitted)
            if isinstance(task, AllgatherTask) and not is_elsewhere:
                self._num_gathers -= 1
            task.finish()
            has_finished = True
        return has_finished

    def fetch_gathers(self) -> None:
        """Ask other workers for the allgathers under way, as the view is to be left.

        A worker that has all blocks leaves the view at once, and sends none of them again.
        """
        if not self._num_gathers:
            return
        for task in self._started:
            if isinstance(task, AllgatherTask) and not task.is_asked_for:
                task.is_asked_for = True
                self._fetch(task, is_optional=True)

    def _fetch(self, task: Task, *, is_optional: bool = False) -> None:
        """Get a tensor's result from another worker; see `MissedResults.ask_for`."""
        self._missed.ask_for(task, self.view, self._source_worker, is_optional=is_optional)

    def _retire(self, reducer: Reducer) -> None:
        self._retired.update(_stream_counts(reducer))
        reducer.close()

    def statistics(self) -> Counter[str]:
        """Return packets by stream over all views, and what was refused by cause."""
        counts = Counter(self._retired)
        reducer = self._reducer
        if reducer is not None:
            counts.update(_stream_counts(reducer))
        counts[PROBES_SENT] += 0
        for cause, number in list(self.counters.items()):
            counts[cause if cause == PROBES_SENT else f"refused_{cause}"] += number
        return counts

    def close(self) -> None:
        """Give everything up."""
        if self._reducer is not None:
            self._reducer.close()
        self._missed.close()


def _is_complete(task: Task, reducer: Reducer, *, is_elsewhere: bool) -> bool:
    """Whether a started tensor can end; one that is elsewhere has no part in the path."""
    if isinstance(task, AllgatherTask):
        return task.is_settled
    if not task.is_settled:
        if is_elsewhere or not task.is_in_values or task.source is None:
            return False
        return reducer.values.is_finished(task.source) and not task.source.has_missed
    # Its chunks must have their place in the sequence first.
    return is_elsewhere or task.is_in_values


def _stream_counts(reducer: Reducer) -> Counter[str]:
    counts = Counter(incast_trials=reducer.values.incast_trials)
    for name, stream in (("exponent", reducer.exponents), ("value", reducer.values)):
        for key, number in vars(stream.counters).items():
            counts[f"{name}_packets_{key}"] = number
    if reducer.multicast is not None:
        counts.update(reducer.multicast.counts)
    return counts
