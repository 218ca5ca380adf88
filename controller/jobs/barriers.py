# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Barriers of a job: which workers have reached them, and when they are released."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...hostlib.control.session_api import session_pb2 as pb
from ..database.database import KEPT_BARRIERS
from ..errors import InvalidJobError
from .job import WorkerId

BarrierKey = tuple[str, int]
"""Name of a barrier, and which use of the name."""
MAX_WAITING: Final = 1024
"""Most barriers of a job that some workers have reached and others have not."""


class Barriers:
    """A barrier is released when every present worker has reached it; others are not awaited."""

    def __init__(self, released: Mapping[str, int] | None = None) -> None:
        self._reached: dict[BarrierKey, set[WorkerId]] = {}
        self._released = dict(released or {})
        """Last released use, by name."""

    def reach(self, key: BarrierKey, worker_id: WorkerId) -> bool:
        """Note a worker at a barrier; return whether that one was released before."""
        name, use = key
        if 0 < use <= self._released.get(name, 0):
            return True
        if key not in self._reached and len(self._reached) >= MAX_WAITING:
            raise InvalidJobError(
                f"worker {worker_id} is at barrier {name!r} while {MAX_WAITING} others wait for "
                "workers; all workers must reach the same barriers"
            )
        self._reached.setdefault(key, set()).add(worker_id)
        return False

    def leave(self, worker_id: WorkerId) -> None:
        """Forget a worker, wherever it waits."""
        for workers in self._reached.values():
            workers.discard(worker_id)

    def release(self, present: set[WorkerId]) -> list[BarrierKey]:
        """Release what all of `present` have reached and return it."""
        keys = [key for key, workers in self._reached.items() if workers and workers >= present]
        for name, use in keys:
            del self._reached[name, use]
            # The latest comes last, for the oldest to be forgotten.
            self._released[name] = max(use, self._released.pop(name, 0))
        while len(self._released) > KEPT_BARRIERS:
            del self._released[next(iter(self._released))]
        return keys

    def last_uses(self) -> list[pb.BarrierReleased]:
        """Return the last use of each name: a worker that joins now counts on from there."""
        uses = sorted(self._released.items())
        return [pb.BarrierReleased(name=name, use=use) for name, use in uses if use]
