# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The part of a timeline that a page draws: a window of time, and lanes of transfers in it."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...errors import TransferLogEmptyError
from .records import RecordedAllreduce, RecordedTransfer, TransferTimeline

MOST_TRANSFERS: Final = 2000
"""That are drawn, with allreduces."""
MOST_WORKERS: Final = 32
"""That have a row."""
MOST_LANES: Final = 6
"""Of a worker's updates, and of its models; the last one has what has no room above."""
_LEAST_S: Final = 0.001


Lanes = list[tuple[int, RecordedTransfer]]
"""Transfers with the numbers of their lanes, which count from 0."""


@dataclass(frozen=True, kw_only=True)
class WorkerRow:
    """What is drawn of a worker."""

    worker: int
    updates: Lanes
    models: Lanes
    num_crowded: int
    """Transfers that are drawn over others, in the last lane."""

    @property
    def num_update_lanes(self) -> int:
        """How many lanes the updates need; 1 at least."""
        return max((lane for lane, _ in self.updates), default=0) + 1

    @property
    def num_model_lanes(self) -> int:
        """How many lanes the models need."""
        return max((lane for lane, _ in self.models), default=-1) + 1


@dataclass(frozen=True, kw_only=True)
class TimelineWindow:
    """A part of a timeline."""

    from_s: float
    until_s: float
    rows: list[WorkerRow]
    before: int
    """Transfers that had ended before the window."""
    after: int
    """Transfers that began after it."""
    is_cut: bool
    """It ends earlier than was asked for, since it would have too many transfers."""
    hidden_workers: list[int]
    """Workers with transfers in the window that have no row."""

    @property
    def num_crowded(self) -> int:
        """Transfers that are drawn over others, in the last lane of their worker."""
        return sum(row.num_crowded for row in self.rows)

    @property
    def length_s(self) -> float:
        """How long it is; above 0."""
        return self.until_s - self.from_s

    def clip(self, time_s: float) -> float:
        """Return the time in the window that is closest to a time."""
        return min(self.until_s, max(self.from_s, time_s))


def window_of(
    timeline: TransferTimeline,
    from_s: float | None = None,
    until_s: float | None = None,
    *,
    most: int = MOST_TRANSFERS,
) -> TimelineWindow:
    """Return the part of a timeline between two times, the first `most` transfers of it.

    None: from the first event, until the last one. Raises TransferLogEmptyError if the recording
    is over before `from_s`.
    """
    begin_s = from_s or 0.0
    if begin_s > timeline.length_s:
        raise TransferLogEmptyError(
            f"job {timeline.job} was recorded for {timeline.length_s:.1f} s, and nothing from"
            f" {begin_s:g} s on: give an earlier time to --from"
        )
    end_s = timeline.length_s if until_s is None else min(until_s, timeline.length_s)
    end_s = max(end_s, begin_s + _LEAST_S)
    transfers = timeline.transfers
    inside = [each for each in transfers if each.first_s <= end_s and last_s(each) >= begin_s]
    before = sum(last_s(each) < begin_s for each in transfers)
    times_s = [each.first_s for each in inside]
    sums = [each for each in timeline.allreduces if last_of_sum_s(each) >= begin_s]
    times_s += [each.granted_s for each in sums if each.granted_s <= end_s]
    times_s += [time_s for time_s, _ in timeline.failed if begin_s <= time_s <= end_s]
    times_s.sort()
    if is_cut := len(times_s) > most:
        end_s = max(times_s[most], begin_s + _LEAST_S)
        inside = [each for each in inside if each.first_s < end_s][:most]
    workers = sorted({each.worker for each in inside})
    return TimelineWindow(
        from_s=begin_s,
        until_s=end_s,
        rows=[_row(number, inside) for number in workers[:MOST_WORKERS]],
        before=before,
        after=len(transfers) - before - len(inside),
        is_cut=is_cut,
        hidden_workers=workers[MOST_WORKERS:],
    )


def last_s(transfer: RecordedTransfer) -> float:
    """Return the end of what is drawn of a transfer: of its events, and of its plan."""
    return max(transfer.last_s, transfer.ends_s or 0.0)


def last_of_sum_s(allreduce: RecordedAllreduce) -> float:
    """Return the end of what is drawn of an allreduce."""
    planned_s = allreduce.granted_s + (allreduce.planned_s or 0.0)
    return max(planned_s, allreduce.ended_s or 0.0)


def _row(worker: int, transfers: Sequence[RecordedTransfer]) -> WorkerRow:
    own = [each for each in transfers if each.worker == worker]
    updates = _lanes([each for each in own if not each.is_model])
    models = _lanes([each for each in own if each.is_model])
    return WorkerRow(
        worker=worker,
        updates=_bounded(updates),
        models=_bounded(models),
        num_crowded=sum(lane >= MOST_LANES for lane, _ in (*updates, *models)),
    )


def _lanes(transfers: Sequence[RecordedTransfer]) -> Lanes:
    """Give each of some transfers, in order of their first times, the first lane that is free."""
    busy: list[tuple[float, int]] = []
    free: list[int] = []
    found: Lanes = []
    for each in transfers:
        while busy and busy[0][0] <= each.first_s:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (last_s(each), lane))
        found.append((lane, each))
    return found


def _bounded(lanes: Lanes) -> Lanes:
    return [(min(lane, MOST_LANES - 1), each) for lane, each in lanes]
