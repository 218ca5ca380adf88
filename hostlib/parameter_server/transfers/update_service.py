# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Scheduled updates at a server: in the order of their places, each once, none too old."""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, final

from ...control.stations.replica_terms import ReplicaFailed, ReplicaReceived
from ...control.stations.station import (
    CommitExpected,
    CommitSkipped,
    ServerProgress,
    StationCut,
    StationEvent,
    StationRegistered,
    StationReport,
    TransferDelivered,
    TransferDropped,
    TransferGranted,
    UpdatesCommitted,
)
from ...errors import HostlibError, StaleUpdateError, UnplannedUpdateError
from ...peers.event_loop import EventLoop, Timer
from ...peers.frames import CommittedFrame, FrameKind
from ..tables.change import ScheduledUpdate, TableChange
from ..tables.refusals import is_replaced
from ..tables.service import TableService
from .commit_gate import CommitGate
from .place_order import PlaceOrder, ReadyUpdate, UpdateKey
from .update_port import IncomingUpdate, UpdatePort

MOST_HELD_BYTES: Final = 1 << 30
"""Updates that have come, and wait or are on their path through the log."""
KEPT_REFUSED: Final = 256
"""How many refused updates are remembered, for places that are told later."""
EARLY_S: Final = 0.2
"""An update that comes in less than half of its planned time is early, by more than this."""
_logger = logging.getLogger(__name__)


class CommittedUpdate(NamedTuple):
    """An update that the server has applied, for callbacks."""

    worker_id: int
    table: int
    """The table's number, see TableDefinition."""
    version: int
    """Number of updates that the model contains with it."""
    delay: int
    """Number of updates that were applied between its version and itself."""
    is_granted: bool


class _Submitted(NamedTuple):
    update: IncomingUpdate
    is_in_place: bool
    is_replaced: bool
    """At a replica: another process is its worker now, but the server has applied it."""


@final
class UpdateService:
    """Runs in the loop's thread, except for the constructor.

    `counters`: granted_updates (applied in their places), late_updates (granted, but their place
    was over), ungranted_updates, stale_updates (refused: older than tau_max), denied_updates
    (refused by the tables), forgotten_updates (of worker processes that were replaced),
    withheld_updates (without a place, though a replica follows; refused),
    repeated_updates (had come before), early_updates (came long before their planned time),
    unplanned_updates (granted, but the scheduler has not told of them), skipped_places and
    abandoned_places (of the sequence: the scheduler's word, or the server had waited long enough).
    """

    def __init__(
        self,
        tables: TableService,
        loop: EventLoop,
        *,
        tau_max: int | None = None,
        place_wait_s: float = 5.0,
        most_held_bytes: int = MOST_HELD_BYTES,
        is_replica: bool = False,
    ) -> None:
        self.counters: Counter[str] = Counter()
        self.problem: HostlibError | None = None
        """Why the scheduler has refused this server, and knows nothing of it."""
        self.tell: Callable[[StationReport, int], None] = _tell_nobody
        """Tells the scheduler, within a registration."""
        self.on_promoted: Callable[[], None] = lambda: None
        """Called when this replica has become the server."""
        self.on_update: Callable[[CommittedUpdate], None] | None = None
        """Called after each update, in the loop's thread: MLfabric's registerUpdateCallback."""
        self.on_request: Callable[[int, int], None] | None = None
        """Called with worker and table after each read: MLfabric's registerRequestCallback."""
        self._tables = tables
        self._loop = loop
        self._tau_max = tau_max
        self._most_held_bytes = most_held_bytes
        self._order = PlaceOrder[IncomingUpdate](place_wait_s)
        self.gate: Final = CommitGate(
            self._order,
            loop,
            tables.state,
            is_replica=is_replica,
            take=self._take,
            report_state=self._report,
            on_promoted=self._promoted,
        )
        """What may be applied, if there is a replica."""
        self._ports: dict[int, UpdatePort] = {}
        self._incarnations: dict[int, int] = {}
        self._held: dict[tuple[int, int, int], IncomingUpdate] = {}
        self._submitted: dict[tuple[int, int, int], _Submitted] = {}
        self._refused: deque[UpdateKey] = deque(maxlen=KEPT_REFUSED)
        self._held_bytes = 0
        self._is_registered = False
        self._registration = 0
        self._timer: Timer | None = None
        self._is_report_due = False
        tables.updates = self

    @property
    def progress(self) -> ServerProgress:
        """What a registration says; from any thread."""
        return ServerProgress(self._tables.state.num_commits, self._order.highest)

    # The ports call the methods below.

    def enter(self, port: UpdatePort, incarnation: int) -> None:
        """Answer a worker's process through a port; tell it what has been applied."""
        worker_id = port.worker_id
        known = self._tables.incarnation(worker_id)
        if known not in (0, incarnation):
            port.refuse(is_replaced(worker_id))
            return
        older = self._ports.get(worker_id)
        self._ports[worker_id] = port
        if older is not None:
            older.drop() if older.incarnation == incarnation else older.refuse(
                is_replaced(worker_id)
            )
        if self._incarnations.get(worker_id, incarnation) != incarnation:
            self._order.forget(worker_id)
            for key in [key for key in self._refused if key.worker_id == worker_id]:
                self._refused.remove(key)
        self._incarnations[worker_id] = incarnation
        state = self._tables.state
        worker = state.workers[worker_id]
        if worker.incarnation == incarnation:
            for number in worker.updates:
                port.on_committed(CommittedFrame(number, state.num_commits, 0))
        port.answer_enter(self._tables.identity, state.num_commits)

    def detach(self, port: UpdatePort) -> None:
        """Learn that a connection is gone."""
        if self._ports.get(port.worker_id) is port:
            del self._ports[port.worker_id]

    def is_known(self, worker_id: int, incarnation: int, number: int) -> bool:
        """Return whether an update waits, is being logged, or is applied."""
        name = worker_id, incarnation, number
        worker = self._tables.state.workers[worker_id]
        is_applied = worker.incarnation == incarnation and number in worker.updates
        return is_applied or name in self._held or name in self._submitted

    def reserve(self, update: IncomingUpdate) -> bool:
        """Return whether there is memory; the update that all others wait for always gets some."""
        head = update.head
        is_first = head.is_granted and self._order.is_next(_key(update), head.sequence)
        size = head.num_bytes
        if self._held_bytes and not is_first and self._held_bytes + size > self._most_held_bytes:
            return False
        self._held_bytes += size
        return True

    def release(self, update: IncomingUpdate) -> None:
        """Free an update's memory, and let others come."""
        self._held_bytes -= update.head.num_bytes
        for port in list(self._ports.values()):
            port.on_room()

    def arrive(self, update: IncomingUpdate) -> None:
        """Apply an update, or hold it until its turn."""
        if update.is_repeated:
            self._answer_repeated(update)
            return
        key, head, now_s = _key(update), update.head, time.monotonic()
        has_grant = head.is_granted and key.transfer_id > 0
        if has_grant:
            self._check_pace(key, update, now_s)
        self._held[_name(update)] = update
        stale = self._staleness(update)
        if stale is not None:
            ready = self._order.arrive(key, None, update, now_s)[1:]
            self._deny(update, stale)
        else:
            sequence = head.sequence if has_grant else None
            ready = self._order.arrive(key, sequence, update, now_s)
            is_late = any(each.item is update and not each.is_in_place for each in ready)
            if not (is_late and self.gate.refusal(update)):
                self._report(self._arrival(key, is_granted=has_grant and not is_late))
        self._take(ready)

    def _arrival(self, key: UpdateKey, *, is_granted: bool) -> StationReport:
        """Return what the scheduler is told of an update that is there."""
        return (
            ReplicaReceived(*key) if self.gate.is_replica else TransferDelivered(*key, is_granted)
        )

    # The station's events.

    def on_event(self, event: StationEvent) -> None:
        """Learn what the scheduler tells."""
        match event:
            case StationRegistered():
                self._is_registered, self._registration = True, event.registration
                self.gate.on_registered(event.allowed)
                ready = self._order.restart(event.next_sequence)
                for update in self._order.held():
                    self._report(self._arrival(_key(update), is_granted=True))
                self._report_version()
                self._take(ready)
            case StationCut():
                self._is_registered = False
                self.gate.on_cut()
            case CommitExpected():
                has_come, ready = self._order.expect(event, time.monotonic())
                if has_come:
                    key = UpdateKey(event.worker_id, event.transfer_id)
                    arrival = self._arrival(key, is_granted=True)
                    if isinstance(arrival, TransferDelivered):
                        arrival = arrival._replace(is_refused=key in self._refused)
                    self._report(arrival)
                self._take(ready)
            case CommitSkipped():
                self.counters["skipped_places"] += 1
                self._take(self._order.skip(event.sequence))
            case TransferGranted() | TransferDropped():
                pass  # for workers
            case _:
                self.gate.on_event(event)
                self._answer_state()

    def on_failed(self, error: HostlibError) -> None:
        """Learn that the scheduler refuses this process; servers apply updates as they come."""
        self.problem = error
        self._is_registered = False
        self.gate.on_failed(error)
        what = "updates are refused" if self.gate.is_closed else "updates are applied as they come"
        _logger.error("no transfer scheduling, %s: %s", what, error)

    # The tables call the methods below.

    def refusal(self, request: TableChange) -> HostlibError | None:
        """Return why a change that is no TRANSFER has no effect, None if it may have."""
        return self.gate.refusal_of_change(request)

    def on_update_applied(self, request: TableChange) -> None:
        """Tell worker and scheduler, unless the worker's process was replaced meanwhile."""
        update, is_in_place, is_replaced = self._submitted.pop(_name_of(request))
        self._report_soon()
        state, head = self._tables.state, update.head
        if is_replaced:
            self.counters["granted_updates"] += 1
            self.release(update)
            return
        worker = state.workers[request.worker_id]
        if worker.incarnation != request.incarnation or head.number not in worker.updates:
            self._forget(update)
            return
        version = state.num_commits
        delay = max(0, version - 1 - head.version)
        self.counters[_fate(head.is_granted, is_in_place)] += 1
        port = self._port(update)
        if port is not None:
            port.on_committed(CommittedFrame(head.number, version, delay))
        callback, worker_id = self.on_update, request.worker_id
        if callback is not None:
            committed = CommittedUpdate(worker_id, request.table, version, delay, is_in_place)
            _guard(lambda: callback(committed))
        self.release(update)

    def on_update_denied(self, request: TableChange, error: HostlibError) -> None:
        """Tell the worker why its update has no effect."""
        update, is_in_place, _ = self._submitted.pop(_name_of(request))
        self.counters["denied_updates"] += 1
        self._refuse(update, error)
        if self.gate.is_replica and is_in_place:
            self._report(ReplicaFailed(str(error)))
        self._report_soon()

    def on_model_read(self, worker_id: int, table: int) -> None:
        """Tell the callback."""
        callback = self.on_request
        if callback is not None:
            _guard(lambda: callback(worker_id, table))

    def _take(self, ready: Iterable[ReadyUpdate[IncomingUpdate]]) -> None:
        """Have updates applied, in this order; then wait for the next place."""
        for update, is_in_place in ready:
            name = _name(update)
            unplanned = None if is_in_place else self.gate.refusal(update)
            if unplanned is not None:
                if self.gate.is_holding:
                    self.gate.keep(update)
                else:
                    self._deny(update, unplanned)
                continue
            del self._held[name]
            is_replaced = self._tables.incarnation(update.worker_id) != update.incarnation
            if is_replaced and not (self.gate.is_replica and is_in_place):
                self._forget(update)
                continue
            stale = self._staleness(update)
            if stale is not None:
                self._held[name] = update
                self._deny(update, stale)
                continue
            head, payload = update.head, update.payload
            assert payload is not None
            factor = head.factor if head.is_granted else 1.0
            open_from = 0 if is_replaced else head.open_from
            ScheduledUpdate(factor, open_from).pack_into(payload)
            self._submitted[name] = _Submitted(update, is_in_place, is_replaced)
            self._tables.submit_update(
                TableChange(FrameKind.TRANSFER, *name, head.table, head.num_keys), payload
            )
        self._await_place()

    def _await_place(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        give_up_s = self._order.give_up_s
        if give_up_s is not None:
            left_s = max(0.0, give_up_s - time.monotonic())
            self._timer = self._loop.call_later(left_s, self._give_up)

    def _give_up(self) -> None:
        self._timer = None
        place, before = self._order.next, self._order.num_given_up
        ready = self._order.give_up(time.monotonic())
        if self._order.num_given_up > before:
            self.counters["abandoned_places"] += 1
            _logger.warning(
                "the update for place %s of the commit sequence has not come: going on without it."
                " If it comes, it is applied then",
                place,
            )
        self._take(ready)

    def _staleness(self, update: IncomingUpdate) -> StaleUpdateError | None:
        """Return why an update is too old to be applied next."""
        if self._tau_max is None or self.gate.is_replica:
            return None  # a replica applies what its server has applied
        version = self._tables.state.num_commits + len(self._submitted)
        delay = version - update.head.version
        if delay <= self._tau_max:
            return None
        return StaleUpdateError(
            f"update {update.head.number} of worker {update.worker_id} was computed on version"
            f" {update.head.version}, and the model has version {version}: the delay {delay}"
            f" exceeds tau_max {self._tau_max}. Get the model, and compute the update again",
            delay,
            self._tau_max,
        )

    def _deny(self, update: IncomingUpdate, error: StaleUpdateError | UnplannedUpdateError) -> None:
        del self._held[_name(update)]
        is_stale = isinstance(error, StaleUpdateError)
        self.counters["stale_updates" if is_stale else "withheld_updates"] += 1
        self._refuse(update, error)

    def _refuse(self, update: IncomingUpdate, error: HostlibError) -> None:
        port = self._port(update)
        if port is not None:
            port.on_denied(update.head.number, error)
        self._free_refused(update)

    def _forget(self, update: IncomingUpdate) -> None:
        self.counters["forgotten_updates"] += 1
        self._refuse(update, is_replaced(update.worker_id))

    def _free_refused(self, update: IncomingUpdate) -> None:
        key, granted = _key(update), update.head.is_granted
        self._refused.append(key)
        if not self.gate.is_replica:
            self._report(TransferDelivered(*key, is_granted=granted, is_refused=True))
        self.release(update)

    def _answer_repeated(self, update: IncomingUpdate) -> None:
        """Answer an update that is applied already; the others have their answer later."""
        self.counters["repeated_updates"] += 1
        state = self._tables.state
        worker, port = state.workers[update.worker_id], self._port(update)
        if port is not None and update.head.number in worker.updates:
            port.on_committed(CommittedFrame(update.head.number, state.num_commits, 0))

    def _check_pace(self, key: UpdateKey, update: IncomingUpdate, now_s: float) -> None:
        """Count a worker that seems to ignore its grants."""
        told = self._order.expected(key)
        if told is None:
            is_over = self._order.next is None or update.head.sequence < self._order.next
            self.counters["unplanned_updates"] += self._is_registered and not is_over
            return
        place, told_s = told
        early_s = told_s + place.due_s - now_s
        if early_s > max(EARLY_S, place.due_s / 2):
            self.counters["early_updates"] += 1
            _logger.warning(
                "transfer %d of worker %d came %.1f s before its time: the worker seems to ignore"
                " its grants. Update it, or its library",
                key.transfer_id,
                key.worker_id,
                early_s,
            )

    def _report(self, report: StationReport) -> None:
        self.tell(report, self._registration)

    def _report_soon(self) -> None:
        if not self._is_report_due:
            self._is_report_due = True
            self._loop.call_later(0, self._report_version)

    def _report_version(self) -> None:
        self._is_report_due = False
        self._report(UpdatesCommitted(self._tables.state.num_commits, self._next_sequence))
        self._answer_state()

    def _answer_state(self) -> None:
        commits, is_settled = self._tables.state.num_commits, not self._submitted
        self.gate.answer(commits, self._next_sequence, is_settled=is_settled)

    @property
    def _next_sequence(self) -> int:
        """The first place that is not over here."""
        in_log = (each.update.head for each in self._submitted.values() if each.is_in_place)
        return min((head.sequence for head in in_log), default=self._order.next or 0)

    def _promoted(self) -> None:
        """Go on as the server."""
        self._report_soon()
        self.on_promoted()

    def _port(self, update: IncomingUpdate) -> UpdatePort | None:
        port = self._ports.get(update.worker_id)
        return port if port is not None and port.incarnation == update.incarnation else None


def _tell_nobody(_report: StationReport, _registration: int) -> None:
    """Do nothing: there is no scheduler."""


def _guard(callback: Callable[[], None]) -> None:
    """Run a user's callback, and log its exception: the server goes on."""
    try:
        callback()
    except Exception:
        _logger.exception("a callback of scheduled updates failed")


def _key(update: IncomingUpdate) -> UpdateKey:
    return UpdateKey(update.worker_id, update.head.transfer_id)


def _name(update: IncomingUpdate) -> tuple[int, int, int]:
    return update.worker_id, update.incarnation, update.head.number


def _name_of(request: TableChange) -> tuple[int, int, int]:
    return request.worker_id, request.incarnation, request.number


def _fate(is_granted: bool, is_in_place: bool) -> str:
    if is_in_place:
        return "granted_updates"
    return "late_updates" if is_granted else "ungranted_updates"
