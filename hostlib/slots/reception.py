# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Datagrams that are no awaited results, counted by cause."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..control.view import JobView
from .datagram_ring import Words
from .slot_stream import SlotStream
from .wire import HEADER_BYTES, HEADER_DTYPE, WIRE_VERSION, Operation


@dataclass(frozen=True, kw_only=True)
class Notice:
    """The switch's answer to a probe: the state of a slot copy."""

    slot: int
    """Number of the slot in the view."""
    round: int
    worker_bitmap: int


def headers_of(words: Words) -> NDArray[np.void]:
    """Return the headers of datagrams as a copy of dtype HEADER_DTYPE."""
    size = HEADER_BYTES // 4
    return np.ascontiguousarray(words[:, :size]).view(HEADER_DTYPE)[:, 0]


def sort_out(
    words: Words,
    slots: NDArray[np.int64],
    view: JobView,
    streams: tuple[SlotStream, SlotStream],
    counters: Counter[str],
) -> list[Notice]:
    """Count datagrams that are no awaited results by cause; return the notices among them.

    `slots` are the view's slots of the datagrams. Causes are version, operation, foreign_job,
    generation, slot, mismatch (the awaited round with another tensor or range), and duplicate (a
    result that has come before).
    """
    headers = headers_of(words)
    left = np.ones(len(headers), np.bool_)

    def refuse(cause: str, is_bad: NDArray[np.bool_]) -> None:
        nonlocal left
        count = int(np.count_nonzero(is_bad & left))
        if count:
            counters[cause] += count
            left = left & ~is_bad

    operation = headers["operation"]
    tree_ids = [tree.tree_id for tree in view.trees]
    refuse("version", headers["version"] != WIRE_VERSION)
    refuse("operation", (operation != Operation.RESULT) & (operation != Operation.NOTICE))
    refuse("foreign_job", ~np.isin(headers["job_id"], tree_ids))
    refuse("generation", headers["generation"] != view.generation)
    refuse("slot", ~(streams[0].owns(slots) | streams[1].owns(slots)))
    notices: list[Notice] = []
    for place in np.flatnonzero(left).tolist():
        header = headers[place]
        slot, round_ = int(slots[place]), int(header["round"])
        stream = streams[0] if streams[0].owns(slots[place : place + 1])[0] else streams[1]
        if header["operation"] == Operation.NOTICE:
            counters["notice"] += 1
            bitmap = int(header["worker_bitmap"])
            notices.append(Notice(slot=slot, round=round_, worker_bitmap=bitmap))
        elif stream.outstanding_round(slot) == round_:
            counters["mismatch"] += 1
        else:
            counters["duplicate"] += 1
    return notices
