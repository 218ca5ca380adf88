# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A random drill: kills, restarts, joins and cuts in an order that a seed draws."""

from __future__ import annotations

import enum
import queue
import time
from collections.abc import Callable, Collection
from typing import Final, final

import numpy as np

from benchmarks.drills.scene import Scene

FEWEST: Final = 2
"""Members that a drill leaves in a job at least."""
TWO_AT_ONCE: Final = 0.3
"""Share of the times at which a second event comes before the job has recovered."""
CUT_ERRORS: Final = ("JobEndedError", "RoundClosedError")
"""Of a worker that is cut off: it is evicted, or misses results that it cannot fetch any more."""
LONGEST_ABSENCE_S: Final = 1.0
"""Of a switch or the controller that is killed and started again."""


class RandomEvent(enum.StrEnum):
    """What a random drill does."""

    KILL = "kill"
    """Of a worker."""
    JOIN = "join"
    """Of a worker that is not in the job."""
    CUT = "cut"
    """The link of a worker carries nothing until the worker is evicted."""
    FLAP = "flap"
    """The link of a worker carries nothing for up to half a second."""
    SWITCH = "switch restart"
    CONTROLLER = "controller restart"


@final
class RandomDrill:
    """Breaks what the job of a scene needs, and waits until its members sum again."""

    def __init__(
        self,
        scene: Scene,
        seed: int,
        say: Callable[[str], None],
        events: Collection[RandomEvent] = tuple(RandomEvent),
    ) -> None:
        """`say` gets a line for each event, and for the members after it."""
        self.scene, self._say = scene, say
        self._events = events
        self._rng = np.random.default_rng(seed)
        self.members = set(scene.workers)
        """Whose sums the job is expected to have."""
        self._absent: set[int] = set()
        self._cut: set[int] = set()

    def take_over(self, before: RandomDrill) -> None:
        """Go on where another drill of this scene has stopped."""
        self.members, self._absent = before.members, before._absent

    def step(self) -> None:
        """Let one event happen, at times two, and wait for exact sums of the expected members.

        Raises AssertionError or queue.Empty if these do not come, with a note of the state.
        """
        try:
            self._step()
        except (AssertionError, queue.Empty) as error:
            error.add_note(self.scene.describe())
            raise

    def _step(self) -> None:
        for _ in range(1 + int(self._rng.random() < TWO_AT_ONCE)):
            self._happen(self._choose())
        begin_s = time.monotonic()
        reached = [self._await(worker_id, begin_s) for worker_id in sorted(self.members)]
        for worker_id in sorted(self._cut):
            error = self.scene.workers[worker_id].until_error()
            assert error.startswith(CUT_ERRORS), error
            self.scene.testbed.mend_link(*self.scene.host_link(worker_id))
        self._absent |= self._cut
        self._cut.clear()
        self._say(f"exact sums of {sorted(self.members)} from tensor {max(reached)} on")

    def _choose(self) -> RandomEvent:
        possible = [event for event in self._events if self._can(event)]
        return possible[self._rng.integers(len(possible))]

    def _can(self, event: RandomEvent) -> bool:
        if event in {RandomEvent.KILL, RandomEvent.CUT}:
            return len(self.members) > FEWEST
        return event is not RandomEvent.JOIN or bool(self._absent)

    def _happen(self, event: RandomEvent) -> None:
        scene, rng = self.scene, self._rng
        if event is RandomEvent.SWITCH:
            self._say(event)
            scene.testbed.stop_switch("s1")
            time.sleep(rng.random() * LONGEST_ABSENCE_S)
            scene.testbed.start_switch("s1")
        elif event is RandomEvent.CONTROLLER:
            self._say(event)
            scene.testbed.stop_controller()
            time.sleep(rng.random() * LONGEST_ABSENCE_S)
            scene.testbed.start_controller()
        else:
            choice = sorted(self._absent if event is RandomEvent.JOIN else self.members)
            self._happen_to(event, choice[rng.integers(len(choice))])

    def _happen_to(self, event: RandomEvent, worker_id: int) -> None:
        """Let something happen to a worker."""
        scene = self.scene
        self._say(f"{event} of worker {worker_id}")
        if event is RandomEvent.JOIN:
            scene.join(worker_id)
            self._absent.remove(worker_id)
            self.members.add(worker_id)
        elif event is RandomEvent.FLAP:
            scene.testbed.cut_link(*scene.host_link(worker_id))
            time.sleep(self._rng.random() / 2)
            scene.testbed.mend_link(*scene.host_link(worker_id))
        else:
            self.members.remove(worker_id)
            if event is RandomEvent.KILL:
                scene.workers[worker_id].kill()
                self._absent.add(worker_id)
            else:
                scene.testbed.cut_link(*scene.host_link(worker_id))
                self._cut.add(worker_id)

    def _await(self, worker_id: int, begin_s: float) -> int:
        """Read on to a sum of the expected members that ended after all events; return its id."""
        worker = self.scene.workers[worker_id]
        while (line := worker.next())["at_s"] <= begin_s or line["members"] != sorted(self.members):
            pass
        return line["tensor"]
