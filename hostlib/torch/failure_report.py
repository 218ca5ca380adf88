# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the ranks of a group tell each other when a collective has failed.

Nothing is exchanged while all goes well. A rank whose collective fails writes what it had called
into the group's store, waits a moment for the others that fail, too, and adds to its error what
they had called: that tells a wrong shape on one rank from a rank that is gone.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Final, TypeVar

from hostlib.torch.errors import CollectiveError, CollectiveMismatchError
from hostlib.torch.torch_seam import PrefixStore, Store

GRACE: Final = timedelta(seconds=0.5)
"""How long a failed rank waits for the others' words."""

_Answer = TypeVar("_Answer")


class FailureReport:
    """One group's report; each rank tells its first failure."""

    def __init__(self, store: Store, rank: int, num_ranks: int) -> None:
        self._store = PrefixStore("failures", store)
        self._rank = rank
        self._others = [other for other in range(num_ranks) if other != rank]
        self._lock = threading.Lock()
        self._has_told = False

    def explain(self, place: str, called: str, error: CollectiveError) -> CollectiveError:
        """Return the error with what the other ranks say; tell them what was called here.

        It becomes a CollectiveMismatchError where they had called something else. The rank's later
        failures are returned as they are.
        """
        with self._lock:
            if self._has_told:
                return error
            self._has_told = True
        nothing: dict[int, tuple[str, str]] = {}
        said = self._reached(lambda: self._exchange(called, error), nothing)
        if not said:
            return error
        texts = [f"rank {rank} {what} ({kind})" for rank, (what, kind) in said.items()]
        silent = [rank for rank in self._others if rank not in said]
        if silent:
            texts.append(f"nothing was heard of ranks {silent}")
        others = "; ".join(texts)
        explained = type(error)(f"{error}. It failed elsewhere, too: {others}")
        if any(what != called for what, _ in said.values()):
            explained = CollectiveMismatchError(
                f"{place}: the ranks called different collectives: {others}; call the same ones,"
                f" with the same shapes, dtypes and operations, on all ranks. Here: {error}"
            )
        explained.__cause__ = error.__cause__
        return explained

    def _exchange(self, called: str, error: CollectiveError) -> dict[int, tuple[str, str]]:
        self._store.set(str(self._rank), json.dumps([called, type(error).__name__]))
        keys = [str(rank) for rank in self._others]
        self._reached(lambda: self._store.wait(keys, GRACE), None)
        said: dict[int, tuple[str, str]] = {}
        for rank, key in zip(self._others, keys, strict=True):
            if self._store.check([key]):
                what, kind = json.loads(self._store.get(key))
                said[rank] = (what, kind)
        return said

    @staticmethod
    def _reached(ask: Callable[[], _Answer], otherwise: _Answer) -> _Answer:
        """Return the answer of the store, which may live in a rank that is gone."""
        try:
            return ask()
        except RuntimeError:  # the base of torch's DistStoreError and DistNetworkError
            return otherwise
