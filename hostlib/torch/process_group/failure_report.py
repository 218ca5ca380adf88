# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Reports that ranks of a group exchange when a collective does not end or has failed.

Ranks exchange nothing while collectives succeed. A rank that has waited for a second writes its
latest calls into the group's store and reads those of other waiting ranks. This distinguishes ranks
whose calls differ from slow ranks. A rank whose collective fails does the same and waits a moment
for other ranks that fail. This distinguishes a wrong shape on one rank from a lost rank.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping
from datetime import timedelta
from typing import Final, TypeVar

from ..errors import CollectiveError, CollectiveMismatchError
from ..torch_seam import PrefixStore
from .call_log import CallLog, LoggedCall, difference, from_text, to_text
from .rendezvous import RankPlace

GRACE: Final = timedelta(seconds=0.5)
"""How long a failed rank waits for the others' reports."""
MISMATCH_GRACE: Final = timedelta(seconds=2)
"""How long it waits if it was told that the ranks differ: all of them fail then."""
FIRST_LOOK_S: Final = 1.0
"""How long a rank waits for a collective before it first reads the others' calls."""
MAX_LOOK_S: Final = 4.0
"""Longest time between two reads."""
HEARD: Final = timedelta(seconds=1.5)
"""How long a rank that has seen a difference waits until the others have seen it, too."""

_Answer = TypeVar("_Answer")


def look_pauses_s() -> Generator[float]:
    """Yield the time to wait before each read of the store, in seconds."""
    pause_s = FIRST_LOOK_S
    while True:
        yield pause_s
        pause_s = min(1.5 * pause_s, MAX_LOOK_S)


class FailureReport:
    """Reports of one group; each rank reports its first failure. Safe from any thread."""

    def __init__(self, place: RankPlace, log: CallLog) -> None:
        self._store = PrefixStore("failures", place.store)
        self._rank = place.rank
        self._others = [other for other in range(place.num_ranks) if other != place.rank]
        self._log = log
        self._lock = threading.Lock()
        self._has_reported = False
        self._difference = ""

    def disagreement(self) -> str:
        """Publish this rank's calls; return how the calls of the ranks differ.

        The text names ranks, collectives and a remedy; it is empty if the known calls agree. This
        takes a few RTTs to the store.
        """
        with self._lock:
            if not self._difference:
                self._difference = self._reached(self._compare, "")
                if self._difference:
                    self._reached(self._wait_until_heard, None)
                    # More ranks have published their calls since this rank's first comparison.
                    self._difference = self._reached(self._compare, self._difference)
            return self._difference

    def explain(self, place: str, error: CollectiveError) -> CollectiveError:
        """Report this rank's error to the others; return it with what they report.

        It becomes a CollectiveMismatchError if the ranks' calls differ. Later errors of this rank
        are returned unchanged.
        """
        with self._lock:
            if self._has_reported:
                return error
            self._has_reported = True
            kinds = self._reached(lambda: self._exchange(error), {})
            self._difference = self._difference or self._reached(self._compare, "")
            differs = self._difference
        if differs:
            explained = CollectiveMismatchError(f"{place}: {differs}. Here: {error}")
        elif kinds:
            texts = [f"rank {rank} ({kind})" for rank, kind in kinds.items()]
            silent = [rank for rank in self._others if rank not in kinds]
            if silent:
                texts.append(f"nothing was heard of ranks {silent}")
            explained = type(error)(f"{error}. It failed elsewhere, too: {'; '.join(texts)}")
        else:
            return error
        explained.__cause__ = error.__cause__
        return explained

    def _compare(self) -> str:
        calls: Mapping[int, LoggedCall] = self._log.latest()
        self._store.set(f"calls/{self._rank}", to_text(calls))
        calls_by_rank = {self._rank: calls}
        for rank in self._others:
            key = f"calls/{rank}"
            if self._store.check([key]):
                calls_by_rank[rank] = from_text(self._store.get(key).decode())
        differs = difference(calls_by_rank)
        if not differs:
            return ""
        return (
            f"the ranks called different collectives: {differs}; call the same ones, in the same"
            " order, with the same shapes, dtypes and operations, on all ranks; then destroy the"
            " process group and init again"
        )

    def _wait_until_heard(self) -> None:
        self._store.set(f"heard/{self._rank}", "")
        self._reached(
            lambda: self._store.wait([f"heard/{rank}" for rank in self._others], HEARD), None
        )

    def _exchange(self, error: CollectiveError) -> dict[int, str]:
        self._store.set(f"calls/{self._rank}", to_text(self._log.latest()))
        self._store.set(f"heard/{self._rank}", "")
        self._store.set(f"failed/{self._rank}", type(error).__name__)
        keys = {rank: f"failed/{rank}" for rank in self._others}
        grace = MISMATCH_GRACE if isinstance(error, CollectiveMismatchError) else GRACE
        self._reached(lambda: self._store.wait(list(keys.values()), grace), None)
        return {
            rank: self._store.get(key).decode()
            for rank, key in keys.items()
            if self._store.check([key])
        }

    @staticmethod
    def _reached(ask: Callable[[], _Answer], otherwise: _Answer) -> _Answer:
        """Return the store's answer, or `otherwise`: the rank that keeps the store may be gone."""
        try:
            return ask()
        except RuntimeError:  # the base of torch's DistStoreError and DistNetworkError
            return otherwise
