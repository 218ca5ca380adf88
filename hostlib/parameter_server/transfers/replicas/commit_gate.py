# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a server with a replica may apply, and the replica itself: planned updates, as allowed.

While the gate is closed, an update without a place would make the two models differ: it is refused.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import final

from ....control.stations.replica_terms import (
    CommitAllowed,
    ReplicaEvent,
    ReplicaJoined,
    ReplicaLeft,
    ReplicaPromoted,
    StateReported,
    StateWanted,
)
from ....errors import ConfigurationError, HostlibError, UnplannedUpdateError, WorkerTakenError
from ....peers.event_loop import EventLoop, Timer
from ....peers.frames import FrameKind
from ...tables.change import TableChange
from ...tables.service import TableService
from ..arrivals.place_order import PlaceOrder, ReadyUpdate
from ..update_port import IncomingUpdate
from .model_checksum import stored_state, unstarted_tables

_logger = logging.getLogger(__name__)
Ready = Sequence[ReadyUpdate[IncomingUpdate]]


@final
class CommitGate:
    """Runs in the loop's thread. `take(ready)` has updates applied, or refused by `refusal`."""

    def __init__(  # noqa: PLR0913 - what it decides on, and whom it tells
        self,
        order: PlaceOrder[IncomingUpdate],
        loop: EventLoop,
        tables: TableService,
        *,
        is_replica: bool,
        take: Callable[[Ready], None],
        report_state: Callable[[StateReported], None],
        on_promoted: Callable[[], None],
    ) -> None:
        self.is_replica = is_replica
        """This process is a replica, and applies what its server has applied."""
        self.is_closed = is_replica
        """Only planned updates are applied, as far as they are allowed."""
        self._order = order
        self._loop = loop
        self._tables = tables
        self._take = take
        self._report_state = report_state
        self._on_promoted = on_promoted
        self._floor = 0
        """Places below are of the server whose place this replica has taken."""
        self._hold_s = 0.0
        self._timer: Timer | None = None
        self._is_cut = False
        self._is_deposed = False
        self._wanted_from: int | None = None
        """The state is wanted once all places below are over; None: it is not."""
        self._allowed_later: int | None = None
        """What the scheduler has allowed meanwhile."""
        self._unplanned: list[IncomingUpdate] = []
        """They have come while the scheduler is away."""
        self._unstarted = frozenset[int]()
        if is_replica:
            order.limit = 0

    @property
    def is_holding(self) -> bool:
        """Whether unplanned updates are kept until the scheduler is back, or is given up."""
        return self.is_closed and self._is_cut and not self.is_replica and not self._is_deposed

    def refusal(self, update: IncomingUpdate) -> UnplannedUpdateError | None:
        """Return why an update that is not in its place is not applied, None if it is."""
        head = update.head
        if self.is_closed:
            why = "its server has a replica, and the scheduler has no place for the update"
            if self._is_deposed:
                why = "a replica has taken the server's place"
        elif head.is_granted and head.sequence < self._floor:
            why = "it was granted for a server whose place a replica has taken"
        else:
            return None
        return UnplannedUpdateError(
            f"update {head.number} of worker {update.worker_id} is not applied: {why}; get the"
            " model, and push again"
        )

    def keep(self, update: IncomingUpdate) -> None:
        """Keep an unplanned update while `is_holding`."""
        self._unplanned.append(update)

    def refusal_of_change(self, request: TableChange) -> ConfigurationError | None:
        """Return why a change of the tables that is no scheduled update has no effect."""
        if not self.is_closed or self.is_replica:
            return None
        is_push = request.kind in (FrameKind.PUSH, FrameKind.RATE)
        is_start = request.kind is FrameKind.START and request.table in self._unstarted
        if not (is_push or is_start):
            return None
        return ConfigurationError(
            f"{request.kind.name} of worker {request.worker_id}: this server has a replica, which"
            " would not get it. Push by FabricWorker, and give first values before the replica"
            " joins"
        )

    # The scheduler.

    def on_registered(self, allowed: int | None) -> None:
        """Learn that the scheduler is back, and how far it allows commits; None: no limit."""
        self._is_cut = False
        self._stop_timer()
        if self.is_replica:
            return
        if allowed is None:
            self.open()
            return
        self.is_closed, self._order.limit = True, allowed
        self._release_unplanned()

    def on_cut(self) -> None:
        """Learn that the scheduler is away: a server with a replica waits for a while."""
        self._is_cut = True
        if self.is_closed and not self.is_replica and self._timer is None:
            self._timer = self._loop.call_later(self._hold_s, self._tire)

    def on_failed(self, error: HostlibError) -> None:
        """Learn that the scheduler refuses this process for good."""
        self._stop_timer()
        if self.is_replica or not self.is_closed:
            return
        if isinstance(error, WorkerTakenError):
            self._is_deposed = True
            self._release_unplanned()
        else:
            self.open()

    def on_event(self, event: ReplicaEvent) -> None:
        """Learn what the scheduler tells of replicas."""
        match event:
            case StateWanted():
                self._close(max(event.next_sequence, self._order.next or 0))
                self._wanted_from, self._allowed_later = event.next_sequence, None
                self._unstarted = unstarted_tables(self._tables.state)
            case ReplicaJoined():
                self._hold_s = event.hold_s
                if self.is_replica:
                    self._order.limit = event.next_sequence
                    self._take(self._order.restart(event.next_sequence))
                else:
                    self._close(event.next_sequence)
            case ReplicaLeft():
                if not self.is_replica:
                    _logger.warning("this server goes on without a replica: %s", event.reason)
                    self.open()
            case CommitAllowed():
                if self._wanted_from is not None:
                    self._allowed_later = event.next_sequence
                elif self.is_closed:
                    self._take(self._order.allow(event.next_sequence))
            case ReplicaPromoted():
                if self.is_replica:
                    self._promote(event)
            case _:
                pass  # for workers

    @property
    def is_asked(self) -> bool:
        """Whether the scheduler waits for the state."""
        return self._wanted_from is not None

    def answer(self, next_sequence: int, *, is_settled: bool) -> None:
        """Report the state that is wanted, unless something is still on its path to the tables.

        `next_sequence`: the first place that is not over. `is_settled`: nothing is in the log that
        is not applied. Then what the scheduler has allowed meanwhile is applied.
        """
        if self._wanted_from is None or not is_settled or next_sequence < self._wanted_from:
            return
        self._wanted_from = None
        self._report_state(stored_state(self._tables, next_sequence))
        limit, self._allowed_later = self._allowed_later, None
        if limit is not None:
            self._take(self._order.allow(limit))

    def open(self) -> None:
        """Apply updates as they come in their order, without a replica."""
        self.is_closed, self._wanted_from = False, None
        self._stop_timer()
        self._take(self._order.allow(None))
        self._release_unplanned()

    def _close(self, limit: int) -> None:
        self.is_closed, self._order.limit = True, limit

    def _promote(self, event: ReplicaPromoted) -> None:
        """Become the server: apply what it had applied, and refuse the rest that was for it."""
        self._take(self._order.allow(event.first_lost))
        self.is_replica = self.is_closed = False
        self._floor = event.next_sequence
        self._take(self._order.restart(event.next_sequence))
        self._take(self._order.allow(None))
        _logger.warning("this replica has taken the place of its server")
        self._on_promoted()

    def _tire(self) -> None:
        self._timer = None
        _logger.warning(
            "no transfer scheduler for %.1f s: this server goes on without its replica",
            self._hold_s,
        )
        self.open()

    def _release_unplanned(self) -> None:
        updates, self._unplanned = self._unplanned, []
        if updates:
            self._take([ReadyUpdate(update, is_in_place=False) for update in updates])

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
