# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a server knows of its hot rows: a state machine, as that of the tables is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ...errors import StorageDamagedError
from ...peers.frames import DECISION_DTYPE
from .changes import HotChange, HotFence, HotLayout, HotSums
from .rounds import U32, RowRounds, RowsOfRounds
from .served_rows import Lanes, ServedRows, TableGradients

_ROUNDS: Final = "rounds"
_ROWS: Final = "rows"


class DecidedRounds(NamedTuple):
    """Rounds that a change has decided."""

    generation: int
    rounds: NDArray[np.void]
    """Of DECISION_DTYPE, without versions."""


class ArrivedSums(NamedTuple):
    """Sums that came from the switch, with the epochs of their rows."""

    asked: RowsOfRounds
    epochs: U32
    bitmaps: U32
    lanes: Lanes


@final
class HotState:
    """The hot rows and their rounds.

    The methods `claim_...` are called when a change is appended to the log, `enter` and `apply`
    when it is durable, in the same order.
    """

    def __init__(self, num_workers: int) -> None:
        self.rounds = RowRounds(num_workers)
        self.served = ServedRows()

    @property
    def generation(self) -> int:
        """Of the job's view to which the rows belong."""
        return self.rounds.generation

    def claim_sums(self, sums: ArrivedSums) -> HotSums:
        """Claim the rounds of those sums that are the first ones, and of the row's epoch."""
        is_ours = self.served.has_epochs(sums.asked.rows, sums.epochs)
        taken = np.flatnonzero(is_ours)
        taken = taken[self.rounds.claim(sums.asked.where(is_ours))]
        asked = RowsOfRounds(sums.asked.rows[taken], sums.asked.rounds[taken])
        return HotSums(self.generation, asked, sums.bitmaps[taken], sums.lanes[taken])

    def claim_fence(self, asked: RowsOfRounds) -> HotFence:
        """Claim rounds."""
        return HotFence(self.generation, asked.where(self.rounds.claim(asked)))

    def claim_all(self) -> RowsOfRounds:
        """Claim all open rounds: for the ENTER of a worker's new process."""
        return self.rounds.claim_open(self._all_rows())

    def claim_layout(self, change: HotLayout) -> RowsOfRounds:
        """Claim the open rounds of the rows that a layout changes."""
        return self.rounds.claim_open(self._changed_rows(change.served))

    def enter(self, worker_id: int) -> DecidedRounds:
        """Take a worker's new process."""
        self.rounds.forget_worker(worker_id)
        return DecidedRounds(self.generation, self.rounds.decide_open(self._all_rows()))

    def apply(self, change: HotChange) -> tuple[DecidedRounds, Iterator[TableGradients]]:
        """Take a change; return the rounds that it decided, and gradients that are to be applied.

        Raises StorageDamagedError for a sum of rows that are not hot.
        """
        generation = self.generation
        if isinstance(change, HotLayout):
            decided = self._take_rows(change.served)
            return DecidedRounds(generation, decided), iter(())
        if change.generation != generation:
            return DecidedRounds(generation, np.empty(0, DECISION_DTYPE)), iter(())
        bitmaps = np.zeros(change.decided.rows.size, np.uint32)
        gradients: Iterator[TableGradients] = iter(())
        if isinstance(change, HotSums):
            bitmaps = change.bitmaps
        is_new = self.rounds.decide(change.decided, bitmaps)
        rows, rounds = change.decided.where(is_new)
        if isinstance(change, HotSums):
            if (self.served.indexes(rows) < 0).any():
                raise StorageDamagedError("the log has a sum of a row that is not hot")
            gradients = self.served.gradients(rows, change.lanes[is_new])
        decided = np.zeros(rows.size, DECISION_DTYPE)
        decided["row"], decided["round"], decided["bitmap"] = rows, rounds, bitmaps[is_new]
        return DecidedRounds(generation, decided), gradients

    def pack(self) -> Iterator[tuple[str, bytes]]:
        """Yield named chunks for a snapshot."""
        yield _ROUNDS, self.rounds.pack()
        yield _ROWS, self.served.pack()

    def restore(self, name: str, data: memoryview) -> None:
        """Take a chunk of a snapshot. Raises StorageDamagedError."""
        if name == _ROUNDS:
            self.rounds.restore(data)
        elif name == _ROWS:
            self.served = ServedRows.unpack(data)
        else:
            raise StorageDamagedError(f"a chunk of hot {name!r}")

    def _take_rows(self, served: ServedRows) -> NDArray[np.void]:
        decided = self.rounds.decide_open(self._changed_rows(served))
        if served.generation != self.generation:
            self.rounds.start_generation(served.generation)
        self.rounds.make_rows(served.end)
        self.served = served
        return decided

    def _all_rows(self) -> U32:
        return self.served.rows["row"]

    def _changed_rows(self, served: ServedRows) -> U32:
        """Return the hot rows that others replace."""
        if served.generation != self.generation:
            return self._all_rows()
        return self.served.changed(served)
