# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whether workers keep to their grants, as a server sees it."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Final

from ....errors import PeerMismatchError
from ..update_port import IncomingUpdate
from .known_updates import key_of_first
from .place_order import PlaceOrder, UpdateKey

EARLY_S: Final = 0.2
"""An update that comes in less than half of the time that its grant allows is early, by more than
this."""
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


def note_pace(
    order: PlaceOrder[IncomingUpdate],
    update: IncomingUpdate,
    counters: Counter[str],
    now_s: float,
    *,
    is_registered: bool,
) -> None:
    """Count a granted update that left its group, is not planned, or came long before its time."""
    if update.head.has_left_group:
        counters["left_updates"] += 1
        return
    for member in update.members:
        told = order.expected(UpdateKey(member.worker_id, member.transfer_id))
        if told is None:
            is_over = order.next is None or member.sequence < order.next
            counters["unplanned_updates"] += is_registered and not is_over
            continue
        place, told_s = told
        early_s = told_s + place.earliest_s - now_s
        if early_s > max(EARLY_S, place.earliest_s / 2):
            counters["early_updates"] += 1
            _logger.warning(
                "transfer %d of worker %d came %.1f s before its time: the worker seems to ignore"
                " its grants. Update it, or its library",
                member.transfer_id,
                member.worker_id,
                early_s,
            )
