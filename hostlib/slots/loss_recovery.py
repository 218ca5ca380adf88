# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which chunks of a stream are to be sent again, and when: by later results, silence, or timers.

Every transmission has a number of its own, both the first and the repeated ones, as in QUIC (RFC
9002). A result comes only when all workers have contributed, and workers send the chunks of a tree
in the same order. So three results of chunks that were first sent later, on the same tree, show
that a packet of an earlier chunk was lost. For a chunk that was sent again, the sign is three
results of any later transmissions, and half a round trip: other workers may notice a loss later,
and send again in another order. If no result comes at all, the last chunks may have been lost,
which no later result can show. Then the oldest few are sent again, as a probe (RFC 8985). The
retransmission timer is the last resort.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from .rtt import RoundTripTimer

LATER_RESULTS: Final = 3
"""Results of later transmissions that show a loss; fewer may be due to reordering."""
SKEW_SHARE: Final = 0.5
"""Other workers may notice a loss later by this part of the round trip."""
PROBE_CHUNKS: Final = LATER_RESULTS + 1
"""Chunks sent again after silence: their results show what else was lost."""
STORM_LIMIT: Final = 8
"""Retransmissions per expiry while nothing at all arrives."""
NEVER: Final = np.iinfo(np.int64).max
"""Number of a row that waits for no result; no transmission is later."""

Rows = NDArray[np.int64]


class _LatestNumbers:
    """The LATER_RESULTS largest numbers of each tree, smallest first."""

    def __init__(self, num_trees: int) -> None:
        self._numbers = np.full((num_trees, LATER_RESULTS), -1)

    def least(self, trees: Rows | int) -> NDArray[np.int64] | np.int64:
        """Return the number below which transmissions have LATER_RESULTS later results."""
        return self._numbers[trees, 0]

    def latest(self, trees: Rows) -> Rows:
        """Return the largest number of each of these trees."""
        return self._numbers[trees, -1]

    def add(self, trees: Rows, numbers: Rows) -> None:
        """Add transmissions that have results, each once."""
        num_trees = len(self._numbers)
        known = np.concatenate((self._numbers.reshape(-1), numbers))
        if num_trees == 1:
            known.sort()
            self._numbers[0] = known[-LATER_RESULTS:]
            return
        of_tree = np.concatenate((np.repeat(np.arange(num_trees), LATER_RESULTS), trees))
        known = known[np.lexsort((known, of_tree))]
        ends = np.cumsum(np.bincount(of_tree, minlength=num_trees))
        self._numbers = known[ends[:, None] + np.arange(-LATER_RESULTS, 0)]


class LossRecovery:
    """The transmissions of one stream's slots: one row for each slot, which belongs to a tree."""

    def __init__(self, tree_of_row: NDArray[np.int64], timer: RoundTripTimer) -> None:
        rows = len(tree_of_row)
        num_trees = int(tree_of_row.max(initial=0)) + 1
        self._timer = timer
        self._tree_of_row = tree_of_row
        self._trees = tree_of_row if num_trees > 1 else 0
        self._number = np.full(rows, NEVER)  # of the latest transmission
        self._first = np.full(rows, NEVER)  # of the first one
        self._sent_at_s = np.zeros(rows)
        self._deadline_s = np.full(rows, np.inf)
        self._is_again = np.zeros(rows, np.bool_)
        self._has_again = False  # whether any of these may be set
        self._has_withheld = False
        self._next_number = 0
        # By tree, the latest transmissions with results: counted by first and by latest one.
        self._first_done = _LatestNumbers(num_trees)
        self._done = _LatestNumbers(num_trees)
        self._next_expiry_s = np.inf
        self._probe_s = np.inf  # when to probe after silence; inf: nothing is due, or it was done
        self._has_progress = True
        self._has_sample = True

    @property
    def next_s(self) -> float:
        """When `silent` or `expired` is to be called next."""
        return min(self._next_expiry_s, self._probe_s)

    @property
    def has_again(self) -> bool:
        """Whether a chunk without result was sent again, or is withheld."""
        return self._has_again

    def start(
        self,
        rows: slice,
        now_s: float,
        withheld: NDArray[np.bool_] | None,
        *,
        after_pause: bool,
    ) -> None:
        """Note first transmissions; those `withheld` are not sent, now or ever."""
        if after_pause:
            # Other workers may be late: the first expiry sends a few chunks again, not all.
            self._has_progress = False
            self._probe_s = now_s + self._timer.probe_s
        deadline_s = now_s + self._timer.timeout_s
        count = rows.stop - rows.start
        numbers = np.arange(self._next_number, self._next_number + count, dtype=np.int64)
        self._number[rows] = numbers
        self._first[rows] = numbers
        self._next_number += count
        self._sent_at_s[rows] = now_s
        self._deadline_s[rows] = deadline_s
        if withheld is not None:
            # Chunks that were not sent yield no round trip.
            self._is_again[rows] = withheld
            self._has_again = self._has_withheld = True
            self._number[rows][withheld] = self._first[rows][withheld] = NEVER
            self._deadline_s[rows][withheld] = np.inf
        self._next_expiry_s = min(self._next_expiry_s, deadline_s)

    def start_again(self, rows: Rows, now_s: float, *, is_probe: bool = False) -> None:
        """Note that rows were sent again, in this order; probes leave the timers as they are."""
        self._number[rows] = np.arange(self._next_number, self._next_number + len(rows))
        self._next_number += len(rows)
        self._sent_at_s[rows] = now_s
        if not is_probe:
            self._deadline_s[rows] = now_s + self._timer.timeout_s
        self._is_again[rows] = self._has_again = True

    def finish_run(self, rows: slice, now_s: float, *, is_sampled: bool, is_idle: bool) -> None:
        """Note the results of the oldest chunks, with nothing missing between them.

        With `is_idle` no other chunk is without result, here and below.
        """
        if self._has_again:
            if is_sampled and not self._is_again[rows.start]:
                self._add_sample(now_s - float(self._sent_at_s[rows.start]))
            self._note_latest(np.arange(rows.start, rows.stop, dtype=np.int64), now_s)
        elif is_sampled:
            self._add_sample(now_s - float(self._sent_at_s[rows.start]))
        # Otherwise all chunks without result were sent after these, which can show no loss.
        self._release(rows)
        self._note_progress(now_s, is_idle=is_idle)

    def finish(
        self, rows: Rows, now_s: float, is_prompt: NDArray[np.bool_], *, is_idle: bool
    ) -> None:
        """Note results in any order, one of each row; only prompt ones tell the round trip."""
        fresh = rows[~self._is_again[rows] & is_prompt]
        if len(fresh):
            # One sample per batch, that of the slowest chunk, which is on the safe side.
            self._add_sample(now_s - float(self._sent_at_s[fresh].min()))
        self._note_latest(rows, now_s)
        self._release(rows)
        self._note_progress(now_s, is_idle=is_idle)

    def abandon(self, rows: Rows, *, is_idle: bool) -> None:
        """Stop waiting for rows."""
        self._release(rows)
        if is_idle:
            self._probe_s = np.inf

    def lost(self, now_s: float) -> Rows:
        """Return the rows that later results show to be lost, oldest chunk first."""
        if not self._has_again:
            rows = np.flatnonzero(self._number < self._first_done.least(self._trees))
            return self._in_order(rows)
        rows = np.flatnonzero(self._number < self._done.least(self._trees))
        if not len(rows):
            return rows
        trees = self._tree_of_row[rows]
        is_lost = self._number[rows] < self._first_done.least(trees)
        is_late = self._sent_at_s[rows] <= now_s - SKEW_SHARE * (self._timer.smoothed_s or 0.0)
        return self._in_order(rows[np.where(self._is_again[rows], is_late, is_lost)])

    def num_new(self, rows: Rows) -> int:
        """Return how many of these rows were sent only once so far."""
        return len(rows) - int(np.count_nonzero(self._is_again[rows]))

    def silent(self, now_s: float) -> Rows:
        """Return the oldest few rows if no result has come for longer than results take."""
        if now_s < self._probe_s:
            return np.empty(0, np.int64)
        self._probe_s = np.inf
        return self._in_order(np.flatnonzero(self._number < NEVER))[:PROBE_CHUNKS]

    def expired(self, now_s: float) -> tuple[Rows, int]:
        """Return the rows whose timers have run out, and how many of them later results outran.

        All of them, oldest chunk first, or the oldest few while nothing arrives.
        """
        if now_s < self._next_expiry_s:
            return np.empty(0, np.int64), 0
        rows = self._in_order(np.flatnonzero(self._deadline_s <= now_s))
        # If all chunks wait, another worker may be late.
        latest = self._first_done.latest(self._tree_of_row[rows])
        outrun = int(np.count_nonzero(self._number[rows] < latest))
        if len(rows):
            if not self._has_sample:
                # No result came within the timeout: the round trip may exceed it.
                self._timer.back_off()
            self._deadline_s[rows] = now_s + self._timer.timeout_s
            if not self._has_progress:
                rows = rows[:STORM_LIMIT]
            self._has_progress = self._has_sample = False
        self._next_expiry_s = float(self._deadline_s.min())
        return rows, outrun

    def _note_latest(self, rows: Rows, now_s: float) -> None:
        """Note the transmissions that results answer, or may answer."""
        trees = self._tree_of_row[rows]
        first = self._first[rows]
        if self._has_withheld:
            is_sent = first < NEVER
            rows, trees, first = rows[is_sent], trees[is_sent], first[is_sent]
        self._first_done.add(trees, first)
        latest = first
        if self._has_again:
            # A result that came faster than any before it answers an earlier transmission.
            is_answer = self._sent_at_s[rows] <= now_s - self._timer.least_s
            latest = np.where(is_answer, self._number[rows], first)
        self._done.add(trees, latest)

    def _in_order(self, rows: Rows) -> Rows:
        return rows[np.argsort(self._first[rows])]

    def _release(self, rows: Rows | slice) -> None:
        self._number[rows] = self._first[rows] = NEVER
        self._deadline_s[rows] = np.inf
        if self._has_again:
            self._is_again[rows] = False
            self._has_again = bool(np.count_nonzero(self._is_again))

    def _add_sample(self, sample_s: float) -> None:
        self._timer.add_sample(sample_s)
        self._has_sample = True

    def _note_progress(self, now_s: float, *, is_idle: bool) -> None:
        self._has_progress = True
        self._probe_s = np.inf if is_idle else now_s + self._timer.probe_s
