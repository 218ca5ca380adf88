# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A station's requests for grants: asked, repeated, and given up after a bounded wait."""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar, final

from ...control.stations.station import (
    StationCut,
    StationEvent,
    StationRegistered,
    StationReport,
    TransferDropped,
    TransferGranted,
    TransferRefused,
    TransferWithdrawn,
)
from ...peers.event_loop import EventLoop
from .granted_rate import GrantedRate

KEPT_GRANTED: Final = 256
"""How many granted transfers are remembered, for grants that come again."""
_logger = logging.getLogger(__name__)


class GrantedItem(Protocol):
    """What a station sends by a grant: a worker an update, a server a model."""

    transfer_id: int
    """At the scheduler; 0: it does not know of it."""
    grant: TransferGranted | None
    rate: GrantedRate | None

    @property
    def shard(self) -> int:
        """The server."""
        ...

    def request(self) -> StationReport:
        """Return what to ask the scheduler for."""
        ...

    def drop(self, dropped: TransferDropped) -> None:
        """Learn that it is not sent."""
        ...

    def refuse(self, reason: str) -> None:
        """Learn that the scheduler cannot plan it."""
        ...


ItemT = TypeVar("ItemT", bound=GrantedItem)


@final
class GrantRequests(Generic[ItemT]):
    """Runs in the loop's thread. Items leave by `send` once they are granted, or go directly.

    An item that has no answer after `grant_wait_s` is sent without a grant. So is one that is
    asked for while the scheduler has been away for so long.
    """

    def __init__(
        self,
        loop: EventLoop,
        *,
        grant_wait_s: float,
        report: Callable[[StationReport, int], None],
        send: Callable[[ItemT], None],
        counters: Counter[str],
        what: str = "updates",
    ) -> None:
        """`what` the items are, in the names of counters and in logs."""
        self._loop = loop
        self._grant_wait_s = grant_wait_s
        self._tell = report
        self._registration = 0
        self._send = send
        self._counters = counters
        self._what = what
        self._next_id = 1
        self._is_registered = False
        self._has_been_registered = False
        self._away_s = time.monotonic()
        self._is_silent = False  # and it has been logged
        self._unnumbered: list[ItemT] = []
        self._waiting: dict[int, ItemT] = {}  # by transfer id
        self._granted: deque[int] = deque(maxlen=KEPT_GRANTED)
        self.must_wait: Callable[[int], bool] = lambda _shard: False
        """Whether updates for a server wait for as long as the scheduler is there."""

    def ask(self, item: ItemT) -> None:
        """Ask for a grant; the item's `done` learns if it is dropped."""
        now_s = time.monotonic()
        if not self._is_registered and now_s - self._away_s >= self._grant_wait_s:
            self._go_directly(item)
            return
        if self._has_been_registered:
            self._number(item)
        else:
            self._unnumbered.append(item)
            self._expire_later(item)

    def forget(self, item: ItemT) -> None:
        """Wait for no answer: the item is not sent any more."""
        if item in self._unnumbered:
            self._unnumbered.remove(item)
        elif self._waiting.get(item.transfer_id) is item:
            del self._waiting[item.transfer_id]
        if item.transfer_id:
            self.report(TransferWithdrawn(item.transfer_id, is_sent_ungranted=False))

    def take_all(self) -> list[ItemT]:
        """Return what waits for an answer, and forget it."""
        items = [*self._unnumbered, *self._waiting.values()]
        self._unnumbered.clear()
        self._waiting.clear()
        return items

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
        for item in self._waiting.values():
            self._request(item)
        unnumbered, self._unnumbered = self._unnumbered, []
        for item in unnumbered:
            self._number(item)

    def _number(self, item: ItemT) -> None:
        item.transfer_id, self._next_id = self._next_id, self._next_id + 1
        self._waiting[item.transfer_id] = item
        self._request(item)
        self._expire_later(item)

    def _expire_later(self, item: ItemT) -> None:
        self._loop.call_later(self._grant_wait_s, lambda: self._expire(item))

    def _request(self, item: ItemT) -> None:
        self.report(item.request())

    def _on_granted(self, grant: TransferGranted) -> None:
        self._note_answer()
        item = self._waiting.pop(grant.transfer_id, None)
        if item is not None:
            item.grant = grant
            item.rate = GrantedRate(grant.spans, time.monotonic()) if grant.spans else None
            self._granted.append(grant.transfer_id)
            self._counters[f"granted_{self._what}"] += 1
            self._send(item)
        elif grant.transfer_id not in self._granted:
            # It was sent directly meanwhile: nothing more comes.
            self.report(TransferWithdrawn(grant.transfer_id, is_sent_ungranted=True))

    def _on_dropped(self, dropped: TransferDropped) -> None:
        self._note_answer()
        item = self._waiting.pop(dropped.transfer_id, None)
        if item is None:
            return  # it has left already
        self._counters[f"dropped_{self._what}"] += 1
        item.drop(dropped)

    def _on_refused(self, refused: TransferRefused) -> None:
        item = self._waiting.pop(refused.transfer_id, None)
        if item is not None:
            self._counters[f"refused_{self._what}"] += 1
            item.refuse(refused.reason)

    def _expire(self, item: ItemT) -> None:
        is_waiting = self._waiting.get(item.transfer_id) is item
        if is_waiting and self._waits_on(item):
            self._expire_later(item)
            return
        if item in self._unnumbered:
            self._unnumbered.remove(item)
        elif self._waiting.get(item.transfer_id) is item:
            del self._waiting[item.transfer_id]
        else:
            return
        self._go_directly(item)

    def _waits_on(self, item: ItemT) -> bool:
        return self._is_registered and self.must_wait(item.shard)

    def _go_directly(self, item: ItemT) -> None:
        self._counters[f"ungranted_{self._what}"] += 1
        if not self._is_silent:
            self._is_silent = True
            _logger.warning(
                "the transfer scheduler gives no answer in %.1f s: %s are sent without grants"
                " until it does",
                self._grant_wait_s,
                self._what,
            )
        if item.transfer_id:
            self.report(TransferWithdrawn(item.transfer_id, is_sent_ungranted=True))
        self._send(item)

    def _note_answer(self) -> None:
        if self._is_silent:
            self._is_silent = False
            _logger.warning("the transfer scheduler answers again: %s wait for grants", self._what)
