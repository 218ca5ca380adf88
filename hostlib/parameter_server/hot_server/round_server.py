# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Decides rounds: by the sums that come from the switch, or because workers wait for them."""

from __future__ import annotations

import time
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ...peers.event_loop import EventLoop
from ...peers.frames import DECISION_DTYPE
from ...slots.wire import Flag
from .planning import HotPlanner
from .rounds import RowRounds, RowsOfRounds
from .state import ArrivedSums
from .switch_end import SwitchEnd
from .tables_seam import HotTables

_ALL_LEVELS: Final = 255
"""In a flush: it ends the rounds of switches at all levels."""
_OVERFLOW: Final = int(Flag.OVERFLOW)
_NO_NUMBERS = np.empty(0, np.uint32)
_FENCE_AFTER: Final = 3.0
"""A round that was asked for is fenced after so many times `flush_s`."""


class DueRounds(NamedTuple):
    """What to do with rounds that are undecided."""

    flushed: RowsOfRounds
    fenced: RowsOfRounds


@final
class AskedRounds:
    """At most two rounds per row: no others are undecided, and could be asked for."""

    def __init__(self, flush_s: float) -> None:
        self._fence_s = _FENCE_AFTER * flush_s
        self.clear()

    def __len__(self) -> int:
        return self._rounds.rows.size

    def clear(self) -> None:
        """Forget all."""
        self._rounds = RowsOfRounds(_NO_NUMBERS, _NO_NUMBERS)
        self._since_s: NDArray[np.float64] = np.empty(0, np.float64)

    def add(self, asked: RowsOfRounds, now_s: float) -> RowsOfRounds:
        """Remember undecided rounds; return those that are new."""
        known = self._codes(self._rounds)
        new = asked.where(~np.isin(self._codes(asked), known))
        self._rounds = RowsOfRounds(
            np.concatenate([self._rounds.rows, new.rows]),
            np.concatenate([self._rounds.rounds, new.rounds]),
        )
        self._since_s = np.concatenate([self._since_s, np.full(new.rows.size, now_s)])
        return new

    def take_due(self, rounds: RowRounds, now_s: float) -> DueRounds:
        """Forget decided rounds; return what to do with the others."""
        is_open = rounds.is_undecided(self._rounds)
        self._rounds, self._since_s = self._rounds.where(is_open), self._since_s[is_open]
        is_late = now_s - self._since_s >= self._fence_s
        return DueRounds(self._rounds.where(~is_late), self._rounds.where(is_late))

    @staticmethod
    def _codes(rounds: RowsOfRounds) -> NDArray[np.uint64]:
        return rounds.rows.astype(np.uint64) << np.uint64(32) | rounds.rounds


@final
class RoundServer:
    """Runs in the loop's thread.

    Counters: hot_decides (rounds that workers have asked about), hot_late (sums of rounds that were
    decided or claimed), hot_stale (sums of other rows or epochs), hot_overflows, hot_busy (sums for
    which the log had no room).
    """

    def __init__(
        self,
        loop: EventLoop,
        tables: HotTables,
        planner: HotPlanner,
        end: SwitchEnd | None,
        flush_s: float,
    ) -> None:
        self._loop = loop
        self._tables = tables
        self._counters = tables.counters
        self._planner = planner
        self._end = end
        self._flush_s = flush_s
        self._asked = AskedRounds(flush_s)
        self._is_armed = False

    def forget(self) -> None:
        """Forget what workers have asked about: other rows are hot."""
        self._asked.clear()

    def take_results(self, results: NDArray[np.void]) -> None:
        """Claim first sums, and log them."""
        header, state = results["header"], self._tables.hot_state
        asked = RowsOfRounds(
            header["slot_index"].astype(np.uint32), header["round"].astype(np.uint32)
        )
        if not self._tables.takes_hot:
            self._counters["hot_busy"] += results.size
            self._ask(asked.where(state.rounds.is_undecided(asked)))
            return
        epochs = header["tensor_id"].astype(np.uint32)
        is_ours = state.served.has_epochs(asked.rows, epochs)
        is_over = is_ours & ((header["flags"] & _OVERFLOW) != 0)
        good = np.flatnonzero(is_ours & ~is_over)
        sums = state.claim_sums(
            ArrivedSums(
                RowsOfRounds(asked.rows[good], asked.rounds[good]),
                epochs[good],
                header["worker_bitmap"][good].astype(np.uint32),
                results["values"][good].astype(np.int32),
            )
        )
        # No sum of the others can count, and the switch has nothing else of their rounds.
        fence = state.claim_fence(asked.where(~is_ours | is_over))
        self._counters["hot_late"] += good.size - sums.bitmaps.size
        self._counters["hot_stale"] += int((~is_ours).sum())
        self._counters["hot_overflows"] += int(is_over.sum())
        self._planner.note_overflows(asked.rows[is_over])
        if sums.bitmaps.size:
            self._planner.note_sums(state.served, sums.decided.rows, sums.bitmaps, sums.lanes)
        self._tables.submit_hot(sums)
        self._tables.submit_hot(fence)

    def decide(self, generation: int, asked: RowsOfRounds, worker_id: int) -> NDArray[np.void]:
        """Decide rounds soon; return those that are decided already, as their worker sees them.

        The result is of DECISION_DTYPE, without versions.
        """
        self._counters["hot_decides"] += asked.rows.size
        rounds = self._tables.hot_state.rounds
        over = asked
        if generation == rounds.generation:
            known = asked.where(asked.rows < rounds.next.size)
            self._ask(known.where(rounds.is_undecided(known)))
            over = known.where(rounds.is_decided(known))
        decided = np.zeros(over.rows.size, DECISION_DTYPE)
        decided["row"], decided["round"] = over
        decided["bitmap"][rounds.counts(over, worker_id, generation)] = 1 << worker_id
        return decided

    def _ask(self, asked: RowsOfRounds) -> None:
        """Flush rounds now and again, and fence them if that does not help."""
        new = self._asked.add(asked, time.monotonic())
        self._flush(new)
        self._arm()

    def _arm(self) -> None:
        if not self._is_armed and len(self._asked):
            self._is_armed = True
            self._loop.call_later(self._flush_s, self._ask_again)

    def _ask_again(self) -> None:
        self._is_armed = False
        state = self._tables.hot_state
        due = self._asked.take_due(state.rounds, time.monotonic())
        self._flush(due.flushed)
        self._tables.submit_hot(state.claim_fence(due.fenced))
        self._arm()

    def _flush(self, asked: RowsOfRounds) -> None:
        served, end = self._tables.hot_state.served, self._end
        if end is None or not end.speaks(served.generation):
            return
        indexes = served.indexes(asked.rows)
        rows, rounds = asked.where(indexes >= 0)
        epochs = served.rows["epoch"][indexes[indexes >= 0]]
        end.send(end.packets.flush(rows, epochs, rounds, level=_ALL_LEVELS))
