# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Plays scene after scene in one world, with deaths at chosen points or at random times."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from typing import Final

from kill_points.scene import Scene, play
from kill_points.world import World

SECOND_DEATH: Final = 0.3
"""Share of the deaths that are followed by one of the next controller, while it starts."""
_LEAST_POINTS: Final = 12
"""Each stage has so many."""
_MOST_AT_START: Final = 12
"""Points within which a controller dies that has just started."""


class Campaign:
    """Seeded: the same deaths are planned in the same order."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._random = random.Random(seed)
        self._num_scenes = 0
        self.points: dict[str, list[str]] = {}
        """By stage, the names of the points that it reaches when nobody is killed."""
        self._lasts_s: dict[str, float] = {}

    @property
    def num_points(self) -> int:
        """How many points the scene has."""
        return sum(map(len, self.points.values()))

    def count(self) -> None:
        """Play a calm scene, and keep its points."""
        for stage in self._scene().stages:
            begin_s = time.monotonic()
            points = play(self._world, stage)
            self._lasts_s[stage.name] = time.monotonic() - begin_s
            before = len(self._world.points)
            self._world.await_quiet()
            self.points[stage.name] = points + self._world.points[before:]

    def at_points(self, rounds: Sequence[int]) -> Iterator[int]:
        """Play a scene for each of these numbers: each stage has a death at its point of it.

        Yields the number after each scene.
        """
        for number in rounds:
            for stage in self._scene().stages:
                has_point = number <= len(self.points[stage.name])
                play(self._world, stage, *([number] if has_point else []), *self._second())
            yield number

    @property
    def rounds(self) -> range:
        """The numbers with which `at_points` reaches every point."""
        return range(1, max(map(len, self.points.values())) + 1)

    def at_random_times(self) -> Iterator[int]:
        """Play scenes without end, with a death in each stage at a random time.

        Yields the deaths so far after each stage.
        """
        while True:
            for stage in self._scene().stages:
                after_s = self._random.uniform(0.0, self._lasts_s[stage.name] + 0.2)
                play(self._world, stage, after_s, *self._second())
                yield self._world.deaths["at a random time"]

    def on_full_disk(self) -> Iterator[int]:
        """Play scenes without end, where the disk is full for a while in each stage.

        Every other time the controller dies meanwhile or after. Yields the refused writes so far.
        """
        while True:
            for stage in self._scene().stages:
                full_s = self._random.uniform(0.1, 1.5)
                deaths = [self._random.uniform(0.0, full_s + 0.5)]
                play(self._world, stage, *deaths[: self._random.randint(0, 1)], full_s=full_s)
                yield self._world.refused_writes

    def sample(self) -> Iterator[str]:
        """Play a scene whose stages have one death each, at a point or at a random time."""
        for stage in self._scene().stages:
            points, seconds = self._random.randint(1, _LEAST_POINTS), self._random.uniform(0.0, 1.0)
            play(self._world, stage, self._random.choice((points, seconds)), *self._second())
            yield stage.name

    def _second(self) -> list[float | int]:
        """Return at which of its first points the next controller dies, if it does."""
        if self._random.random() >= SECOND_DEATH:
            return []
        return [self._random.randint(1, _MOST_AT_START)]

    def _scene(self) -> Scene:
        self._num_scenes += 1
        return Scene(self._world, self._num_scenes)
