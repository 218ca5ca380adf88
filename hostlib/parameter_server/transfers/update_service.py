# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Scheduled updates at a server: in the order of their places, each once, none too old."""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, final

from ...control.stations.station import (
    CommitExpected,
    CommitSkipped,
    ServerProgress,
    StationCut,
    StationEvent,
    StationRegistered,
    StationReport,
    TransferDelivered,
    UpdatesCommitted,
)
from ...errors import HostlibError, PeerMismatchError, StaleUpdateError
from ...peers.event_loop import EventLoop, Timer
from ...peers.frames import CommittedFrame, FrameKind, SummedUpdate
from ..summed_updates import SumMember, pack_members_into
from ..tables.change import ScheduledUpdate, TableChange
from ..tables.refusals import is_replaced
from ..tables.service import TableService
from .known_updates import KnownUpdates, UpdateName, name_in, name_of
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


@final
class UpdateService:
    """Runs in the loop's thread, except for the constructor.

    `counters`: granted_updates (applied in their places), late_updates (granted, but their place
    was over), ungranted_updates, stale_updates (refused: older than tau_max), denied_updates
    (refused by the tables), forgotten_updates (of worker processes that were replaced),
    repeated_updates (had come before), early_updates (came long before their planned time),
    unplanned_updates (granted, but the scheduler has not told of them), skipped_places and
    abandoned_places (of the sequence: the scheduler's word, or the server had waited long enough).
    Of groups: summed_updates (applied as parts of sums), left_updates (were to come in sums, and
    came by themselves), returned_sums (had no effect: their updates come by themselves).
    """

    def __init__(
        self,
        tables: TableService,
        loop: EventLoop,
        *,
        tau_max: int | None = None,
        place_wait_s: float = 5.0,
        most_held_bytes: int = MOST_HELD_BYTES,
    ) -> None:
        self.counters: Counter[str] = Counter()
        self.problem: HostlibError | None = None
        """Why the scheduler has refused this server, and knows nothing of it."""
        self.tell: Callable[[StationReport, int], None] = _tell_nobody
        """Tells the scheduler, within a registration."""
        self.on_update: Callable[[CommittedUpdate], None] | None = None
        """Called after each update, in the loop's thread: MLfabric's registerUpdateCallback."""
        self.on_request: Callable[[int, int], None] | None = None
        """Called with worker and table after each read: MLfabric's registerRequestCallback."""
        self._tables = tables
        self._loop = loop
        self._tau_max = tau_max
        self._most_held_bytes = most_held_bytes
        self._order = PlaceOrder[IncomingUpdate](place_wait_s)
        self._ports: dict[int, UpdatePort] = {}
        self._incarnations: dict[int, int] = {}
        self._known = KnownUpdates(tables)
        self._submitted: dict[UpdateName, _Submitted] = {}
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
        return self._known.is_known(UpdateName(worker_id, incarnation, number))

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
        if update.is_repeated or self._known.is_known(name_of(update)):
            self._answer_repeated(update)
            return
        members, now_s = update.members, time.monotonic()
        stale = self._staleness(update)
        if update.summed and (stale is not None or not self._known.are_new(update)):
            self._return_sum(update)
            return
        has_grant = update.head.is_granted and all(member.transfer_id for member in members)
        if has_grant:
            self._check_pace(update, now_s)
        self._known.add(update)
        if stale is not None:
            ready = self._order.arrive(_key(update), None, update, now_s)[1:]
            self._deny(update, stale)
        else:
            for member in members[1:]:
                self._order.cover(_key_of(member), member.sequence)
            sequence = members[0].sequence if has_grant else None
            ready = self._order.arrive(_key(update), sequence, update, now_s)
            is_late = any(each.item is update and not each.is_in_place for each in ready)
            for member in members:
                self._report(TransferDelivered(*_key_of(member), has_grant and not is_late))
        self._take(ready)

    # The station's events.

    def on_event(self, event: StationEvent) -> None:
        """Learn what the scheduler tells."""
        match event:
            case StationRegistered():
                self._is_registered, self._registration = True, event.registration
                ready = self._order.restart(event.next_sequence)
                for update in self._order.held():
                    for member in update.members:
                        self._report(TransferDelivered(*_key_of(member), is_granted=True))
                self._report(UpdatesCommitted(self._tables.state.num_commits))
                self._take(ready)
            case StationCut():
                self._is_registered = False
            case CommitExpected():
                has_come, ready = self._order.expect(event, time.monotonic())
                if has_come:
                    key = UpdateKey(event.worker_id, event.transfer_id)
                    is_refused = key in self._refused
                    self._report(TransferDelivered(*key, is_granted=True, is_refused=is_refused))
                self._take(ready)
            case CommitSkipped():
                self.counters["skipped_places"] += 1
                self._take(self._order.skip(event.sequence))
            case _:
                pass  # for workers

    def on_failed(self, error: HostlibError) -> None:
        """Learn that the scheduler refuses this server; updates are applied as they come."""
        self.problem = error
        self._is_registered = False
        _logger.error("no transfer scheduling, updates are applied as they come: %s", error)

    # The tables call the methods below.

    def on_update_applied(self, request: TableChange) -> None:
        """Tell workers and scheduler, unless a worker's process was replaced meanwhile."""
        update, is_in_place = self._submitted.pop(UpdateName(*request[1:4]))
        members = update.members
        if not self._known.are_applied(update):
            self._return_sum(update) if update.summed else self._forget(update)
            return
        self._known.discard(update)
        before = self._tables.state.num_commits - len(members)
        for version, member in enumerate(members, before + 1):
            self._tell_committed(member, version, request.table, update, is_in_place)
        if update.summed:
            self.counters["summed_updates"] += len(members)
            self._answer_sum(update)
        if not self._is_report_due:
            self._is_report_due = True
            self._loop.call_later(0, self._report_version)
        self.release(update)

    def _tell_committed(
        self,
        member: SummedUpdate,
        version: int,
        table: int,
        update: IncomingUpdate,
        is_in_place: bool,
    ) -> None:
        delay = max(0, version - 1 - member.version)
        self.counters[_fate(update.head.is_granted, is_in_place)] += 1
        port = self._port_of(*member[:2])
        if port is not None:
            port.on_committed(CommittedFrame(member.number, version, delay))
        callback = self.on_update
        if callback is not None:
            committed = CommittedUpdate(member.worker_id, table, version, delay, is_in_place)
            _guard(lambda: callback(committed))

    def on_update_denied(self, request: TableChange, error: HostlibError) -> None:
        """Tell the worker why its update has no effect."""
        update, _ = self._submitted.pop(UpdateName(*request[1:4]))
        if update.summed:
            self._return_sum(update)
            return
        self.counters["denied_updates"] += 1
        self._refuse(update, error)

    def on_model_read(self, worker_id: int, table: int) -> None:
        """Tell the callback."""
        callback = self.on_request
        if callback is not None:
            _guard(lambda: callback(worker_id, table))

    def _take(self, ready: Iterable[ReadyUpdate[IncomingUpdate]]) -> None:
        """Have updates applied, in this order; then wait for the next place."""
        for update, is_in_place in ready:
            if not self._known.are_current(update):
                self._return_sum(update) if update.summed else self._forget(update)
                continue
            stale = self._staleness(update)
            if stale is not None:
                self._deny(update, stale)
            else:
                self._submit(update, is_in_place)
        self._await_place()

    def _submit(self, update: IncomingUpdate, is_in_place: bool) -> None:
        head, payload = update.head, update.payload
        assert payload is not None
        if update.summed:
            members = [SumMember._make(member[:4]) for member in update.summed]
            pack_members_into(payload, members)
        else:
            factor = head.factor if head.is_granted else 1.0
            ScheduledUpdate(factor, head.open_from).pack_into(payload)
        kind = FrameKind.SUM if update.summed else FrameKind.TRANSFER
        name = name_of(update)
        self._submitted[name] = _Submitted(update, is_in_place)
        self._tables.submit_update(TableChange(kind, *name, head.table, head.num_keys), payload)

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
        if self._tau_max is None:
            return None
        submitted = sum(len(each.update.members) for each in self._submitted.values())
        now = self._tables.state.num_commits + submitted
        for version, member in enumerate(update.members, now):
            delay = version - member.version
            if delay > self._tau_max:
                text = (
                    f"update {member.number} of worker {member.worker_id} was computed on version"
                    f" {member.version}, and the model has version {version}: the delay {delay}"
                    f" exceeds tau_max {self._tau_max}. Get the model, and compute it again"
                )
                return StaleUpdateError(text, delay, self._tau_max)
        return None

    def _deny(self, update: IncomingUpdate, error: StaleUpdateError) -> None:
        if update.summed:
            self._return_sum(update)
            return
        self.counters["stale_updates"] += 1
        self._refuse(update, error)

    def _return_sum(self, update: IncomingUpdate) -> None:
        """Have the workers of a sum send their updates themselves, but for those that have come.

        Nothing is reported: the updates come, and count then. One that is too old is refused then.
        """
        self._known.discard(update)
        if self._known.are_applied(update):
            self.counters["repeated_updates"] += 1  # the answer was lost
            self._answer_sum(update)
        else:
            self.counters["returned_sums"] += 1
            for member in update.summed:
                port = self._port_of(*member[:2])
                if port is not None and not self._known.is_known(name_in(member)):
                    port.send_again(member.number)
            port = self._port(update)
            if port is not None:
                text = f"the sum of {len(update.summed)} updates has no effect: they come alone"
                port.on_denied(update.head.number, PeerMismatchError(text))
        self.release(update)

    def _answer_sum(self, update: IncomingUpdate) -> None:
        port = self._port(update)
        if port is not None:
            port.on_committed(CommittedFrame(update.head.number, self._tables.state.num_commits, 0))

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
        self._report(TransferDelivered(*key, is_granted=granted, is_refused=True))
        self._known.discard(update)
        self.release(update)

    def _answer_repeated(self, update: IncomingUpdate) -> None:
        """Answer an update that is applied already; the others have their answer later."""
        self.counters["repeated_updates"] += 1
        if update.payload is not None:  # it began to come before the other
            self.release(update)
        state = self._tables.state
        worker, port = state.workers[update.worker_id], self._port(update)
        if port is not None and update.head.number in worker.updates:
            port.on_committed(CommittedFrame(update.head.number, state.num_commits, 0))

    def _check_pace(self, update: IncomingUpdate, now_s: float) -> None:
        """Count a worker that seems to ignore its grants."""
        if update.head.has_left_group:
            self.counters["left_updates"] += 1
            return
        for member in update.members:
            self._check_pace_of(_key_of(member), member.sequence, now_s)

    def _check_pace_of(self, key: UpdateKey, sequence: int, now_s: float) -> None:
        told = self._order.expected(key)
        if told is None:
            is_over = self._order.next is None or sequence < self._order.next
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

    def _report_version(self) -> None:
        self._is_report_due = False
        self._report(UpdatesCommitted(self._tables.state.num_commits))

    def _port(self, update: IncomingUpdate) -> UpdatePort | None:
        return self._port_of(update.worker_id, update.incarnation)

    def _port_of(self, worker_id: int, incarnation: int) -> UpdatePort | None:
        port = self._ports.get(worker_id)
        return port if port is not None and port.incarnation == incarnation else None


def _tell_nobody(_report: StationReport, _registration: int) -> None:
    """Do nothing: there is no scheduler."""


def _guard(callback: Callable[[], None]) -> None:
    """Run a user's callback, and log its exception: the server goes on."""
    try:
        callback()
    except Exception:
        _logger.exception("a callback of scheduled updates failed")


def _key(update: IncomingUpdate) -> UpdateKey:
    return _key_of(update.members[0])


def _key_of(member: SummedUpdate) -> UpdateKey:
    return UpdateKey(member.worker_id, member.transfer_id)


def _fate(is_granted: bool, is_in_place: bool) -> str:
    if is_in_place:
        return "granted_updates"
    return "late_updates" if is_granted else "ungranted_updates"
