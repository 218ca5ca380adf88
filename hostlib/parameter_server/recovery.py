# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Going back to a checkpoint, all workers together.

First every worker asks: only then nobody's older updates are under way, and a shard says what it
has on disk, to all the same. Workers choose the newest iteration that all shards have, and the
first to say so sets the shard back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from .checkpoint import CheckpointStore

NOTHING = -1
"""The checkpoint before the first: always there, and empty."""


@final
class Recovery:
    """A shard's part; runs in the loop's thread."""

    def __init__(
        self,
        num_workers: int,
        store: CheckpointStore | None,
        *,
        post: Callable[[Callable[[], None]], None],
        offer: Callable[[list[int], int | None], None],
        reset: Callable[[int], None],
    ) -> None:
        self._num_workers = num_workers
        self._store = store
        self._post = post
        self._offer = offer
        self._reset = reset
        self._asked: set[int] = set()
        self._choices: list[int] | None = None
        self._owed: set[int] = set()  # who has not chosen since `_choices` were wanted
        self._current: int | None = None

    @property
    def is_asked(self) -> bool:
        """Whether some workers, not all, want to go back."""
        return bool(self._asked)

    def ask(self, worker_id: int) -> None:
        """Note that a worker wants to go back; after the last, `offer` is called, for all (None).

        Who asks again before it has chosen lost its connection meanwhile: it gets the offer anew.
        """
        if worker_id in self._owed and not self._asked:
            if self._choices is not None:
                self._offer(self._choices, worker_id)
            return
        self._asked.add(worker_id)
        if len(self._asked) < self._num_workers:
            return
        self._owed, self._asked = self._asked, set()
        self._current = self._choices = None
        if self._store is None:
            self._offer_all([])
            return
        self._store.list_iterations(lambda found: self._post(lambda: self._offer_all(found)))

    def _offer_all(self, found: list[int]) -> None:
        self._choices = [NOTHING, *found]
        self._offer(self._choices, None)

    def go_back(self, worker_id: int, iteration: int) -> None:
        """Set the shard back, for the first worker that says so; others find it done."""
        self._owed.discard(worker_id)
        if self._current != iteration:
            self._reset(iteration)
            self._current = iteration
