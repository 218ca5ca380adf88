# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A member's allreduces, one after the other: asked for, sent, added up, and ended.

A member goes on without a grant only if it has sent nothing by one, so no member has the sum by the
grant then. It tells all others, which begin again without a grant, too.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Final, final

from ....control.stations.allreduce_terms import (
    VALUE_BYTES,
    AllreduceEnded,
    AllreduceFailed,
    AllreduceGranted,
    AllreduceNoted,
    AllreduceProblem,
    VectorPiece,
)
from ....control.stations.station import (
    GrantedSpan,
    StationCut,
    StationEvent,
    StationReport,
    TransferGranted,
)
from ....errors import (
    ExchangeTimeoutError,
    HostlibError,
    MemberLostError,
    PeerMismatchError,
    UpdateRefusedError,
)
from ....peers.event_loop import EventLoop, Timer
from ...options import ClientOptions
from ..grant_requests import GrantRequests
from ..granted_rate import GrantedRate
from .member_links import MemberLinks
from .member_message import MemberKind, MemberMessage, pack_size
from .member_receiver import MemberReceiver
from .pending_allreduce import PendingAllreduce
from .piece_sum import PieceSum
from .running_allreduce import RunningAllreduce
from .vector_pieces import (
    equal_pieces,
    grant_problem,
    names_of,
    values_of,
)

BACKSTOP_S: Final = 10.0
"""The scheduler says who has not asked in time; a member waits so much longer for its word."""
_PARTS: Final = (MemberKind.PART, MemberKind.DIRECT_PART)
_logger = logging.getLogger(__name__)


@final
class MemberAllreduces:
    """Runs in the loop's thread.

    `counters`: allreduces, granted_allreduces, ungranted_allreduces (sent directly, in equal
    chunks), refused_allreduces (the scheduler could not plan them), failed_allreduces.
    """

    def __init__(
        self,
        loop: EventLoop,
        members: Sequence[tuple[str, int]],
        options: ClientOptions,
        *,
        grant_wait_s: float,
        report: Callable[[StationReport, int], None],
        counters: Counter[str],
    ) -> None:
        """`report` tells the scheduler, within a registration."""
        self.receiver: Final = MemberReceiver(
            self._arrive,
            is_due=self._is_due,
            on_entered=self._forget_earlier,
            on_gone=self._on_gone,
        )
        self._loop = loop
        self._own_id = options.worker_id
        self._num_members = len(members)
        self._timeout_s = options.timeout_s
        self._counters = counters
        self._links = MemberLinks(
            loop, members, options, on_sent=self._end_if_complete, on_unsent=self._on_unsent
        )
        self._requests = GrantRequests[PendingAllreduce](
            loop,
            grant_wait_s=grant_wait_s,
            report=report,
            send=self._on_answer,
            counters=counters,
            what="allreduces",
        )
        self._requests.must_wait = lambda _: self._pending is not None and self._pending.must_wait
        self._problem: HostlibError | None = None
        """Why later calls fail."""
        self._queue: deque[PendingAllreduce] = deque()
        self._number = 0
        """Of the last call that has begun."""
        self._pending: PendingAllreduce | None = None
        self._running: RunningAllreduce | None = None
        self._granted: AllreduceGranted | None = None
        self._granted_s = 0.0
        self._early: list[MemberMessage] = []
        """Of calls that this member has not made."""
        self._deadline_s = 0.0
        self._timer: Timer | None = None

    def dial(self) -> None:
        """Connect to all members, so that they notice if this one is gone."""
        self._links.dial()

    def submit(self, pending: PendingAllreduce) -> None:
        """Begin a call, as soon as those before have ended."""
        if self._problem is not None:
            self._counters["failed_allreduces"] += 1
            pending.future.set_exception(self._problem)
            return
        self._queue.append(pending)
        self._begin_next()

    def refused(self, reason: str) -> None:
        """Learn that the scheduler cannot plan the present call."""
        self._fail(UpdateRefusedError(f"allreduce {self._number}: {reason}"), tells=True)

    def close(self, error: HostlibError) -> None:
        """Fail all calls without a result; the others notice that the connections end."""
        self._end_calls(error)
        self._links.close(error)

    def fail(self, error: HostlibError) -> None:
        """Fail all calls without a result: the loop has failed, and its sockets are gone."""
        self._end_calls(error)

    # The station's events.

    def on_event(self, event: StationEvent) -> None:
        """Learn what the scheduler tells."""
        match event:
            case AllreduceNoted():
                if self._pending is not None and self._pending.transfer_id == event.transfer_id:
                    self._pending.is_noted = True
            case AllreduceGranted():
                self._on_granted(event)
            case AllreduceFailed():
                self._on_failure_told(event)
            case StationCut():
                if self._pending is not None:
                    self._pending.was_cut = True
                self._requests.on_event(event)
            case _:
                self._requests.on_event(event)

    def on_failed(self, error: HostlibError) -> None:
        """Learn that the scheduler refuses this worker: fail what waits for it, and later calls."""
        self._problem = error
        waiting, self._queue = self._queue, deque()
        if self._running is not None and not self._running.is_begun:
            self._fail(error, tells=True)
        for pending in waiting:
            self._counters["failed_allreduces"] += 1
            pending.future.set_exception(error)

    def _on_granted(self, granted: AllreduceGranted) -> None:
        pending, running = self._pending, self._running
        is_present = pending is not None and pending.transfer_id == granted.transfer_id
        if is_present and running is not None and not running.is_begun:
            size_bytes = running.vector.nbytes
            problem = grant_problem(granted, self._own_id, self._num_members, size_bytes)
            if problem:
                _logger.warning("the grant of allreduce %d is of no use: %s", self._number, problem)
                self._go_directly()
                return
            self._granted, self._granted_s = granted, time.monotonic()
        # It hands back a grant that comes too late.
        self._requests.on_event(TransferGranted(granted.transfer_id, (), 0, 1.0))

    def _on_failure_told(self, failed: AllreduceFailed) -> None:
        pending, running = self._pending, self._running
        if pending is None or running is None or pending.transfer_id != failed.transfer_id:
            return
        is_over = running.is_begun and not running.missing.intersection(failed.worker_ids)
        if running.is_direct or is_over:
            return  # the scheduler has no part in it, or who is gone had sent everything
        self._counters["refused_allreduces"] += failed.problem is AllreduceProblem.REFUSED
        self._fail(_error_of(failed), tells=False)

    def _on_answer(self, pending: PendingAllreduce) -> None:
        """Begin by a grant, or without one since no answer has come."""
        running = self._running
        if pending is not self._pending or running is None or running.is_begun:
            return
        if pending.grant is None:
            self._begin(running, equal_pieces(running.vector.size, self._num_members), None)
        else:
            assert self._granted is not None, "it was kept for this"
            self._begin(running, self._granted.pieces, self._granted)

    # A call from its beginning to its end.

    def _begin_next(self) -> None:
        if self._running is not None or not self._queue:
            return
        pending = self._pending = self._queue.popleft()
        self._number += 1
        pending.number = self._number
        self._counters["allreduces"] += 1
        self._running = RunningAllreduce(
            self._number, pending.vector, self._own_id, self._num_members
        )
        self._watch(self._timeout_s + BACKSTOP_S)
        early, self._early = self._early, []
        if not any(each.number == self._number and each.kind.is_direct for each in early):
            self._requests.ask(pending)
        for message in early:
            self._arrive(message)

    def _go_directly(self) -> None:
        """Go on without a grant: another member does, or the grant is of no use."""
        pending, running = self._pending, self._running
        assert pending is not None
        assert running is not None
        self._counters["ungranted_allreduces"] += 1
        if pending.grant is None:
            self._requests.forget(pending)
        self._begin(running, equal_pieces(running.vector.size, self._num_members), None)

    def _begin(
        self,
        running: RunningAllreduce,
        pieces: Sequence[VectorPiece],
        granted: AllreduceGranted | None,
    ) -> None:
        """Send this member's values; sums leave when they are complete."""
        is_direct = granted is None
        self._links.cancel()
        self._release(running.begin(pieces, is_direct=is_direct))
        self._watch(self._timeout_s + (0.0 if granted is None else granted.end_s))
        if is_direct:
            for other in self._links.others:
                size = pack_size(running.vector.nbytes)
                self._links.send(other, MemberKind.DIRECT, running.number, size)
        kind = MemberKind.DIRECT_PART if is_direct else MemberKind.PART
        spans = {} if granted is None else {leg.piece: leg.spans for leg in granted.legs}
        for place, piece in enumerate(pieces):
            if piece.root_id != self._own_id:
                values = values_of(running.vector, piece).data.cast("B")
                rate = self._rate(spans.get(place, ()))
                receiver, start = piece.root_id, piece.start_byte
                self._links.send(
                    receiver, kind, running.number, values, start_byte=start, rate=rate
                )
        held, running.held = running.held, []
        for message in held:
            self._arrive(message)
        self.receiver.review()

    def _return_sum(self, running: RunningAllreduce, total: PieceSum) -> None:
        """Send the sum of a piece to all others, each at its granted time or now."""
        piece = total.piece
        assert total.total is not None, "it is complete"
        values = total.total.data.cast("B")
        place = list(running.pieces).index(piece)
        spans: dict[int, Sequence[GrantedSpan]] = {}
        if not running.is_direct and self._granted is not None:
            spans = {leg.receiver_id: leg.spans for leg in self._granted.legs if leg.piece == place}
        kind = MemberKind.DIRECT_SUM if running.is_direct else MemberKind.SUM
        for other in self._links.others:
            rate, start = self._rate(spans.get(other, ())), piece.start_byte
            self._links.send(other, kind, running.number, values, start_byte=start, rate=rate)

    def _rate(self, spans: Sequence[GrantedSpan]) -> GrantedRate | None:
        """Return a leg's schedule; it begins now, if it should have begun, as of a late sum."""
        if not spans:
            return None
        late_s = max(0.0, time.monotonic() - self._granted_s - spans[0].start_s)
        return GrantedRate(spans, self._granted_s + late_s)

    def _end_if_complete(self) -> None:
        running, pending = self._running, self._pending
        if running is None or not running.is_complete or self._links.receivers:
            return
        assert pending is not None
        self._leave(running, pending)
        pending.future.set_result(running.result)
        self._begin_next()

    def _fail(self, error: HostlibError, *, tells: bool) -> None:
        """End the present call by an error; `tells`: the other members hear of it from here."""
        running, pending = self._running, self._pending
        if running is None or pending is None:
            return
        self._counters["failed_allreduces"] += 1
        if pending.grant is None and not running.is_direct:
            self._requests.forget(pending)
        self._leave(running, pending)
        _logger.warning("allreduce %d has failed: %s", running.number, error)
        # A member that seems to be lost, too: it may live, and wait, behind a broken connection.
        for other in self._links.others if tells else ():
            self._links.tell_failure(other, running.number, error)
        pending.future.set_exception(error)
        self._begin_next()

    def _leave(self, running: RunningAllreduce, pending: PendingAllreduce) -> None:
        """Forget the present call, and let the scheduler give back what was reserved."""
        if pending.grant is not None:
            self._requests.report(AllreduceEnded(pending.transfer_id))
        self._links.cancel()
        self._release(running.drop())
        self._running = self._pending = self._granted = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_calls(self, error: HostlibError) -> None:
        self._problem = error
        waiting, self._queue = self._queue, deque()
        self._fail(error, tells=False)
        for pending in waiting:
            self._counters["failed_allreduces"] += 1
            pending.future.set_exception(error)

    # What other members send.

    def _is_due(self, message: MemberMessage) -> bool:
        """Return whether a message gets memory at any rate; raises PeerProtocolError."""
        if self._running is not None and message.number == self._number:
            return self._running.is_due(message)
        return message.number <= self._number or message.kind not in _PARTS

    def _arrive(self, message: MemberMessage) -> None:
        """Take a message from another member, which this one owns now."""
        running = self._running
        if message.number > self._number:
            self._early.append(message)
        elif running is None or message.number < self._number:
            self._release([message])
            if message.kind is MemberKind.DIRECT and message.number < self._number:
                self._links.tell_failure(message.sender, message.number, self._behind(message))
        else:
            self._deadline_s = max(self._deadline_s, time.monotonic() + self._timeout_s)
            self._take(running, message)

    def _take(self, running: RunningAllreduce, message: MemberMessage) -> None:
        kind = message.kind
        if kind is MemberKind.FAILURE:
            self._release([message])
            self._fail(message.error(), tells=False)
            return
        if kind is MemberKind.DIRECT and not self._has_same_size(running, message):
            self._release([message])
            return
        if kind.is_direct and not running.is_direct:
            self._go_directly()
        if kind is MemberKind.DIRECT:
            self._release([message])
        elif running.is_direct and not kind.is_direct:
            self._release([message])  # of the grant that was given up
        elif not running.is_begun:
            running.held.append(message)
        elif kind in _PARTS:
            self._take_part(running, message)
        else:
            self._take_sum(running, message)

    def _take_part(self, running: RunningAllreduce, message: MemberMessage) -> None:
        try:
            total, used = running.take_part(message)
        except PeerMismatchError as error:
            self._release([message])
            self._fail(error, tells=True)
            return
        self._release(used)
        if total is not None:
            self._return_sum(running, total)
        self._end_if_complete()

    def _take_sum(self, running: RunningAllreduce, message: MemberMessage) -> None:
        try:
            running.take_sum(message)
        except PeerMismatchError as error:
            self._release([message])
            self._fail(error, tells=True)
            return
        self._release([message])
        self._end_if_complete()

    def _has_same_size(self, running: RunningAllreduce, message: MemberMessage) -> bool:
        """Fail unless a member that goes on without a grant has a vector of this one's size."""
        size_bytes = message.size_bytes()
        if size_bytes == running.vector.nbytes:
            return True
        error = PeerMismatchError(
            f"allreduce {running.number}: worker {message.sender} has a vector of"
            f" {size_bytes // VALUE_BYTES} values, and worker {self._own_id} one of"
            f" {running.vector.size}; let all members make the same calls"
        )
        self._fail(error, tells=True)
        return False

    def _forget_earlier(self, worker_id: int, incarnation: int) -> None:
        """Forget what an earlier process of a member has sent of calls that are to come."""
        early, self._early = self._early, []
        for message in early:
            is_old = message.sender == worker_id and message.update.incarnation != incarnation
            self._release([message]) if is_old else self._early.append(message)

    def _on_gone(self, worker_id: int) -> None:
        """Fail if a member's connection is over, and something has not come from it."""
        running = self._running
        if running is not None and running.is_begun and worker_id in running.missing:
            text = (
                f"allreduce {running.number}: worker {worker_id} is lost, or its connection broke;"
                " see whether its process runs"
            )
            self._fail(MemberLostError(text, worker_id), tells=True)

    def _behind(self, message: MemberMessage) -> HostlibError:
        """Return why a member cannot go on that makes a call which this one has made before."""
        return PeerMismatchError(
            f"worker {message.sender} makes allreduce {message.number}, and worker {self._own_id}"
            f" has made {self._number}: start all members again"
        )

    def _release(self, messages: Sequence[MemberMessage]) -> None:
        for message in messages:
            self.receiver.release(message.update)

    def _on_unsent(self, receiver: int, number: int, error: HostlibError) -> None:
        """Fail if a member cannot be reached, unless it has sent everything: it may have ended."""
        running = self._running
        if running is None or running.number != number:
            return
        if receiver in running.missing:
            self._fail(error, tells=True)
        else:
            self._end_if_complete()

    # How long a call waits.

    def _watch(self, wait_s: float) -> None:
        """End the present call if nothing comes for so long."""
        self._deadline_s = time.monotonic() + wait_s
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(wait_s, self._look)

    def _look(self) -> None:
        running, left_s = self._running, self._deadline_s - time.monotonic()
        if running is None:
            return
        if left_s > 0:
            self._timer = self._loop.call_later(left_s, self._look)
            return
        if not running.is_begun:
            text = "the scheduler knows of it, and does not say whom it waits for"
            missing: list[int] = []
        else:
            missing = sorted(running.missing or self._links.receivers)
            text = f"nothing has come for {self._timeout_s:g} s from workers {names_of(missing)}"
        error = ExchangeTimeoutError(f"allreduce {running.number}: {text}", missing)
        self._fail(error, tells=True)


def _error_of(failed: AllreduceFailed) -> HostlibError:
    """Return what the scheduler's word means to the caller."""
    worker_ids = failed.worker_ids
    if failed.problem is AllreduceProblem.MISMATCH:
        return PeerMismatchError(failed.text)
    if failed.problem is AllreduceProblem.MISSING:
        return ExchangeTimeoutError(failed.text, list(worker_ids))
    if failed.problem is AllreduceProblem.LOST and worker_ids:
        return MemberLostError(failed.text, worker_ids[0])
    return UpdateRefusedError(failed.text)
