# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whether workers keep to their grants, as a server sees it."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Final, final

from ....errors import PeerMismatchError
from ..update_port import IncomingUpdate
from .known_updates import key_of_first
from .place_order import PlaceOrder, UpdateKey

EARLY_S: Final = 0.2
"""An update is read from so long before its granted time on. One that comes in less than half of
the time that its grant allows is early, by more than this."""
_logger = logging.getLogger(__name__)


def size_problem(
    order: PlaceOrder[IncomingUpdate], update: IncomingUpdate
) -> PeerMismatchError | None:
    """Return why a granted update is not of the size that was planned, None if it is, or a sum."""
    told = None if update.summed else order.expected(key_of_first(update))
    num_bytes = update.head.num_bytes
    if told is None or told[0].size_bytes in (0, num_bytes):
        return None
    problem = PeerMismatchError(
        f"update {update.head.number} of worker {update.worker_id} has {num_bytes} bytes, but the"
        f" worker asked the scheduler for a grant of {told[0].size_bytes} bytes, and links are kept"
        " free for no more. Update the worker, or its library"
    )
    _logger.warning("%s", problem)
    return problem


@final
class GrantPace:
    """Holds granted updates back until their times, and notes those that came long before.

    Runs in the loop's thread. `counters`: early_updates, unplanned_updates and left_updates of
    UpdateService.
    """

    def __init__(
        self,
        order: PlaceOrder[IncomingUpdate],
        counters: Counter[str],
        is_registered: Callable[[], bool],
    ) -> None:
        """`is_registered()`: whether the scheduler knows this server now."""
        self._order = order
        self._counters = counters
        self._is_registered = is_registered

    def hold_s(self, update: IncomingUpdate) -> float:
        """Return for how many seconds no byte of an update should be read, 0.0 if it may come.

        Only an update that travels by itself, in a place that the scheduler has told, is held, and
        only while the scheduler is there: without it, nobody keeps links free for others.
        """
        head = update.head
        is_bound = head.is_granted and head.transfer_id and not head.has_left_group
        if not is_bound or update.summed or not self._is_registered():
            return 0.0
        key, now_s = key_of_first(update), time.monotonic()
        told = self._order.expected(key)
        if told is None or told[1] + told[0].begins_s - EARLY_S <= now_s:
            return 0.0
        left_s = self._order.opens_s(key) - EARLY_S - now_s
        if left_s <= 0:
            return 0.0
        self._note_early(update, key, told[0].begins_s, told[1], now_s)
        return left_s

    def note(self, update: IncomingUpdate, now_s: float) -> None:
        """Count a granted update that left its group, is not planned, or came too early."""
        if update.head.has_left_group:
            self._counters["left_updates"] += 1
            return
        for member in update.members:
            key = UpdateKey(member.worker_id, member.transfer_id)
            told = self._order.expected(key)
            if told is not None:
                self._note_early(update, key, told[0].earliest_s, told[1], now_s)
                continue
            next_place = self._order.next
            is_over = next_place is None or member.sequence < next_place
            self._counters["unplanned_updates"] += self._is_registered() and not is_over

    def _note_early(
        self, update: IncomingUpdate, key: UpdateKey, after_s: float, told_s: float, now_s: float
    ) -> None:
        """Count an update that is there in less than half of the time that it should take."""
        early_s = told_s + after_s - now_s
        if update.is_early or early_s <= max(EARLY_S, after_s / 2):
            return
        update.is_early = not update.summed  # whether member or aggregator did it is not known
        self._counters["early_updates"] += 1
        _logger.warning(
            "transfer %d of worker %d came %.1f s before its time: the worker seems to ignore"
            " its grants. Update it, or its library",
            *(key.transfer_id, key.worker_id, early_s),
        )
