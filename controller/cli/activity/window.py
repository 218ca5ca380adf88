# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A window of looks at one view of a job: rates, hold times, and who is waited for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from ...api.operator_api import activity_pb2 as pb

_SENDS_BYTES: Final = 3000
"""A worker that has sent fewer while rounds were stuck has sent no values: others are smaller."""


@dataclass(frozen=True, kw_only=True)
class TreeFigures:
    """One tree over the window."""

    tree_id: int
    root: str
    slot_count: int
    open_slots: float
    """Slots whose round waits for children at the root, on average over the looks."""
    rounds_per_s: float
    hold_s: float | None
    """Mean time from a round's first contribution at the root to its completion; None where no
    round was completed, or none was found that waited."""
    error: str


@dataclass(frozen=True, kw_only=True)
class LinkFigures:
    """One direction of a link over the window."""

    sender: str
    receiver: str
    bits_per_s: float
    rate_bits_per_s: float | None
    """As the configuration states it."""
    exchange_use: float | None
    """Median of its use over the intervals in which the job exchanged values; None without a rate,
    or without such an interval."""

    @property
    def use(self) -> float | None:
        """Share of the stated rate over the whole window."""
        return None if self.rate_bits_per_s is None else self.bits_per_s / self.rate_bits_per_s


@dataclass(frozen=True, kw_only=True)
class WorkerFigures:
    """One worker over the window."""

    worker_id: int
    last_share: float
    """Of the looks that found rounds waiting at its switch, those in which most of the rounds
    waited for this worker alone."""
    stalled_share: float
    """Of all looks, those at which most of the stuck rounds waited for this worker alone, while it
    sent no values."""


class ActivityWindow:
    """The last looks at a job; another view begins a new window."""

    def __init__(self, most: int = 1000) -> None:
        """Keep at most so many looks."""
        self._looks: deque[pb.JobActivity] = deque(maxlen=most)

    def add(self, activity: pb.JobActivity) -> None:
        """Add a look."""
        if self._looks and self._looks[-1].generation != activity.generation:
            self._looks.clear()
        self._looks.append(activity)

    @property
    def last(self) -> pb.JobActivity:
        """The newest look; IndexError before the first."""
        return self._looks[-1]

    def __len__(self) -> int:
        return len(self._looks)

    @property
    def seconds(self) -> float:
        """Time between the first look and the last."""
        return self._looks[-1].time_s - self._looks[0].time_s if self._looks else 0.0

    def trees(self) -> list[TreeFigures]:
        """Return the figures of each tree."""
        return [self._tree(i) for i in range(len(self.last.trees))]

    def links(self) -> list[LinkFigures]:
        """Return the figures of each direction that could be read, the busiest first."""
        found = [self._link(i) for i, link in enumerate(self.last.links) if not link.error]
        return sorted(found, key=lambda link: (-(link.use or 0.0), -link.bits_per_s))

    def workers(self) -> list[WorkerFigures]:
        """Return the figures of each worker whose link is known, by id."""
        ids = {worker for link in self.last.links for worker in link.workers}
        return [self._worker(worker_id) for worker_id in sorted(ids)]

    @property
    def idle_share(self) -> float:
        """Share of the intervals in which no round was completed or waited; 1 without any."""
        intervals = list(pairwise(self._looks))
        idle = sum(not _is_exchanging(*interval) for interval in intervals)
        return idle / len(intervals) if intervals else 1.0

    @property
    def num_rounds(self) -> int:
        """Rounds that were completed, over all trees."""
        if not self._looks:
            return 0
        return _rounds(self._looks[-1]) - _rounds(self._looks[0])

    @property
    def errors(self) -> list[str]:
        """What could not be read at the last look, each once."""
        found = [node.error for tree in self.last.trees for node in tree.nodes]
        found += [tree.error for tree in self.last.trees]
        found += [link.error for link in self.last.links]
        return list(dict.fromkeys(filter(None, found)))

    def _tree(self, index: int) -> TreeFigures:
        last, first = self._looks[-1].trees[index], self._looks[0].trees[index]
        looks = [look.trees[index].nodes[0] for look in self._looks]
        read = [node for node in looks if node.read_slots]
        scale = last.slot_count / read[-1].read_slots if read else 0.0
        open_slots = scale * sum(n.num_open for n in read) / len(read) if read else 0.0
        rounds = max(last.rounds - first.rounds, 0)
        rate = rounds / self.seconds if self.seconds > 0 else 0.0
        return TreeFigures(
            tree_id=last.tree_id,
            root=last.nodes[0].switch,
            slot_count=last.slot_count,
            open_slots=open_slots,
            rounds_per_s=rate,
            # Little's law: what is in the system is its arrivals times the time that each stays.
            hold_s=open_slots / rate if rate and open_slots else None,
            error=last.nodes[0].error or last.error,
        )

    def _link(self, index: int) -> LinkFigures:
        link = self.last.links[index]
        sent = max(link.bytes - self._looks[0].links[index].bytes, 0)
        stated = link.rate_bits_per_s or None
        uses = sorted(
            8 * (now.links[index].bytes - then.links[index].bytes) / (now.time_s - then.time_s)
            for then, now in pairwise(self._looks)
            if _is_exchanging(then, now) and now.time_s > then.time_s
        )
        return LinkFigures(
            sender=link.sender,
            receiver=link.receiver,
            bits_per_s=8 * sent / self.seconds if self.seconds > 0 else 0.0,
            rate_bits_per_s=stated,
            exchange_use=uses[len(uses) // 2] / stated if uses and stated else None,
        )

    def _worker(self, worker_id: int) -> WorkerFigures:
        rounds = [_waiting_rounds(look, worker_id) for look in self._looks]
        waiting = [found for found in rounds if found]
        alone = sum(_is_last(found, worker_id) for found in waiting)
        stalls = sum(
            _is_last(_waiting_rounds(look, worker_id, is_stuck=True), worker_id)
            and _sent_bytes(look, worker_id) < _SENDS_BYTES
            for look in self._looks
        )
        return WorkerFigures(
            worker_id=worker_id,
            last_share=alone / len(waiting) if waiting else 0.0,
            stalled_share=stalls / len(self) if self._looks else 0.0,
        )


def _rounds(look: pb.JobActivity) -> int:
    return sum(tree.rounds for tree in look.trees)


def _open(look: pb.JobActivity) -> Iterator[pb.OpenRound]:
    return (each for tree in look.trees for node in tree.nodes for each in node.open_rounds)


def _is_exchanging(then: pb.JobActivity, now: pb.JobActivity) -> bool:
    """Whether rounds were completed between two looks, or waited at both."""
    is_waiting = any(_open(then)) and any(_open(now))
    return is_waiting or _rounds(now) != _rounds(then)


def _waiting_rounds(
    look: pb.JobActivity, worker_id: int, *, is_stuck: bool = False
) -> list[frozenset[int]]:
    """Return by open round the workers that it waits for, at the switches of a worker's own."""
    found: list[frozenset[int]] = []
    for tree in look.trees:
        for node in tree.nodes:
            missing = [
                frozenset(each.missing_workers)
                for each in node.open_rounds
                if each.is_stuck or not is_stuck
            ]
            if any(worker_id in each for each in missing) or _is_at(look, node.switch, worker_id):
                found += [each for each in missing if each]
    return found


def _is_at(look: pb.JobActivity, switch: str, worker_id: int) -> bool:
    return any(link.receiver == switch and worker_id in link.workers for link in look.links)


def _is_last(rounds: list[frozenset[int]], worker_id: int) -> bool:
    """Whether most rounds wait for this worker, and for no other one."""
    alone = sum(each == frozenset((worker_id,)) for each in rounds)
    return alone * 2 > len(rounds) if rounds else False


def _sent_bytes(look: pb.JobActivity, worker_id: int) -> int:
    return sum(link.recent_bytes for link in look.links if worker_id in link.workers)
