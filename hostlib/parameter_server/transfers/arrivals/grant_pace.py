# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whether workers keep to their grants, as a server sees it."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Final

from ..update_port import IncomingUpdate
from .place_order import PlaceOrder, UpdateKey

EARLY_S: Final = 0.2
"""An update that comes in less than half of the time that its grant allows is early, by more than
this."""
_logger = logging.getLogger(__name__)


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
