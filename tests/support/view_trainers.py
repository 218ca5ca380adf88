# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that sum tensor after tensor while their job's view changes."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchfold.hostlib.future import AllreduceFuture
from switchfold.hostlib.options import ReduceOperation
from switchfold.hostlib.session import Session
from time_bound import wait_until
from view_driver import ViewDriver

NUM_TENSORS = 16
LENGTH = 300


def tensor(number: int, worker_id: int) -> NDArray[Any]:
    """What a worker contributes: integers, so that sums of floats are exact too."""
    values = np.arange(LENGTH) % 97 + 1000 * worker_id + number
    return values.astype((np.float32, np.int32, np.float64)[number % 3])


def operation(number: int) -> ReduceOperation:
    """How a tensor is reduced: maxima and minima, of float32 and int32, are among sums."""
    if number % 2 == 0 or number % 3 == 2:
        return "sum"
    return "max" if number % 4 == 1 else "min"


def expected(number: int, members: tuple[int, ...]) -> NDArray[Any]:
    tensors = [tensor(number, i) for i in members]
    if operation(number) == "sum":
        return np.sum(tensors, axis=0)
    return np.max(tensors, axis=0) if operation(number) == "max" else np.min(tensors, axis=0)


class Pace:
    """The limit of the trainers' progress: none may end before a test has changed its view."""

    def __init__(self, limit: int = NUM_TENSORS) -> None:
        self._limit = limit
        self._changed = threading.Condition()

    def allow(self, limit: int) -> None:
        """Let trainers submit the tensors below this number."""
        with self._changed:
            self._limit = limit
            self._changed.notify_all()

    def wait(self, number: int) -> None:
        """Wait until a tensor may be submitted."""
        with self._changed:
            assert self._changed.wait_for(lambda: number < self._limit, 120), number


class Trainer:
    """Runs a worker: a few tensors in flight at a time, each result checked."""

    def __init__(
        self, session: Session, worker_id: int, first: int = 0, pace: Pace | None = None
    ) -> None:
        self.members: dict[int, tuple[int, ...]] = {}
        """The workers in the sum of each tensor."""
        self.failures: list[Exception] = []
        self.is_done = False
        self._session, self._worker_id, self._first = session, worker_id, first
        self._pace = pace or Pace()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            under_way: dict[int, AllreduceFuture] = {}
            for number in range(self._first, NUM_TENSORS):
                self._pace.wait(number)
                under_way[number] = self._session.allreduce(
                    tensor(number, self._worker_id), operation(number)
                )
                if len(under_way) > 3:
                    self._finish(*next(iter(under_way.items())))
                    del under_way[next(iter(under_way))]
            for number, future in under_way.items():
                self._finish(number, future)
            self.is_done = True
        except Exception as error:
            self.failures.append(error)

    def _finish(self, number: int, future: AllreduceFuture) -> None:
        result = future.result(60)
        assert future.num_contributors == len(future.members)
        np.testing.assert_array_equal(result, expected(number, future.members))
        result[:] = 0  # the array is the user's
        self.members[number] = future.members

    @property
    def position(self) -> int:
        return max(self.members, default=-1)

    def join(self) -> None:
        self.thread.join(60)
        assert not self.thread.is_alive()
        assert not self.failures, self.failures
        assert self.is_done


def wait_for(trainers: dict[int, Trainer], position: int) -> None:
    """Wait until all have the result of a tensor."""

    def is_there() -> bool:
        assert not any(trainer.failures for trainer in trainers.values())
        return min(trainer.position for trainer in trainers.values()) >= position

    wait_until(is_there, f"tensor {position} at all workers")


def start(driver: ViewDriver, pace: Pace | None = None) -> dict[int, Trainer]:
    return {i: Trainer(session, i, pace=pace) for i, session in driver.sessions.items()}


def finish(trainers: dict[int, Trainer]) -> None:
    for trainer in trainers.values():
        trainer.join()
    for number in range(NUM_TENSORS):
        seen = {t.members[number] for t in trainers.values() if number in t.members}
        assert len(seen) == 1, number
