# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The order in which a server applies granted updates: a state machine without input or output."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar, final

from ....control.stations.station import CommitExpected

MOST_AHEAD: Final = 1 << 12
"""A place that is so far ahead of the next one is no place of this sequence."""
KEPT_DONE: Final = 1 << 12
"""How many updates that have come are remembered, for places that are told again."""
Item = TypeVar("Item")


class UpdateKey(NamedTuple):
    """Names an update, at the scheduler and at the server."""

    worker_id: int
    transfer_id: int


class ReadyUpdate(NamedTuple, Generic[Item]):
    """An update that is to be applied now."""

    item: Item
    is_in_place: bool
    """False: its place is over, or unknown."""


@dataclass
class _Place(Generic[Item]):
    expected: CommitExpected | None = None
    told_s: float = 0.0
    due_s: float = 0.0
    item: Item | None = None
    came_s: float = 0.0
    is_over: bool = False
    """Nothing will come for it."""


@final
class PlaceOrder(Generic[Item]):
    """Holds early updates back until those before them have come, or will not come.

    Times are those of one clock, in seconds. If the next place has no update `wait_s` after it was
    due, though a later one has come so long ago, the server goes on without it.
    """

    def __init__(self, wait_s: float) -> None:
        self.next: int | None = None
        """The next place; None: the scheduler has not told it."""
        self.highest = 0
        """One above the last place that was heard of; 0: none."""
        self.limit: int | None = None
        """Updates for places from here on wait for `allow`; None: no place waits for that."""
        self.num_given_up = 0
        """Places that the server did not wait for any longer."""
        self._wait_s = wait_s
        self._places: dict[int, _Place[Item]] = {}
        self._by_key: dict[UpdateKey, int] = {}
        self._done: OrderedDict[UpdateKey, None] = OrderedDict()

    @property
    def num_held(self) -> int:
        """How many updates wait for earlier ones."""
        return sum(place.item is not None for place in self._places.values())

    def held(self) -> Iterator[Item]:
        """Yield the updates that wait."""
        for sequence in sorted(self._places):
            item = self._places[sequence].item
            if item is not None:
                yield item

    def is_next(self, key: UpdateKey, sequence: int) -> bool:
        """Return whether an update would be applied at once."""
        return self.next is None or self._by_key.get(key, sequence) <= self.next

    def restart(self, next_sequence: int) -> list[ReadyUpdate[Item]]:
        """Learn the first place that is open; those of the stream before are told again.

        Returns the updates for places before it: nothing comes between them any more.
        """
        old, self._places = self._places, {}
        self._by_key.clear()
        ready: list[ReadyUpdate[Item]] = []
        self.next = next_sequence
        self._see(next_sequence - 1)
        for sequence in sorted(old):
            item = old[sequence].item
            if item is None:
                continue
            if sequence < next_sequence:
                ready.append(ReadyUpdate(item, is_in_place=False))
            else:
                self._places[sequence] = _Place(item=item, came_s=old[sequence].came_s)
        return ready + self._drain()

    def expect(self, place: CommitExpected, now_s: float) -> tuple[bool, list[ReadyUpdate[Item]]]:
        """Learn whose a place is.

        Returns whether this update has come before, and updates to apply: this one has the place.
        """
        key = UpdateKey(place.worker_id, place.transfer_id)
        self._see(place.sequence)
        if self.next is None or place.sequence < self.next:
            return key in self._done, []
        if place.sequence - self.next > MOST_AHEAD:
            return False, []
        slot = self._places.setdefault(place.sequence, _Place())
        slot.expected, slot.told_s, slot.due_s = place, now_s, now_s + place.due_s
        self._by_key[key] = place.sequence
        is_done = key in self._done
        slot.is_over = slot.is_over or (is_done and slot.item is None)
        return is_done, self._drain()

    def allow(self, limit: int | None) -> list[ReadyUpdate[Item]]:
        """Let updates for places below `limit` go, None: for all; return those that are there."""
        self.limit = limit
        return self._drain()

    def skip(self, sequence: int) -> list[ReadyUpdate[Item]]:
        """Learn that nothing comes for a place; an update that has come for it is applied."""
        self._see(sequence)
        if self.next is None or not self.next <= sequence <= self.next + MOST_AHEAD:
            return []
        self._places.setdefault(sequence, _Place()).is_over = True
        return self._drain()

    def expected(self, key: UpdateKey) -> tuple[CommitExpected, float] | None:
        """Return what the scheduler has told of an update's place, and when; None: nothing."""
        place = self._places.get(self._by_key.get(key, -1))
        if place is None or place.expected is None:
            return None
        return place.expected, place.told_s

    def opens_s(self, key: UpdateKey) -> float:
        """Return from when on the bytes of an update are awaited; 0.0: at any time.

        That is when the first of its worker's updates that have not come may begin: one that all
        wait for may be behind others on the worker's connection.
        """
        own = self._places.get(self._by_key.get(key, -1))
        if own is None or own.is_over or own.item is not None:
            return 0.0
        begins_s = (
            place.told_s + place.expected.begins_s
            for place in self._places.values()
            if place.expected is not None
            and place.expected.worker_id == key.worker_id
            and place.item is None
            and not place.is_over
        )
        return min(begins_s, default=0.0)

    def arrive(
        self, key: UpdateKey, sequence: int | None, item: Item, now_s: float
    ) -> list[ReadyUpdate[Item]]:
        """Take an update; `sequence` is the place that it was granted, None without a grant.

        The scheduler's word about the place counts more than the worker's.
        """
        told = self._by_key.get(key)
        self._note_done(key)
        if sequence is None:
            if told is not None:
                self._places[told].is_over = True
            return [ReadyUpdate(item, is_in_place=False), *self._drain()]
        sequence = sequence if told is None else told
        place = self._places.get(sequence)
        # The worker alone may be wrong about a place, and it cannot push out another update.
        is_free = place is None or (
            place.item is None and (place.expected is None or told is not None)
        )
        is_known = self.next is not None and self.next <= sequence <= self.next + MOST_AHEAD
        if not (is_known and is_free) or (place is not None and place.is_over):
            return [ReadyUpdate(item, is_in_place=False)]
        self._see(sequence)
        place = self._places.setdefault(sequence, _Place())
        place.item, place.came_s = item, now_s
        return self._drain()

    def cover(self, key: UpdateKey, sequence: int) -> None:
        """Learn that an update comes with one for an earlier place; then call `arrive`."""
        told = self._by_key.get(key)
        self._note_done(key)
        sequence = sequence if told is None else told
        if self.next is None or not self.next <= sequence <= self.next + MOST_AHEAD:
            return
        place = self._places.get(sequence)
        if place is None or place.expected is None or told is not None:
            self._see(sequence)
            self._places.setdefault(sequence, _Place()).is_over = True

    def forget(self, worker_id: int) -> None:
        """Learn that a worker's process is another one, whose transfers may have the same ids."""
        for key in [key for key in self._done if key.worker_id == worker_id]:
            del self._done[key]

    @property
    def give_up_s(self) -> float | None:
        """When the server goes on without the next place's update; None: it does not wait."""
        came_s = [place.came_s for place in self._places.values() if place.item is not None]
        if not came_s or self.next is None or self.limit is not None:
            return None  # with a limit, the scheduler alone says what does not come
        awaited = self._places.get(self.next)
        due_s = min(came_s) if awaited is None else max(min(came_s), awaited.due_s)
        return due_s + self._wait_s

    def give_up(self, now_s: float) -> list[ReadyUpdate[Item]]:
        """Go on without what is overdue."""
        give_up_s = self.give_up_s
        if give_up_s is None or self.next is None or now_s < give_up_s:
            return []
        self.num_given_up += 1
        self._places.setdefault(self.next, _Place()).is_over = True
        return self._drain()

    def _see(self, sequence: int) -> None:
        self.highest = max(self.highest, sequence + 1)

    def _note_done(self, key: UpdateKey) -> None:
        if not key.transfer_id:
            return
        self._done[key] = None
        while len(self._done) > KEPT_DONE:
            self._done.popitem(last=False)

    def _drain(self) -> list[ReadyUpdate[Item]]:
        """Return what can be applied now."""
        ready: list[ReadyUpdate[Item]] = []
        if self.next is None:
            return ready
        while (place := self._places.get(self.next)) is not None:
            if place.item is not None and self.limit is not None and self.next >= self.limit:
                break
            if place.item is not None:
                ready.append(ReadyUpdate(place.item, is_in_place=True))
            elif not place.is_over:
                break
            if place.expected is not None:
                told = place.expected
                self._by_key.pop(UpdateKey(told.worker_id, told.transfer_id), None)
            del self._places[self.next]
            self.next += 1
        return ready
