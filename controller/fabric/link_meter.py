# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Measures links by the switches' port counters: how much jobs use, and which links are dead.

The traffic of a job's own trees needs no counter per job and port: every round that a tree
completes is one frame up and one down on each of its links.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from ...hostlib.slots.wire import Outcome
from ..errors import SwitchError
from ..jobs.job import Generation, JobNumber, TreeId, View
from ..tables.outcome import Count
from ..views.view_trees import planned_trees
from .fabric import Direction, Fabric
from .trees.tree_plan import tree_directions

_LOGGER = logging.getLogger(__name__)
SMOOTHING_S: Final = 5.0
"""Time constant of measured rates: a burst of a second moves them by a fifth."""
_ENOUGH_FRAMES: Final = 8
"""Frames sent into a link between two samples; if none has arrived, the link may be dead."""
_DEAD_SAMPLES: Final = 2
"""Consecutive samples without arrivals after which a link is dead."""
_HELD_S: Final = 10.0
"""A direction that was found dead keeps its link dead for so long, unless frames arrive in it."""
_LONGEST_HELD_S: Final = 640.0
"""Each further death doubles the time, up to this."""
ROUND_OUTCOMES: Final = (Outcome.COMPLETED, Outcome.FLUSHED)
"""Outcomes at a root that mean that one result was sent down."""

CountsByPort = Mapping[tuple[str, int], tuple[Count, Count]]
"""(in, out) counters by switch and port."""


class CountedSwitch(Protocol):
    """A switch with counters; `controller.switches.switch_session.SwitchSession` is one."""

    async def read_port_counts(self) -> dict[int, tuple[Count, Count]]:
        """Return (in, out) frame counters by port; SwitchError."""
        ...

    async def read_tree_counts(self, tree_id: TreeId) -> dict[Outcome, Count]:
        """Return an installed tree's counters by outcome; SwitchError."""
        ...


@dataclass(frozen=True)
class CounterSample:
    """Counters at one time; switches that could not be read are missing."""

    time_s: float
    """On the event loop's clock."""
    ports: CountsByPort
    rounds: Mapping[TreeId, int]
    """Results sent by the roots of trees."""

    def num_bytes(self, direction: Direction) -> int | None:
        """Return the bytes that have crossed a direction, None when its switch was not read."""
        counts = self.ports.get((direction.switch, direction.port))
        return None if counts is None else counts[0 if direction.is_inward else 1].num_bytes


@dataclass(frozen=True)
class LinkUsage:
    """Rates in bits/s, smoothed."""

    total: Mapping[Direction, float] = field(default_factory=dict[Direction, float])
    own: Mapping[JobNumber, Mapping[Direction, float]] = field(
        default_factory=dict[JobNumber, Mapping[Direction, float]]
    )
    """By job, the traffic of its trees."""


class LinkMeter:
    """Samples counters and compares consecutive samples."""

    def __init__(
        self,
        switches: Mapping[str, CountedSwitch],
        views: Callable[[], list[View]],
        frame_bytes: int,
    ) -> None:
        self._switches = switches
        self._views = views
        self._frame_bytes = frame_bytes
        self.last: CounterSample | None = None
        self.usage = LinkUsage()
        self._baselines: dict[Generation, CounterSample] = {}
        """Counters when a view began, to be subtracted."""
        self._silent: dict[tuple[str, int], int] = defaultdict(int)
        """By sending end of a link: consecutive samples in which nothing arrived."""
        self._deaths: dict[tuple[str, int], int] = defaultdict(int)
        """By sending end: how often its direction was found dead; 0 once frames have arrived."""
        self._held_until_s: dict[tuple[str, int], float] = {}
        """By sending end of a dead direction."""
        self._moved: Mapping[tuple[str, int], tuple[int, int]] = {}
        """(in, out) frames by switch and port between the last two samples."""
        self._lock = asyncio.Lock()

    async def sample(self) -> CounterSample:
        """Read all counters, update rates and baselines, and return the sample."""
        async with self._lock:
            views = [view for view in self._views() if view.trees]
            sample = await self._read(views)
            before, self.last = self.last, sample
            self._set_baselines(views, before, sample)
            if before is not None and sample.time_s > before.time_s:
                self._update_usage(views, before, sample)
            return sample

    def measured(
        self, view: View, sample: CounterSample
    ) -> tuple[dict[Direction, float], dict[Direction, float]]:
        """Return (expected, measured) bytes by direction since the view began.

        KeyError before the first sample of the view.
        """
        baseline = self._baselines[view.generation]
        expected: dict[Direction, float] = defaultdict(float)
        for tree, planned in zip(view.trees, planned_trees(view), strict=True):
            rounds = sample.rounds.get(tree.tree_id, 0) - baseline.rounds.get(tree.tree_id, 0)
            for direction in tree_directions(planned):
                expected[direction] += rounds * self._frame_bytes
        found: dict[Direction, float] = {}
        for direction in expected:
            now, then = sample.num_bytes(direction), baseline.num_bytes(direction)
            if now is not None and then is not None:
                found[direction] = float(now - then)
        return dict(expected), found

    def dead_and_alive(self, fabric: Fabric) -> tuple[list[str], list[str]]:
        """Return the keys of links found dead, and of those that are alive: frames arrived on them.

        While only one direction is dead, frames go on to arrive in the other one. They count once
        the dead one has been so for a time. Call once per sample.
        """
        dead: list[str] = []
        alive: list[str] = []
        if self.last is None:
            return dead, alive
        for link in fabric.links:
            for near, far in (link.ends, link.ends[::-1]):
                sent, arrived = self._moved.get(near, (0, 0))[1], self._moved.get(far, (0, 0))[0]
                if arrived:
                    alive.append(link.key)
                    self._deaths.pop(near, None)
                    self._held_until_s.pop(near, None)
                is_silent = sent >= _ENOUGH_FRAMES and far in self._moved and not arrived
                self._silent[near] = self._silent[near] + 1 if is_silent else 0
                if self._silent[near] >= _DEAD_SAMPLES:
                    dead.append(link.key)
                    self._hold(near, self.last.time_s)
        held = {link.key for link in fabric.links if self._is_held(link.ends, self.last.time_s)}
        return list(dict.fromkeys(dead)), [key for key in dict.fromkeys(alive) if key not in held]

    def _hold(self, near: tuple[str, int], now_s: float) -> None:
        """Keep a dead direction's link dead for a time; the same death is noted only once."""
        if self._held_until_s.get(near, now_s) <= now_s:
            self._deaths[near] += 1
            held_s = min(_LONGEST_HELD_S, _HELD_S * 2 ** (self._deaths[near] - 1))
            self._held_until_s[near] = now_s + held_s

    def _is_held(self, ends: Iterable[tuple[str, int]], now_s: float) -> bool:
        return any(self._held_until_s.get(near, now_s) > now_s for near in ends)

    async def _read(self, views: list[View]) -> CounterSample:
        ports: dict[tuple[str, int], tuple[Count, Count]] = {}
        rounds: dict[TreeId, int] = {}

        async def read_ports(name: str) -> None:
            try:
                counts = await self._switches[name].read_port_counts()
            except SwitchError as exc:
                _LOGGER.debug("no port counters of %s: %s", name, exc)
                return
            for port, pair in counts.items():
                ports[name, port] = pair

        async def read_rounds(tree_id: TreeId, root: str) -> None:
            try:
                counts = await self._switches[root].read_tree_counts(tree_id)
            except (KeyError, SwitchError) as exc:
                _LOGGER.debug("no counters of tree %d at %s: %s", tree_id, root, exc)
                return
            rounds[tree_id] = sum(
                counts[outcome].packets for outcome in ROUND_OUTCOMES if outcome in counts
            )

        trees = [tree for view in views for tree in view.trees]
        await asyncio.gather(
            *(read_ports(name) for name in self._switches),
            *(read_rounds(tree.tree_id, tree.nodes[0].switch) for tree in trees),
        )
        return CounterSample(asyncio.get_running_loop().time(), ports, rounds)

    def _set_baselines(
        self, views: list[View], before: CounterSample | None, now: CounterSample
    ) -> None:
        for view in views:
            if view.generation in self._baselines:
                continue
            if before is None:
                self._baselines[view.generation] = now  # the view may be older: count from now on
            else:
                # The view began after the previous sample, and its trees' counters began at 0.
                self._baselines[view.generation] = CounterSample(before.time_s, before.ports, {})
        live = {view.generation for view in views}
        self._baselines = {key: value for key, value in self._baselines.items() if key in live}

    def _update_usage(self, views: list[View], before: CounterSample, now: CounterSample) -> None:
        seconds = now.time_s - before.time_s
        keep = math.exp(-seconds / SMOOTHING_S)
        total: dict[Direction, float] = {}
        moved: dict[tuple[str, int], tuple[int, int]] = {}
        for (switch, port), counts in now.ports.items():
            earlier = before.ports.get((switch, port))
            if earlier is None:
                continue
            # Counters of a switch that restarted begin at 0 again.
            moved[switch, port] = (
                max(counts[0].packets - earlier[0].packets, 0),
                max(counts[1].packets - earlier[1].packets, 0),
            )
            for is_inward in (True, False):
                direction = Direction(switch, port, is_inward)
                index = 0 if is_inward else 1
                delta = max(counts[index].num_bytes - earlier[index].num_bytes, 0)
                rate = 8 * delta / seconds
                total[direction] = _smoothed(self.usage.total.get(direction), rate, keep)
        self._moved = moved
        own: dict[JobNumber, dict[Direction, float]] = {}
        for view in views:
            rates = own.setdefault(view.job_number, {})
            for tree, planned in zip(view.trees, planned_trees(view), strict=True):
                if tree.tree_id not in now.rounds:
                    continue
                rounds = now.rounds[tree.tree_id] - before.rounds.get(tree.tree_id, 0)
                rate = 8 * max(rounds, 0) * self._frame_bytes / seconds
                for direction in tree_directions(planned):
                    rates[direction] = rates.get(direction, 0.0) + rate
        for job_number, rates in own.items():
            earlier_rates = self.usage.own.get(job_number, {})
            for direction, rate in rates.items():
                rates[direction] = _smoothed(earlier_rates.get(direction), rate, keep)
        self.usage = LinkUsage(total, own)


def _smoothed(earlier: float | None, rate: float, keep: float) -> float:
    return rate if earlier is None else keep * earlier + (1 - keep) * rate
