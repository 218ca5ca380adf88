# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The server's part when all workers go back to a checkpoint.

First every worker asks; after that no older update is under way. Then the shard offers all workers
the iterations that it has on disk. The workers choose the newest iteration that all shards have,
and the first choice that arrives sets the shard back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from .checkpoint import CheckpointStore

NOTHING = -1
"""Iteration of the empty checkpoint, which every shard has."""


@final
class Recovery:
    """State of one shard; used in the loop's thread."""

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
        self._owed: set[int] = set()  # workers that have not chosen since the last offer was due
        self._current: int | None = None

    @property
    def is_asked(self) -> bool:
        """Whether some workers, but not all, have asked."""
        return bool(self._asked)

    def ask(self, worker_id: int) -> None:
        """Note that a worker asks; after the last one, call `offer` for all workers (None).

        A worker that asks again before it has chosen has lost its connection: it gets the same
        offer again.
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
        """Set the shard back at the first choice; for later ones it is done already."""
        self._owed.discard(worker_id)
        if self._current != iteration:
            self._reset(iteration)
            self._current = iteration
