# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The ranks of a new process group agree, through its store, on how it runs."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import timedelta

from hostlib.torch.errors import GroupJoinError
from hostlib.torch.torch_seam import PrefixStore, Store


class Rendezvous:
    """Exchanges one text per rank and step; every wait ends with the group's timeout."""

    def __init__(self, store: Store, rank: int, num_ranks: int, timeout: timedelta) -> None:
        self._store = PrefixStore("switchfold", store)
        self._rank = rank
        self._num_ranks = num_ranks
        self._deadline_s = time.monotonic() + timeout.total_seconds()

    @property
    def remaining(self) -> timedelta:
        """What is left of the timeout, at least a moment."""
        return timedelta(seconds=max(0.05, self._deadline_s - time.monotonic()))

    def exchange(self, step: str, text: str) -> Sequence[str]:
        """Tell all ranks `text` and return what each said, by rank.

        Raises GroupJoinError naming the ranks that said nothing within the timeout.
        """
        self._store.set(f"{step}/{self._rank}", json.dumps(text))
        keys = [f"{step}/{rank}" for rank in range(self._num_ranks)]
        try:
            self._store.wait(keys, self.remaining)
        except RuntimeError as error:
            raise GroupJoinError(
                f"rank {self._rank}: {self._silent(keys)} did not come to {step} the process group"
                " within its timeout; see whether all ranks run and make the same groups"
            ) from error
        return [json.loads(self._store.get(key)) for key in keys]

    def _silent(self, keys: list[str]) -> str:
        silent = [rank for rank, key in enumerate(keys) if not self._store.check([key])]
        return f"ranks {silent}" if silent else "not all ranks"
