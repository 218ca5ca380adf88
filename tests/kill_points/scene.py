# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What happens in a world, stage by stage: jobs start, sum, change, end; controllers die."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kill_points.world import LINK, OTHER_LINK, World


@dataclass(frozen=True)
class Stage:
    """One event, and how one sees that all has come to rest after it."""

    name: str
    begin: Callable[[], None]
    is_over: Callable[[], object]


class Scene:
    """Two jobs, the first with hot rows; workers 0 to 3, two at each switch."""

    def __init__(self, world: World, number: int) -> None:
        """`number`: of this scene in its world; it also chooses how the first job ends."""
        self._world = world
        self._first, self._second = f"first-{number}", f"second-{number}"
        self._is_stopped = number % 2 == 0
        self._to_set: list[tuple[str, str]] = []
        """Links that an operator is about to set."""
        members = world.members
        self.stages: Final[Sequence[Stage]] = (
            Stage("start", self._start_first, lambda: members.have_summed(self._first, 0, 1)),
            Stage("rows", self._attach, world.has_rows),
            Stage("join", self._join, lambda: members.have_summed(self._first, 0, 1, 2)),
            Stage("detour", self._close_link, self._avoids_link),
            Stage("return", self._open_link, self._uses_link),
            Stage("loss", self._lose, lambda: members.have_summed(self._first, 0, 2)),
            Stage("leave", self._leave, self._only_worker_2_sums),
            Stage("second", self._start_second, self._both_sum),
            Stage("end", self._end_first, self._only_second_sums),
            Stage("last", self._end_second, self._is_all_over),
        )

    def _start_first(self) -> None:
        for worker_id in (0, 1):
            self._world.members.start(self._first, worker_id, is_joining=False)

    def _attach(self) -> None:
        self._world.start_row_server(self._first)

    def _join(self) -> None:
        self._world.members.start(self._first, 2, is_joining=True)

    def _close_link(self) -> None:
        self._to_set = [(LINK, "down")]

    def _open_link(self) -> None:
        self._to_set = [(LINK, "up"), (OTHER_LINK, "down")]

    def _are_links_set(self) -> bool:
        """Set the links, as soon as the controller answers."""
        while self._to_set and self._world.command("link", "set", *self._to_set[0]):
            del self._to_set[0]
        return not self._to_set

    def _avoids_link(self) -> bool:
        return self._are_links_set() and not self._world.uses_link(self._first)

    def _uses_link(self) -> bool:
        return self._are_links_set() and self._world.uses_link(self._first)

    def _lose(self) -> None:
        self._world.members.kill(self._first, 1)

    def _leave(self) -> None:
        self._world.members.leave((self._first, 0))
        self._to_set = [(OTHER_LINK, "up")]

    def _only_worker_2_sums(self) -> bool:
        return self._are_links_set() and self._world.members.have_summed(self._first, 2)

    def _start_second(self) -> None:
        for worker_id in (0, 1):
            self._world.members.start(self._second, worker_id, is_joining=False)

    def _both_sum(self) -> bool:
        members = self._world.members
        return members.have_summed(self._first, 2) and members.have_summed(self._second, 0, 1)

    def _end_first(self) -> None:
        if self._is_stopped:
            self._world.members.dismiss(self._first)
        else:
            self._world.members.leave((self._first, 2))

    def _only_second_sums(self) -> bool:
        members = self._world.members
        if self._is_stopped and not members.are_gone(self._first):
            self._world.command("job", "stop", self._first)
        if not members.are_gone(self._first) or not members.have_summed(self._second, 0, 1):
            return False
        self._world.stop_row_server()
        return self._world.have_ended(self._first)

    def _end_second(self) -> None:
        self._world.members.leave((self._second, 0), (self._second, 1))

    def _is_all_over(self) -> bool:
        return self._world.members.are_none() and self._world.have_ended(self._second)


def play(world: World, stage: Stage, *deaths: float | int, full_s: float = 0.0) -> list[str]:
    """Play one stage with these deaths of its controller; return the points that were reached.

    The disk is full for the first `full_s` seconds.
    """
    before = len(world.points)
    world.members.begin()
    world.kill_at(*deaths)
    world.fill_disk(full_s)
    stage.begin()
    world.settle(stage.is_over, f"stage {stage.name!r}, deaths {deaths}, disk full for {full_s} s")
    return world.points[before:]
