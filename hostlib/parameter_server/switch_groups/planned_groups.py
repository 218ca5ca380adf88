# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Switch groups that the scheduler has granted, until all of their members have joined.

A state machine without input or output. Times are those of one clock, in seconds.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, Generic, TypeVar, final

from ...control.stations.station import ExpectedMember, SwitchGroupExpected

EARLY_WAIT_S: Final = 5.0
"""How long an update waits for the scheduler's word of its group."""
KEPT_CLOSED: Final = 1 << 12
"""Members of groups that are over, which are declined at once."""
Member = TypeVar("Member")


@dataclass(eq=False)
class _Planned(Generic[Member]):
    keys: tuple[ExpectedMember, ...]
    """In the order of their places."""
    start_s: float
    gather_until_s: float
    awaited: set[ExpectedMember]
    joined: dict[ExpectedMember, Member]

    def ready_s(self) -> float:
        """Return when the group may begin, if nobody joins any more."""
        return self.gather_until_s if self.awaited else self.start_s


@final
class PlannedGroups(Generic[Member]):
    """Who is awaited, and who has come. A group that nobody has joined ends without a word."""

    def __init__(self) -> None:
        self._groups: dict[int, _Planned[Member]] = {}
        """By number, in the order in which the scheduler told of them."""
        self._group_of: dict[ExpectedMember, _Planned[Member]] = {}
        self._early: dict[ExpectedMember, tuple[Member, float]] = {}
        """Those of unknown groups, and until when they wait."""
        self._closed: OrderedDict[ExpectedMember, None] = OrderedDict()

    @property
    def num_joined(self) -> int:
        """How many updates wait."""
        return len(self._early) + sum(len(group.joined) for group in self._groups.values())

    def expect(self, told: SwitchGroupExpected, now_s: float) -> None:
        """Learn of a group; a second word of it, or of its members, changes nothing."""
        keys = told.members
        if any(key in self._group_of or key in self._closed for key in keys):
            return
        group = _Planned[Member](
            keys, now_s + told.start_s, now_s + told.gather_s, set(keys), joined={}
        )
        self._groups[told.group_id] = group
        self._group_of |= dict.fromkeys(keys, group)
        for key in keys:
            early = self._early.pop(key, None)
            if early is not None:
                self.join(key, early[0], now_s)

    def join(self, key: ExpectedMember, member: Member, now_s: float) -> bool:
        """Have an update wait; return False if its group is over, or has one of this name."""
        group = self._group_of.get(key)
        if group is not None and key in group.awaited:
            group.awaited.discard(key)
            group.joined[key] = member
            return True
        if group is not None or key in self._closed or key in self._early:
            return False
        self._early[key] = member, now_s + EARLY_WAIT_S
        return True

    def miss(self, key: ExpectedMember) -> None:
        """Do not await an update any more."""
        group = self._group_of.get(key)
        if group is not None:
            group.awaited.discard(key)

    def forget(self, worker_id: int) -> None:
        """Await nothing of a worker any more, and forget what has come: it sends it by itself."""
        for key in [key for key in self._early if key.worker_id == worker_id]:
            del self._early[key]
            self._close(key)
        for key, group in self._group_of.items():
            if key.worker_id == worker_id:
                group.awaited.discard(key)
                group.joined.pop(key, None)

    def expire(self, now_s: float) -> list[Member]:
        """Return updates that have waited long enough for a word of their groups."""
        over = [key for key, (_, until_s) in self._early.items() if until_s <= now_s]
        for key in over:
            self._close(key)
        return [self._early.pop(key)[0] for key in over]

    def take_ready(self, now_s: float) -> list[Member]:
        """Return the members of the first group that may begin, in their places; none: nobody."""
        for number, group in list(self._groups.items()):
            if group.ready_s() > now_s:
                continue
            self._end(number)
            if group.joined:
                return [group.joined[key] for key in group.keys if key in group.joined]
        return []

    def take_all(self) -> list[Member]:
        """Forget all groups; return those that have joined, and that wait for a word."""
        found = [member for group in self._groups.values() for member in group.joined.values()]
        for number in list(self._groups):
            self._end(number)
        found += [member for member, _ in self._early.values()]
        for key in self._early:
            self._close(key)
        self._early.clear()
        return found

    def due_s(self, *, is_busy: bool) -> float | None:
        """Return when to look again, None: never; `is_busy`: no group may begin before an end."""
        times = [until_s for _, until_s in self._early.values()]
        if not is_busy:
            times += [group.ready_s() for group in self._groups.values()]
        return min(times, default=None)

    def _end(self, number: int) -> None:
        for key in self._groups.pop(number).keys:
            del self._group_of[key]
            self._close(key)

    def _close(self, key: ExpectedMember) -> None:
        self._closed[key] = None
        while len(self._closed) > KEPT_CLOSED:
            self._closed.popitem(last=False)
