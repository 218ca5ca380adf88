# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The ranks of a new process group agree, through its store, on how it runs."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NoReturn

from ..errors import GroupJoinError
from ..torch_seam import PrefixStore, Store

FIRST_PAUSE_S: Final = 0.001
MAX_PAUSE_S: Final = 0.2
"""Pause between two checks of the store. `Store.wait` would log each timeout as a warning."""
HEARD: Final = timedelta(seconds=4)
"""How long a rank that gives up waits until the others know: it may be the one with the store."""

GRACE_S: Final = 5.0
"""Least time for a step, if the timeout is not shorter. The previous step may have used up the
timeout, as joining does without a controller, and ranks end it at different times."""


@dataclass(frozen=True)
class RankPlace:
    """A rank of a process group, with the store that the group's ranks share."""

    store: Store
    rank: int
    num_ranks: int


class Rendezvous:
    """Exchanges one text per rank and step; every wait ends with the group's timeout."""

    def __init__(self, place: RankPlace, timeout: timedelta) -> None:
        self._store = PrefixStore("switchfold", place.store)
        self._rank = place.rank
        self._num_ranks = place.num_ranks
        self._timeout_s = timeout.total_seconds()
        self._deadline_s = time.monotonic() + self._timeout_s

    @property
    def remaining(self) -> timedelta:
        """The rest of the timeout, at least 0.05 s."""
        return timedelta(seconds=max(0.05, self._deadline_s - time.monotonic()))

    def exchange(self, step: str, text: str = "") -> Sequence[str]:
        """Send `text` to all ranks and return the texts of all, by rank.

        Raises GroupJoinError that names the ranks without a text within the timeout. When the
        timeout passes on one rank, all ranks in this step raise it.
        """
        self._store.set(f"{step}/{self._rank}", json.dumps(text))
        keys = [f"{step}/{rank}" for rank in range(self._num_ranks)]
        absent: list[int] = []
        until_s = max(self._deadline_s, time.monotonic() + min(GRACE_S, self._timeout_s))
        try:
            pause_s = FIRST_PAUSE_S
            while not self._store.check(keys):
                self._hear(step)
                absent = [rank for rank, key in enumerate(keys) if not self._store.check([key])]
                if time.monotonic() > until_s and absent:
                    self._give_up(step, absent)
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, MAX_PAUSE_S)
            self._hear(step)  # the others may have given up before this rank came
            return [json.loads(self._store.get(key)) for key in keys]
        except GroupJoinError:
            raise
        except RuntimeError as error:  # the base of torch's DistStoreError and DistNetworkError
            gone = "; the store that the ranks meet in is gone, with the rank that kept it"
            raise self._error(step, absent, gone) from error

    def _hear(self, step: str) -> None:
        """Raise GroupJoinError, and acknowledge it in the store, if another rank has given up."""
        key = f"{step}/given up"
        if self._store.check([key]):
            self._store.set(f"{step}/heard/{self._rank}", "")
            raise self._error(step, json.loads(self._store.get(key)))

    def _give_up(self, step: str, absent: list[int]) -> NoReturn:
        """Tell the ranks that have come, wait until they know, and raise GroupJoinError."""
        self._store.set(f"{step}/heard/{self._rank}", "")
        self._store.set(f"{step}/given up", json.dumps(absent))
        here = [rank for rank in range(self._num_ranks) if rank not in (*absent, self._rank)]
        if here:
            with contextlib.suppress(RuntimeError):  # a busy rank will see the key, or no store
                self._store.wait([f"{step}/heard/{rank}" for rank in here], HEARD)
        raise self._error(step, absent)

    def _error(self, step: str, absent: list[int], more: str = "") -> GroupJoinError:
        who = f"ranks {absent}" if absent else "some ranks"
        if 0 in absent and len(absent) > 1:
            # Only a guess: with init_method env:// and tcp://, PyTorch's rank 0 keeps the store.
            more += " (rank 0 may itself be waiting for the others, if it keeps their store)"
        return GroupJoinError(
            f"rank {self._rank}: {who} did not come to {step} the process group within its timeout"
            f" of {self._timeout_s:g} s{more}; check that all ranks run and make the same groups"
        )
