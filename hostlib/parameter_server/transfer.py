# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The exchange of one key's values with the shards."""

from __future__ import annotations

from concurrent.futures import Future
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ..errors import (
    ExchangeTimeoutError,
    MemberLostError,
    PeerError,
    PeerMismatchError,
    ServerRestartedError,
)
from .layout import Key, Pair
from .pair_state import Failure, FailureKind
from .rules import Values


@final
class PullFuture(Future[NDArray[np.float32]]):
    """The result of a key; callbacks run in the client's thread and must be short."""

    def __init__(self) -> None:
        super().__init__()
        self.num_contributors = 0
        """Fewest contributors of any pair of the result; 0 until done."""
        self.set_running_or_notify_cancel()  # sent frames cannot be cancelled


class Matrix(NamedTuple):
    """Shapes of the factors of an update: u [rows, u_columns] and v [rows, v_columns]."""

    rows: int
    u_columns: int
    v_columns: int


class TransferName(NamedTuple):
    """Identifies one of a client's transfers."""

    key: int
    """Number of the key in the parameter layout."""
    iteration: int


@final
class KeyTransfer:
    """State of one call; used only in the client's thread."""

    def __init__(
        self,
        *,
        key: Key,
        iteration: int,
        source: NDArray[np.float32],
        out: NDArray[np.float32],
        matrix: Matrix | None,
    ) -> None:
        self.key = key
        self.iteration = iteration
        self.source: Values = source.reshape(-1)
        self.matrix = matrix
        """None: `source` is an update, not factors."""
        self.future = PullFuture()
        self.deadline_s = 0.0
        self.remaining: set[int] = {pair.number for pair in key.pairs}
        """Pairs whose answer is due."""
        self._out = out
        self._flat: Values = out.reshape(-1)
        self._is_shared = np.may_share_memory(source, out)

    @property
    def name(self) -> TransferName:
        """The name of this transfer in answers."""
        return TransferName(self.key.number, self.iteration)

    def pairs_of(self, shard: int) -> list[Pair]:
        """Return the pairs of a shard whose answer is due."""
        return [p for p in self.key.pairs if p.shard == shard and p.number in self.remaining]

    def part(self, pair: Pair) -> Values:
        """Return a pair's values, to send."""
        return self.source[pair.first : pair.first + pair.num_values]

    def place(self, pair: Pair) -> Values:
        """Return memory in which an answer may be received.

        It is never the source's memory, which is sent once more if the server dies meanwhile.
        """
        if self._is_shared:
            return np.empty(pair.num_values, np.float32)
        return self._flat[pair.first : pair.first + pair.num_values]

    def take(self, pair: Pair, values: Values, num_contributors: int) -> None:
        """Take a pair's answer."""
        place = self._flat[pair.first : pair.first + pair.num_values]
        if not np.may_share_memory(place, values):
            np.copyto(place, values)
        self.remaining.discard(pair.number)
        future = self.future
        fewest = future.num_contributors or num_contributors
        future.num_contributors = min(fewest, num_contributors)
        if not self.remaining:
            future.set_result(self._out)


def error_of(failure: Failure) -> PeerError:
    """Return the exception for a server's failure."""
    if failure.kind is FailureKind.LOST:
        return MemberLostError(failure.text, failure.worker_ids[0])
    if failure.kind in (FailureKind.MISSING, FailureKind.LATE):
        return ExchangeTimeoutError(failure.text, list(failure.worker_ids))
    if failure.kind is FailureKind.RESTARTED:
        return ServerRestartedError(failure.text)
    return PeerMismatchError(failure.text)
