# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A drill is data: what fails, on which fabric, the outcome that is stated, and its time."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

TIME_S: Final = 2.0
"""Time of a drill that names no other."""
SWITCH_RESTART_S: Final = 5.0
"""The same where a switch restarts: the start of its process is part of it."""
PAUSE_S: Final = 0.5
"""Longest time without a finished tensor when sums are steady, if a drill names no other."""
ALL: Final = (0, 1, 2, 3)
"""The workers of a drill's job."""


class DrillFabric(enum.StrEnum):
    """The networks that drills run on."""

    ONE_SWITCH = "one switch"
    """All hosts at s1."""
    ONE_TREE = "leaf-spine, one tree"
    """Hosts at leaves s1 and s2, spines s3 and s4; a job has one tree, and its root is a spine."""
    TWO_TREES = "leaf-spine, two trees"
    """The same with slow uplinks: a job has a tree over each spine."""
    SERVERS = "one switch, parameter servers"
    """Three workers, and two servers with a log and hot rows, all at s1."""
    CONTROLLERS = "one switch, two controllers"
    """Two workers at a softswitch; both controllers have one PostgreSQL database."""
    CONTROLLERS_OF_TREES = "leaf-spine, two controllers"
    """The same, with a worker at each of leaves s1 and s2, and the root s3."""


class SumPath(enum.StrEnum):
    """What sums the tensors in the end."""

    SWITCH = "switch"
    HOST = "host"


@dataclass(frozen=True, kw_only=True)
class StatedOutcome:
    """What is true in the end."""

    members: tuple[int, ...] = ALL
    """The workers whose sums go on, exact, with nobody else in them; none: the job has no route."""
    path: SumPath = SumPath.SWITCH
    errors: Mapping[int, str] = field(default_factory=dict[int, str])
    """By worker that is no member and still runs: part of the error that it gets."""
    pause_s: float = PAUSE_S
    """Longest time without a finished tensor."""
    text: str = ""
    """What is true instead, where no job sums."""

    def __str__(self) -> str:
        if self.text:
            return self.text
        parts: list[str] = []
        if self.members:
            names = ", ".join(map(str, self.members))
            where = "by switches" if self.path is SumPath.SWITCH else "among hosts"
            parts.append(f"exact sums of workers {names} {where}")
            if self.pause_s != PAUSE_S:
                parts.append(f"no pause above {self.pause_s:g} s")
        for text in sorted(set(self.errors.values())):
            who = ", ".join(
                str(worker) for worker in sorted(self.errors) if self.errors[worker] == text
            )
            parts.append(f'worker {who}: error "{text}"')
        return "; ".join(parts)


@dataclass(frozen=True, kw_only=True)
class Drill:
    """One failure of one part."""

    name: str
    fabric: DrillFabric = DrillFabric.ONE_SWITCH
    fails: str
    """What fails, in words."""
    act: Callable[[Any], float]
    """Gets the scene, and makes it fail; returns when the time begins, on the monotonic clock."""
    outcome: StatedOutcome = field(default_factory=StatedOutcome)
    time_s: float = TIME_S
    why: str = ""
    """Why the time is not `TIME_S`."""
    num_workers: int = len(ALL)
    """Of the job at its start: workers 0, 1, ..."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of all workers."""
    has_back_network: bool = False
    """Workers reach each other by a second network, past all switches."""
    have_own_clock: bool = False
    """The workers' wall clock is the rig's."""
    not_on: Mapping[str, str] = field(default_factory=dict[str, str])
    """By kind of switch on which it is left out: why."""

    def __post_init__(self) -> None:
        if (self.time_s == TIME_S) != (not self.why):
            raise ValueError(f"drill {self.name}: a time other than {TIME_S:g} s needs a reason")
