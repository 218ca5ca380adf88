# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the server tells its workers about hot rows: its whole state, and decisions in batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, final

import numpy as np
from numpy.typing import NDArray

from ...peers.event_loop import EventLoop
from ...peers.frames import FrameKind, HotRowsFrame, HotRowsState, Packable, RoundsFrame

_TELL_SHARE: Final = 0.1
"""Of the time that a round waits for its workers: decisions that come within it go together."""
_AT_ONCE: Final = 1 << 16
"""Most decisions of a frame."""


class HotCaller(Protocol):
    """A worker's connection that wants to know of hot rows."""

    @property
    def is_behind(self) -> bool:
        """Whether it has not read so much that it gets nothing more now."""
        ...

    def send_hot(self, frame: Packable, payload: bytes) -> None:
        """Send a frame."""
        ...


@final
class WorkerTeller:
    """Runs in the loop's thread. A worker that does not read gets the whole state later."""

    def __init__(
        self, loop: EventLoop, compose: Callable[[int], HotRowsState | None], flush_s: float
    ) -> None:
        """`compose` returns what a worker has to know; None: it learns that later."""
        self._loop = loop
        self._pause_s = _TELL_SHARE * flush_s
        self._compose = compose
        self._callers: dict[int, HotCaller] = {}
        self._behind: set[int] = set()
        self._generation = 0
        self._decided: list[NDArray[np.void]] = []

    def enter(self, worker_id: int, caller: HotCaller) -> None:
        """Tell a worker its state, and from now on what is decided."""
        self._callers[worker_id] = caller
        self.tell_state(worker_id)

    def leave(self, worker_id: int, caller: HotCaller) -> None:
        """Learn that a connection is gone."""
        if self._callers.get(worker_id) is caller:
            del self._callers[worker_id]
            self._behind.discard(worker_id)

    def on_drained(self, worker_id: int, caller: HotCaller) -> None:
        """Learn that a worker has read everything."""
        if worker_id in self._behind and self._callers.get(worker_id) is caller:
            self.tell_state(worker_id)

    def tell_states(self) -> None:
        """Tell all workers their state."""
        for worker_id in list(self._callers):
            self.tell_state(worker_id)

    def tell_state(self, worker_id: int) -> None:
        """Tell a worker its state, after what was decided before."""
        self._tell_decided()
        caller = self._callers[worker_id]
        if caller.is_behind:
            self._behind.add(worker_id)
            return
        self._behind.discard(worker_id)
        state = self._compose(worker_id)
        if state is not None:
            payload = state.pack()
            caller.send_hot(HotRowsFrame(len(payload)), payload)

    def note(self, generation: int, decided: NDArray[np.void]) -> None:
        """Tell all workers soon; `decided` is of DECISION_DTYPE."""
        if not decided.size:
            return
        if generation != self._generation:
            self._tell_decided()
            self._generation = generation
        if not self._decided:
            self._loop.call_later(self._pause_s, self._tell_decided)
        self._decided.append(decided)

    def answer(self, caller: HotCaller, generation: int, decided: NDArray[np.void]) -> None:
        """Tell one worker rounds that it has asked about."""
        for first in range(0, decided.size, _AT_ONCE):
            payload = decided[first : first + _AT_ONCE].tobytes()
            frame = RoundsFrame(FrameKind.DECISIONS, len(payload), generation)
            if not caller.is_behind:  # else it asks again
                caller.send_hot(frame, payload)

    def _tell_decided(self) -> None:
        if not self._decided:
            return
        decided = np.concatenate(self._decided)
        self._decided.clear()
        for worker_id, caller in self._callers.items():
            if worker_id in self._behind or caller.is_behind:
                self._behind.add(worker_id)
            else:
                self.answer(caller, self._generation, decided)
