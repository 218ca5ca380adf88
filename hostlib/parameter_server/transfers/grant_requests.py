# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's requests for grants: asked, repeated, and given up after a bounded wait."""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Final, final

from ...control.stations.station import (
    StationCut,
    StationEvent,
    StationRegistered,
    StationReport,
    TransferDropped,
    TransferGranted,
    TransferRefused,
    TransferRequested,
    TransferWithdrawn,
)
from ...errors import UpdateRefusedError
from ...peers.event_loop import EventLoop
from .granted_rate import GrantedRate
from .outgoing import OutgoingUpdate, PartOutcome

KEPT_GRANTED: Final = 256
"""How many granted transfers are remembered, for grants that come again."""
_logger = logging.getLogger(__name__)


@final
class GrantRequests:
    """Runs in the loop's thread. Updates leave by `send` once they are granted, or go directly.

    An update that has no answer after `grant_wait_s` is sent without a grant. So is one that is
    pushed while the scheduler has been away for so long.
    """

    def __init__(
        self,
        loop: EventLoop,
        *,
        grant_wait_s: float,
        report: Callable[[StationReport, int], None],
        send: Callable[[OutgoingUpdate], None],
        counters: Counter[str],
    ) -> None:
        self._loop = loop
        self._grant_wait_s = grant_wait_s
        self._tell = report
        self._registration = 0
        self._send = send
        self._counters = counters
        self._next_id = 1
        self._is_registered = False
        self._has_been_registered = False
        self._away_s = time.monotonic()
        self._is_silent = False  # and it has been logged
        self._unnumbered: list[OutgoingUpdate] = []
        self._waiting: dict[int, OutgoingUpdate] = {}  # by transfer id
        self._granted: deque[int] = deque(maxlen=KEPT_GRANTED)

    def ask(self, update: OutgoingUpdate) -> None:
        """Ask for a grant; the update's `done` learns if it is dropped."""
        now_s = time.monotonic()
        if not self._is_registered and now_s - self._away_s >= self._grant_wait_s:
            self._go_directly(update)
            return
        if self._has_been_registered:
            self._number(update)
        else:
            self._unnumbered.append(update)
            self._expire_later(update)

    def take_all(self) -> list[OutgoingUpdate]:
        """Return what waits for an answer, and forget it."""
        updates = [*self._unnumbered, *self._waiting.values()]
        self._unnumbered.clear()
        self._waiting.clear()
        return updates

    def on_event(self, event: StationEvent) -> None:
        """Learn what the scheduler tells."""
        match event:
            case StationRegistered():
                self._on_registered(event)
            case StationCut():
                self._is_registered, self._away_s = False, time.monotonic()
            case TransferGranted():
                self._on_granted(event)
            case TransferDropped():
                self._on_dropped(event)
            case TransferRefused():
                self._on_refused(event)
            case _:
                pass  # for servers

    def report(self, report: StationReport) -> None:
        """Tell the scheduler, if the registration that this object knows of stands."""
        self._tell(report, self._registration)

    def _on_registered(self, told: StationRegistered) -> None:
        self._registration = told.registration
        self._is_registered = self._has_been_registered = True
        if told.grant_wait_s > 0:
            self._grant_wait_s = told.grant_wait_s
        self._next_id = max(self._next_id, told.next_transfer_id)
        for update in self._waiting.values():
            self._request(update)
        unnumbered, self._unnumbered = self._unnumbered, []
        for update in unnumbered:
            self._number(update)

    def _number(self, update: OutgoingUpdate) -> None:
        update.transfer_id, self._next_id = self._next_id, self._next_id + 1
        self._waiting[update.transfer_id] = update
        self._request(update)
        self._expire_later(update)

    def _expire_later(self, update: OutgoingUpdate) -> None:
        self._loop.call_later(self._grant_wait_s, lambda: self._expire(update))

    def _request(self, update: OutgoingUpdate) -> None:
        self.report(
            TransferRequested(
                update.transfer_id,
                update.shard,
                update.payload.nbytes,
                update.version,
                update.norm,
                update.sum_key,
                update.clock,
            )
        )

    def _on_granted(self, grant: TransferGranted) -> None:
        self._note_answer()
        update = self._waiting.pop(grant.transfer_id, None)
        if update is not None:
            update.grant = grant
            update.rate = GrantedRate(grant.spans, time.monotonic()) if grant.spans else None
            self._granted.append(grant.transfer_id)
            self._counters["granted_updates"] += 1
            self._send(update)
        elif grant.transfer_id not in self._granted:
            # It was sent directly meanwhile: nothing more comes.
            self.report(TransferWithdrawn(grant.transfer_id, is_sent_ungranted=True))

    def _on_dropped(self, dropped: TransferDropped) -> None:
        self._note_answer()
        update = self._waiting.pop(dropped.transfer_id, None)
        if update is None:
            return  # it has left already
        self._counters["dropped_updates"] += 1
        reason = dropped.reason or "the scheduler gives no reason"
        update.done(PartOutcome(shard=update.shard, delay=dropped.delay, drop_reason=reason))

    def _on_refused(self, refused: TransferRefused) -> None:
        update = self._waiting.pop(refused.transfer_id, None)
        if update is not None:
            self._counters["refused_updates"] += 1
            update.done(UpdateRefusedError(f"server {update.shard}: {refused.reason}"))

    def _expire(self, update: OutgoingUpdate) -> None:
        if update in self._unnumbered:
            self._unnumbered.remove(update)
        elif self._waiting.get(update.transfer_id) is update:
            del self._waiting[update.transfer_id]
        else:
            return
        self._go_directly(update)

    def _go_directly(self, update: OutgoingUpdate) -> None:
        self._counters["ungranted_updates"] += 1
        if not self._is_silent:
            self._is_silent = True
            _logger.warning(
                "the transfer scheduler gives no answer in %.1f s: updates are sent without grants"
                " until it does",
                self._grant_wait_s,
            )
        if update.transfer_id:
            self.report(TransferWithdrawn(update.transfer_id, is_sent_ungranted=True))
        self._send(update)

    def _note_answer(self) -> None:
        if self._is_silent:
            self._is_silent = False
            _logger.warning("the transfer scheduler answers again: updates wait for grants")
