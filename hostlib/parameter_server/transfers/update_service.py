# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Scheduled updates at a server: in the order of their places, each once, none too old."""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Final, final

from ...control.stations.replica_terms import ReplicaEvent, ReplicaFailed, ReplicaReceived
from ...control.stations.station import (
    CommitExpected,
    CommitSkipped,
    ServerProgress,
    StationCut,
    StationEvent,
    StationRegistered,
    StationReport,
    SwitchGroupExpected,
    TransferDelivered,
    UpdatesCommitted,
)
from ...errors import HostlibError, PeerMismatchError, StaleUpdateError, UnplannedUpdateError
from ...peers.event_loop import EventLoop, Timer
from ...peers.frames import CommittedFrame, FrameKind, SummedUpdate
from ..summed_updates import SumMember, pack_members_into
from ..tables.change import ScheduledUpdate, TableChange
from ..tables.denial import is_replaced
from ..tables.service import TableService
from .arrivals.grant_pace import GrantPace, size_problem
from .arrivals.known_updates import (
    KnownUpdates,
    SubmittedUpdate,
    UpdateName,
    key_of,
    key_of_first,
    name_in,
    name_of,
)
from .arrivals.place_order import PlaceOrder, ReadyUpdate, UpdateKey
from .arrivals.update_age import staleness
from .arrivals.worker_ports import WorkerPorts
from .committed_update import REFUSALS, CommittedUpdate, fate, guard
from .replicas.commit_gate import CommitGate
from .update_port import IncomingUpdate, UpdatePort

MOST_HELD_BYTES: Final = 1 << 30
"""Updates that have come, and wait or are on their path through the log."""
KEPT_REFUSED: Final = 256
"""How many refused updates are remembered, for places that are told later."""
_logger = logging.getLogger(__name__)


@final
class UpdateService:
    """Runs in the loop's thread, except for the constructor.

    `counters`: granted_updates (applied in their places), late_updates (granted, but their place
    was over), ungranted_updates, stale_updates (refused: older than tau_max), denied_updates
    (refused by the tables), forgotten_updates (of worker processes that were replaced),
    withheld_updates (without a place, though a replica follows; refused), missized_updates (of
    other sizes than their grants; refused), repeated_updates (had come before), early_updates (came
    long before their planned time), unplanned_updates (granted, but the scheduler has not told of
    them), skipped_places and abandoned_places (the scheduler's word, or waited long enough).
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
        is_replica: bool = False,
    ) -> None:
        self.counters: Counter[str] = Counter()
        self.problem: HostlibError | None = None
        """Why the scheduler has refused this server, and knows nothing of it."""
        self.tell: Callable[[StationReport, int], None] = lambda _report, _number: None
        """Tells the scheduler, within a registration."""
        self.on_promoted: Callable[[], None] = lambda: None
        """Called when this replica has become the server."""
        self.on_update: Callable[[CommittedUpdate], None] | None = None
        """Called after each update, in the loop's thread: MLfabric's registerUpdateCallback."""
        self.on_request: Callable[[int, int], None] | None = None
        """Called with worker and table after each read: MLfabric's registerRequestCallback."""
        self.on_switch_group: Callable[[SwitchGroupExpected], None] = lambda _: None
        """Called when the scheduler has granted a group at the server's switch."""
        self.on_registered: Callable[[], None] = lambda: None
        """Called when the scheduler knows this server, after all else."""
        self.after_log: Callable[[HostlibError | None], None] = lambda _: None
        """Called when records are durable, or why some are not."""
        self._tables = tables
        self._loop = loop
        self._tau_max = tau_max
        self._most_held_bytes = most_held_bytes
        self._order = PlaceOrder[IncomingUpdate](place_wait_s)
        self._pace = GrantPace(self._order, self.counters, lambda: self._is_registered)
        self.hold_s: Final = self._pace.hold_s
        """For how many seconds the ports do not read an update that comes before its time."""
        self.gate: Final = CommitGate(
            self._order,
            loop,
            tables,
            is_replica=is_replica,
            take=self._take,
            report_state=self._report,
            on_promoted=self._promoted,
        )
        """What may be applied, if there is a replica."""
        self._ports = WorkerPorts()
        self._incarnations: dict[int, int] = {}
        self._known = KnownUpdates(tables)
        self._submitted: dict[UpdateName, SubmittedUpdate] = {}
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
        self._ports.enter(port)
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
        self._ports.detach(port)

    def is_known(self, worker_id: int, incarnation: int, number: int) -> bool:
        """Return whether an update waits, is being logged, or is applied."""
        return self._known.is_known(UpdateName(worker_id, incarnation, number))

    def reserve(self, update: IncomingUpdate) -> bool:
        """Return whether there is memory; the update that all others wait for always gets some."""
        head = update.head
        is_first = head.is_granted and self._order.is_next(key_of_first(update), head.sequence)
        size = head.num_bytes
        if self._held_bytes and not is_first and self._held_bytes + size > self._most_held_bytes:
            return False
        self._held_bytes += size
        return True

    def release(self, update: IncomingUpdate) -> None:
        """Free an update's memory, and let others come."""
        self._held_bytes -= update.head.num_bytes
        self._ports.on_room()

    def arrive(self, update: IncomingUpdate) -> None:
        """Apply an update, or hold it until its turn."""
        if update.is_repeated or self._known.is_known(name_of(update)):
            self._answer_repeated(update)
            return
        members, now_s = update.members, time.monotonic()
        stale = self._staleness(update)
        has_been_refused = any(key_of(member) in self._refused for member in members)
        is_new = self._known.are_new(update) and not has_been_refused
        if update.summed and (stale is not None or not is_new):
            self._return_sum(update)
            return
        has_grant = update.head.is_granted and all(member.transfer_id for member in members)
        if has_grant:
            self._pace.note(update, now_s)
        refusal = stale
        if has_grant and refusal is None and not self.gate.is_replica:
            refusal = size_problem(self._order, update)
        self._known.add(update)
        if refusal is not None:
            ready = self._order.arrive(key_of_first(update), None, update, now_s)[1:]
            self._deny(update, refusal)
        else:
            for member in members[1:] if has_grant else ():
                self._order.cover(key_of(member), member.sequence)
            sequence = members[0].sequence if has_grant else None
            ready = self._order.arrive(key_of_first(update), sequence, update, now_s)
            is_late = any(each.item is update and not each.is_in_place for each in ready)
            if not (is_late and self.gate.refusal(update)):
                for member in members:
                    self._report(self._arrival(member, has_grant and not is_late, update.is_early))
        self._take(ready)

    def _arrival(
        self, update: SummedUpdate | UpdateKey, is_granted: bool, is_early: bool = False
    ) -> StationReport:
        """Return what the scheduler is told of an update that is there."""
        worker_id, transfer_id = update.worker_id, update.transfer_id
        if self.gate.is_replica:
            return ReplicaReceived(worker_id, transfer_id)
        return TransferDelivered(worker_id, transfer_id, is_granted, is_early=is_early)

    # The station's events.

    def on_event(self, event: StationEvent) -> None:
        """Learn what the scheduler tells."""
        match event:
            case StationRegistered():
                self._is_registered, self._registration = True, event.registration
                self.gate.on_registered(event.allowed)
                ready = self._order.restart(event.next_sequence)
                for update in self._order.held():
                    for member in update.members:
                        self._report(self._arrival(member, is_granted=True))
                self._report_version()
                self._take(ready)
                self.on_registered()
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
            case SwitchGroupExpected():
                self.on_switch_group(event)
            case CommitSkipped():
                self.counters["skipped_places"] += 1
                self._take(self._order.skip(event.sequence))
            case _ if isinstance(event, ReplicaEvent):
                self.gate.on_event(event)
                self._answer_state()
            case _:
                pass  # for workers
        self._ports.on_room()  # what was held may come now

    def on_failed(self, error: HostlibError) -> None:
        """Learn that the scheduler refuses this process; servers apply updates as they come."""
        self.problem = error
        self._is_registered = False
        self.gate.on_failed(error)
        what = "updates are refused" if self.gate.is_closed else "updates are applied as they come"
        _logger.error("no transfer scheduling, %s: %s", what, error)
        self._ports.on_room()  # nothing is held any longer

    # The tables call the methods below.

    def refusal(self, request: TableChange) -> HostlibError | None:
        """Return why a change that is no TRANSFER has no effect, None if it may have."""
        return self.gate.refusal_of_change(request)

    def on_update_applied(self, request: TableChange) -> None:
        """Tell workers and scheduler, unless a worker's process was replaced meanwhile."""
        update, is_in_place, was_replaced = self._submitted.pop(UpdateName(*request[1:4]))
        self._report_soon()
        if was_replaced:
            self.counters["granted_updates"] += 1
            self._known.discard(update)
            self.release(update)
            return
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
        self.counters[fate(update.head.is_granted, is_in_place)] += 1
        port = self._ports.of(*member[:2])
        if port is not None:
            port.on_committed(CommittedFrame(member.number, version, delay))
        callback = self.on_update
        if callback is not None:
            committed = CommittedUpdate(member.worker_id, table, version, delay, is_in_place)
            guard(lambda: callback(committed))

    def on_update_denied(self, request: TableChange, error: HostlibError) -> None:
        """Tell the worker why its update has no effect."""
        update, is_in_place, _ = self._submitted.pop(UpdateName(*request[1:4]))
        self._report_soon()
        if update.summed:
            self._return_sum(update)
            return
        self.counters["denied_updates"] += 1
        self._refuse(update, error)
        if self.gate.is_replica and is_in_place:
            self._report(ReplicaFailed(str(error)))

    def on_logged(self, error: HostlibError | None) -> None:
        """Go on with what waits for the log."""
        self.after_log(error)
        self._answer_state()

    def on_model_read(self, worker_id: int, table: int) -> None:
        """Tell the callback."""
        callback = self.on_request
        if callback is not None:
            guard(lambda: callback(worker_id, table))

    def _take(self, ready: Iterable[ReadyUpdate[IncomingUpdate]]) -> None:
        """Have updates applied, in this order; then wait for the next place."""
        for update, is_in_place in ready:
            unplanned = None if is_in_place else self.gate.refusal(update)
            if unplanned is not None:
                self.gate.keep(update) if self.gate.is_holding else self._deny(update, unplanned)
                continue
            was_replaced = not self._known.are_current(update)
            if was_replaced and not (self.gate.is_replica and is_in_place):
                self._return_sum(update) if update.summed else self._forget(update)
                continue
            stale = self._staleness(update)
            if stale is not None:
                self._deny(update, stale)
            else:
                self._submit(update, is_in_place, was_replaced)
        self._await_place()
        self._answer_state()

    def _submit(self, update: IncomingUpdate, is_in_place: bool, was_replaced: bool) -> None:
        head, payload = update.head, update.payload
        assert payload is not None
        if update.summed:
            members = [SumMember._make(member[:4]) for member in update.summed]
            pack_members_into(payload, members)
        else:
            factor = head.factor if head.is_granted else 1.0
            open_from = 0 if was_replaced else head.open_from
            ScheduledUpdate(factor, open_from).pack_into(payload)
        kind = FrameKind.SUM if update.summed else FrameKind.TRANSFER
        name = name_of(update)
        self._submitted[name] = SubmittedUpdate(update, is_in_place, was_replaced)
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
        if self._tau_max is None or self.gate.is_replica:
            return None  # a replica applies what its server has applied
        submitted = sum(len(each.update.members) for each in self._submitted.values())
        now = self._tables.state.num_commits + submitted
        return staleness(update, now, self._tau_max)

    def _deny(
        self,
        update: IncomingUpdate,
        error: StaleUpdateError | UnplannedUpdateError | PeerMismatchError,
    ) -> None:
        if update.summed:
            self._return_sum(update)
            return
        # One that left its group while its sum was returned may come twice.
        is_again = update.members[0].transfer_id and key_of_first(update) in self._refused
        self.counters["repeated_updates" if is_again else REFUSALS[type(error)]] += 1
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
                port = self._ports.of(*member[:2])
                if port is not None and not self._known.is_known(name_in(member)):
                    port.send_again(member.number)
            port = self._ports.of_sender(update)
            if port is not None:
                text = f"the sum of {len(update.summed)} updates has no effect: they come alone"
                port.on_denied(update.head.number, PeerMismatchError(text))
        self.release(update)

    def _answer_sum(self, update: IncomingUpdate) -> None:
        if (port := self._ports.of_sender(update)) is not None:
            port.on_committed(CommittedFrame(update.head.number, self._tables.state.num_commits, 0))

    def _refuse(self, update: IncomingUpdate, error: HostlibError) -> None:
        if (port := self._ports.of_sender(update)) is not None:
            port.on_denied(update.head.number, error)
        self._free_refused(update)

    def _forget(self, update: IncomingUpdate) -> None:
        self.counters["forgotten_updates"] += 1
        self._refuse(update, is_replaced(update.worker_id))

    def _free_refused(self, update: IncomingUpdate) -> None:
        key, granted = key_of_first(update), update.head.is_granted
        self._refused.append(key)
        if not self.gate.is_replica:
            self._report(TransferDelivered(*key, is_granted=granted, is_refused=True))
        self._known.discard(update)
        self.release(update)

    def _answer_repeated(self, update: IncomingUpdate) -> None:
        """Answer an update that is applied already; the others have their answer later."""
        self.counters["repeated_updates"] += 1
        if update.payload is not None:  # it began to come before the other
            self.release(update)
        state = self._tables.state
        worker, port = state.workers[update.worker_id], self._ports.of_sender(update)
        if port is not None and update.head.number in worker.updates:
            port.on_committed(CommittedFrame(update.head.number, state.num_commits, 0))

    def report(self, report: StationReport) -> None:
        """Tell the scheduler something, if it knows this server."""
        if self._is_registered:
            self._report(report)

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
        if self.gate.is_asked:
            workers = range(len(self._tables.state.workers))
            is_settled = not self._submitted and not any(map(self._tables.num_open, workers))
            self.gate.answer(self._next_sequence, is_settled=is_settled)

    @property
    def _next_sequence(self) -> int:
        """The first place that is not over here."""
        in_log = (each.update.members[0] for each in self._submitted.values() if each.is_in_place)
        return min((first.sequence for first in in_log), default=self._order.next or 0)

    def _promoted(self) -> None:
        """Go on as the server."""
        self._report_soon()
        self.on_promoted()
