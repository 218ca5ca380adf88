# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The updates of one pair, by iteration: its contributors, the sum, and the kept answers.

Updates are added in float32 in the order of worker ids, whatever order they arrive in. One sum is
made, and all workers get its bytes.
"""

from __future__ import annotations

import enum
from typing import NamedTuple, Protocol, final

import numpy as np

from .rules import Values, as_workers_sent


class FailureKind(enum.StrEnum):
    """Reasons of failures, as they are sent."""

    MISMATCH = enum.auto()
    """Workers disagree, or a frame is malformed."""
    MISSING = enum.auto()
    """Workers did not contribute in time."""
    LOST = enum.auto()
    """A worker's connection is gone for good."""
    RESTARTED = enum.auto()
    """The server was killed, and updates are lost."""
    LATE = enum.auto()
    """This worker is too late."""


KEPT_ANSWERS = 8
"""Most answers that are kept for slow workers; a worker that is later gets an error."""
_FREE_BUFFERS = 64


@final
class BufferPool:
    """Memory for pairs, to be used again: new memory costs a page fault per 4 KiB."""

    def __init__(self, num_values: int) -> None:
        self._num_values = num_values
        self._free: list[Values] = []

    def take(self, num_values: int) -> Values:
        """Return memory for so many values, with undefined contents."""
        if 2 * num_values < self._num_values:
            return np.empty(num_values, np.float32)
        whole = self._free.pop() if self._free else np.empty(self._num_values, np.float32)
        return whole[:num_values]

    def give(self, values: Values) -> None:
        """Take back memory that `take` returned and that is no longer in use."""
        whole = values.base
        if (
            isinstance(whole, np.ndarray)
            and whole.shape == (self._num_values,)
            and len(self._free) < _FREE_BUFFERS
        ):
            self._free.append(whole)


class Origin(NamedTuple):
    """Names the worker and the iteration of an update."""

    worker_id: int
    iteration: int
    open_from: int
    """The lowest iteration of the key whose answer the worker does not have."""


class Answer(NamedTuple):
    """The result of one pair and iteration, for all workers."""

    values: Values
    contributors: frozenset[int]


class Failure(NamedTuple):
    """The reason why a pair and iteration have no answer."""

    kind: FailureKind
    text: str
    worker_ids: tuple[int, ...] = ()


class Answered(Protocol):
    """Takes answers: a worker's connection, or the client in this process."""

    def send_answer(self, key: int, pair: int, iteration: int, answer: Answer) -> None:
        """Deliver an answer; its values stay until the worker acknowledges them."""
        ...

    def send_failure(self, key: int, iteration: int, failure: Failure) -> None:
        """Report that no answer will come."""
        ...


@final
class PendingSum:
    """Contributions of one iteration to one pair."""

    def __init__(self, pool: BufferPool, started_s: float) -> None:
        self.started_s = started_s
        self.contributors: set[int] = set()
        self._pool = pool
        self._waiting: dict[int, tuple[Values, bool]] = {}
        self._next = 0  # worker whose update is added next
        self._total: Values | None = None
        self._is_lent = False

    @as_workers_sent
    def add(self, worker_id: int, values: Values, *, is_lent: bool) -> None:
        """Take a worker's values; lent ones are only read, others now belong to this object."""
        self.contributors.add(worker_id)
        self._waiting[worker_id] = (values, is_lent)
        while self._next in self._waiting:
            self._accumulate(*self._waiting.pop(self._next))
            self._next += 1

    @as_workers_sent
    def total(self) -> Values:
        """Return the sum of all contributions, in memory of the pool."""
        for worker_id in sorted(self._waiting):
            self._accumulate(*self._waiting.pop(worker_id))
        assert self._total is not None
        if self._is_lent:
            own = self._pool.take(self._total.size)
            np.copyto(own, self._total)
            self._total, self._is_lent = own, False
        return self._total

    def drop(self) -> None:
        """Forget all values."""
        for values, is_lent in self._waiting.values():
            if not is_lent:
                self._pool.give(values)
        self._waiting.clear()
        self._total = None

    def _accumulate(self, values: Values, is_lent: bool) -> None:
        total = self._total
        if total is None:
            self._total, self._is_lent = values, is_lent
        elif not self._is_lent:
            np.add(total, values, out=total)
            if not is_lent:
                self._pool.give(values)
        else:
            target = self._pool.take(total.size) if is_lent else values
            np.add(total, values, out=target)
            self._total, self._is_lent = target, False


@final
class PairState:
    """A server's state of one pair."""

    def __init__(self, pool: BufferPool, num_workers: int) -> None:
        self.pending: dict[int, PendingSum] = {}
        self.answers: dict[int, Answer] = {}  # in rising order of iterations
        self.failures: dict[int, Failure] = {}
        self.last_closed = -1
        self._pool = pool
        self._open_from = [-1] * num_workers

    def acknowledge(self, worker_id: int, open_from: int) -> None:
        """Learn that a worker has all answers below `open_from`; forget those that all have."""
        self._open_from[worker_id] = max(open_from, self._open_from[worker_id])
        wanted = min(self._open_from)
        for iteration in list(self.answers):
            if iteration >= wanted:
                break
            self._pool.give(self.answers.pop(iteration).values)
        for iteration in [i for i in self.failures if i < wanted]:
            del self.failures[iteration]

    def has_answered(self, worker_id: int, iteration: int) -> bool:
        """Return whether the worker has acknowledged this answer."""
        return iteration < self._open_from[worker_id]

    def close(self, iteration: int, answer: Answer) -> None:
        """Keep an answer until all workers have it."""
        del self.pending[iteration]
        self.last_closed = max(self.last_closed, iteration)
        self.answers[iteration] = answer
        if len(self.answers) > KEPT_ANSWERS:
            # Its memory may still be on its path to a stopped worker: it must not be used again.
            del self.answers[next(iter(self.answers))]

    def fail(self, iteration: int, failure: Failure) -> set[int]:
        """Give an iteration up; return its contributors."""
        self.failures[iteration] = failure
        self.last_closed = max(self.last_closed, iteration)
        dropped = self.pending.pop(iteration, None)
        if dropped is None:
            return set()
        dropped.drop()
        return dropped.contributors

    def unfillable(self, worker_id: int, iteration: int) -> list[int]:
        """Return older open iterations that this worker will never contribute to."""
        open_from = self._open_from[worker_id]
        return [
            older
            for older, waiting in self.pending.items()
            if older < min(iteration, open_from) and worker_id not in waiting.contributors
        ]
