# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The worker's part in going back to a checkpoint: it asks all shards, then chooses."""

from __future__ import annotations

from concurrent.futures import Future
from typing import final

from ..peers.frames import RestoreFrame


@final
class Restoration:
    """State of one `ParameterClient.restore`; used in the client's thread alone."""

    def __init__(self, num_shards: int, deadline_s: float) -> None:
        self.future: Future[int] = Future()
        self.future.set_running_or_notify_cancel()  # sent frames cannot be cancelled
        self.deadline_s = deadline_s
        self.waiting = set(range(num_shards))
        """Shards whose answer to the current step is due."""
        self._num_shards = num_shards
        self._common: set[int] | None = None
        self._chosen: int | None = None

    def step(self, shard: int) -> RestoreFrame | None:
        """Return what to send to a shard, None if it has answered."""
        return RestoreFrame(self._chosen) if shard in self.waiting else None

    def take(self, shard: int, choices: list[int] | None) -> bool:
        """Take an answer; return whether the next step is now to be sent to all shards."""
        if shard not in self.waiting or (choices is None) != (self._chosen is not None):
            return False  # an answer to the step before: the connection broke meanwhile
        self.waiting.discard(shard)
        if choices is not None:
            self._common = set(choices) if self._common is None else self._common & set(choices)
        if self.waiting:
            return False
        if self._chosen is None:
            assert self._common is not None
            self._chosen = max(self._common)
            self.waiting = set(range(self._num_shards))
            return True
        self.future.set_result(self._chosen)
        return False
