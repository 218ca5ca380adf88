# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Switch groups at a parameter server: those that the scheduler has granted, their sums and ends.

A group counts as all of its updates, or not at all. It is the server that decides this: a sum is
taken when all chunks have come, each with all members, and until then the group can be given up.
What came of it is dropped then, and what comes later belongs to no group.
"""

from __future__ import annotations

import logging
import time
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, Protocol, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from ...control.stations.station import ExpectedMember, SwitchGroupExpected
from ...peers.event_loop import EventLoop, Timer
from ...peers.frames import (
    Exponents,
    GroupBeginFrame,
    GroupJoinFrame,
    GroupOverFrame,
    Packable,
)
from .lease import GroupLease
from .planned_groups import PlannedGroups
from .stream import Floats, SumChunks, num_chunks

MOST_GROUP_MEMBERS: Final = 32
"""Bits of a bitmap."""
_TICK_S: Final = 0.02
"""Pause between two looks at a group that is under way."""
_ASK_S: Final = 0.03
"""After so long, a sum that lacks is asked for again; in silence, after twice as long each time."""
_LONGEST_ASK_S: Final = 0.5
_logger = logging.getLogger(__name__)


class GroupPort(Protocol):
    """A worker's connection, as the groups see it."""

    worker_id: int
    incarnation: int

    def send_group(self, frame: Packable, payload: memoryview | None = None) -> None:
        """Send a frame of groups."""
        ...


class GroupDoor(Protocol):
    """The groups, as the workers' connections see them."""

    def enter(self, port: GroupPort) -> None:
        """Tell a worker's process of the rows from now on."""
        ...

    def leave(self, port: GroupPort) -> None:
        """Learn that a connection is gone."""
        ...

    def join(self, port: GroupPort, head: GroupJoinFrame) -> None:
        """Have an update wait for others."""
        ...


class GroupUpdate(NamedTuple):
    """A member's update."""

    port: GroupPort
    """Where it was announced."""
    number: int
    open_from: int
    version: int
    transfer_id: int
    sequence: int
    """Its place in the server's commit sequence."""


class GroupRoom(Protocol):
    """Memory for a sum."""

    @property
    def values(self) -> Floats:
        """Of all keys."""
        ...


Room = TypeVar("Room", bound=GroupRoom)


class GroupSink(Protocol[Room]):
    """Takes the sums of groups; the updates of a server do."""

    def keys_of_group(self, table: int) -> NDArray[np.int64] | None:
        """Return the keys of a dense table that this server has, None if its updates cannot be
        added up: it is not there, is synchronous, or its optimiser has a state.
        """
        ...

    def begin_sum(
        self, members: tuple[GroupUpdate, ...], table: int, num_values: int
    ) -> Room | None:
        """Return memory for a sum, None if there is none."""
        ...

    def take_sum(self, room: Room) -> None:
        """Apply a sum, as all of its updates or not at all, and tell the members."""
        ...

    def drop_sum(self, room: Room) -> None:
        """Free the memory of a group that was given up."""
        ...

    def tell_members(self, worker_ids: tuple[int, ...]) -> None:
        """Tell the scheduler whose updates can be added up now."""
        ...


@dataclass(frozen=True)
class _Joined:
    """A worker that waits for its group."""

    port: GroupPort
    head: GroupJoinFrame

    @property
    def update(self) -> GroupUpdate:
        """The update that it joins with."""
        head = self.head
        return GroupUpdate(self.port, *head[:5])

    @property
    def key(self) -> ExpectedMember:
        """The update's name at the scheduler."""
        return ExpectedMember(self.port.worker_id, self.head.transfer_id)

    def fits(self, other: _Joined) -> bool:
        """Return whether both updates can be added up: same keys, and as many chunks."""
        own, others = self.head, other.head
        return (
            own[5:9] == others[5:9]  # table, keys, values, checksum
            and own.exponents.size == others.exponents.size
        )


@dataclass(eq=False)
class _Running(Generic[Room]):
    """A group that is under way."""

    members: list[_Joined]
    room: Room
    chunks: SumChunks
    heard_s: float
    """When the last new sum came."""
    silent_ask_s: float
    """When the first sums that lack are asked for, if none comes before."""
    ask_pause_s: float = _ASK_S

    def has(self, worker_id: int) -> bool:
        return any(member.port.worker_id == worker_id for member in self.members)


@final
class SwitchGroupServer(Generic[Room]):
    """Runs in the loop's thread, but for the constructor. One group is under way at a time.

    `counters`: groups (whose sums were handed over), grouped_updates (the updates in them),
    failed_groups (given up, so that their updates come by themselves), lone_updates (whose group
    nobody else has joined in time), group_packets (of sums that counted), group_repeats (sums that
    had come before), group_questions (flushes for sums that lacked).
    """

    def __init__(
        self, loop: EventLoop, lease: GroupLease, sink: GroupSink[Room], *, give_up_s: float
    ) -> None:
        self.counters: Counter[str] = Counter()
        self._loop = loop
        self._lease = lease
        self._sink = sink
        self._give_up_s = give_up_s
        self._ports: dict[int, GroupPort] = {}
        self._planned = PlannedGroups[_Joined]()
        self._told: tuple[int, ...] = ()
        """The members that the scheduler knows."""
        self._running: _Running[Room] | None = None
        self._gather_timer: Timer | None = None
        self._tick_timer: Timer | None = None

    def close(self) -> None:
        """Stop; no timer is left."""
        self._ports.clear()
        self._planned.take_all()
        self._running = None
        self._cancel()

    # The scheduler's word comes here.

    def expect(self, told: SwitchGroupExpected) -> None:
        """Learn of a group; a second word of it changes nothing."""
        self._planned.expect(told, time.monotonic())
        self._consider()

    def on_registered(self) -> None:
        """Tell the scheduler whose updates can be added up: it may be another one."""
        self._told = ()
        self._tell_members()

    # The workers' connections call the methods below.

    def enter(self, port: GroupPort) -> None:
        """Tell a worker's process of the rows from now on; forget what an older one has joined."""
        self.forget(port.worker_id)
        self._ports[port.worker_id] = port
        if self._lease.is_ready:
            port.send_group(self._lease.frame(port.worker_id))
        self._tell_members()

    def leave(self, port: GroupPort) -> None:
        """Learn that a connection is gone."""
        if self._ports.get(port.worker_id) is port:
            del self._ports[port.worker_id]
            self.forget(port.worker_id)
            self._tell_members()

    def forget(self, worker_id: int) -> None:
        """Learn that what a worker has sent over an earlier connection is of no use."""
        self._planned.forget(worker_id)
        running = self._running
        if running is not None and running.has(worker_id):
            self._fail(running, f"worker {worker_id} is gone")
        else:
            self._consider()

    def join(self, port: GroupPort, head: GroupJoinFrame) -> None:
        """Have an update wait for its group; it is over at once if it can be in none."""
        joined = _Joined(port, head)
        is_ours = self._ports.get(port.worker_id) is port
        if not (is_ours and self._can_join(port, head)):
            self._planned.miss(joined.key)
            self._decline([joined])
        elif not self._planned.join(joined.key, joined, time.monotonic()):
            self._decline([joined])
        self._consider()

    def _can_join(self, port: GroupPort, head: GroupJoinFrame) -> bool:
        frame = self._lease.frame(port.worker_id)
        if not frame.generation or head.generation != frame.generation:
            return False
        keys = self._sink.keys_of_group(head.table)
        return (
            keys is not None
            and head.num_keys == keys.size
            and head.num_values > 0
            and head.num_values % keys.size == 0
            and head.keys_checksum == zlib.crc32(keys.tobytes())
            and head.exponents.size == num_chunks(head.num_values, frame.values_per_packet)
        )

    # The lease's calls come here.

    def on_lease(self) -> None:
        """Learn that rows have become usable, or are not any more."""
        joined = self._planned.take_all()
        if self._running is not None:
            self._give_up(self._running, "the switch's rows are not to be used any more")
        self._decline(joined)
        for worker_id, port in self._ports.items():
            port.send_group(self._lease.frame(worker_id))
        self._tell_members()

    def on_packets(self, packets: NDArray[np.void]) -> None:
        """Take what the switch has sent."""
        running = self._running
        if running is None:
            return
        now_s = time.monotonic()
        if running.chunks.take(packets):
            running.heard_s = now_s
            running.ask_pause_s, running.silent_ask_s = _ASK_S, now_s + _ASK_S
            self._tell(running)
            self._ask(running, now_s, is_silent=False)
        if running.chunks.is_done:
            self._finish(running)
        elif running.chunks.has_overflowed:
            self._fail(running, "a sum does not fit its lanes")

    # The methods below are this class's own.

    def _tell_members(self) -> None:
        known = self._lease.members if self._lease.is_ready else {}
        members = tuple(sorted(self._ports.keys() & known.keys()))
        if members != self._told:
            self._told = members
            self._sink.tell_members(members)

    def _consider(self) -> None:
        """Begin the next group if it is time."""
        if self._gather_timer is not None:
            self._gather_timer.cancel()
            self._gather_timer = None
        now_s = time.monotonic()
        self._decline(self._planned.expire(now_s))
        while self._running is None:
            joined = self._planned.take_ready(now_s)
            if not joined:
                break
            members = [each for each in joined if each.fits(joined[0])][:MOST_GROUP_MEMBERS]
            self._decline([each for each in joined if each not in members])
            if len(members) > 1:
                self._begin(members)
            else:
                self.counters["lone_updates"] += 1
                self._decline(members)
        due_s = self._planned.due_s(is_busy=self._running is not None)
        if due_s is not None:
            self._gather_timer = self._loop.call_later(max(0.0, due_s - now_s), self._consider)

    def _begin(self, members: list[_Joined]) -> None:
        head, count = members[0].head, len(members)
        updates = tuple(each.update for each in members)
        room = self._sink.begin_sum(updates, head.table, head.num_values)
        if room is None:
            self._decline(members)
            return
        exponents: Exponents = np.maximum.reduce([each.head.exponents for each in members])
        place = self._lease.take(exponents.size, count)
        known = self._lease.members
        bits = sum(known[each.port.worker_id].worker_bitmap for each in members)
        chunks = SumChunks(place, bits, room.values, exponents)
        now_s = time.monotonic()
        self._running = _Running(members, room, chunks, now_s, now_s + _ASK_S)
        for each in members:
            frame = GroupBeginFrame(each.head.number, place.first, count, exponents)
            each.port.send_group(frame)
        self._tick_timer = self._loop.call_later(_TICK_S, self._tick)

    def _decline(self, members: Iterable[_Joined]) -> None:
        """Have members whose connections stand send their updates by themselves."""
        for each in members:
            if self._ports.get(each.port.worker_id) is each.port:
                each.port.send_group(GroupOverFrame(each.head.number))

    def _tell(self, running: _Running[Room]) -> None:
        """Tell the members which sums have come."""
        frame, bits = running.chunks.progress()
        for member in running.members:
            member.port.send_group(frame, bits if bits else None)

    def _ask(self, running: _Running[Room], now_s: float, *, is_silent: bool) -> None:
        """Ask the switch for sums that later ones have overtaken, or for the first ones."""
        datagrams = running.chunks.ask(now_s, _ASK_S, is_silent=is_silent)
        if len(datagrams):
            self.counters["group_questions"] += len(datagrams)
            self._lease.send(datagrams)

    def _tick(self) -> None:
        self._tick_timer = None
        running = self._running
        if running is None:
            return
        now_s = time.monotonic()
        if now_s - running.heard_s >= self._give_up_s:
            self._give_up(running, f"no sum has come for {self._give_up_s:g} s")
            self._lease.check()  # and no group begins until the switch has answered
            return
        is_silent = now_s >= running.silent_ask_s
        if is_silent:
            running.ask_pause_s = min(2 * running.ask_pause_s, _LONGEST_ASK_S)
            running.silent_ask_s = now_s + running.ask_pause_s
        self._ask(running, now_s, is_silent=is_silent)
        self._tick_timer = self._loop.call_later(_TICK_S, self._tick)

    def _finish(self, running: _Running[Room]) -> None:
        """Hand the sum over: it counts now, unless an update of it has counted before."""
        self._end(running)
        self.counters["groups"] += 1
        self.counters["grouped_updates"] += len(running.members)
        self._sink.take_sum(running.room)
        self._consider()

    def _fail(self, running: _Running[Room], why: str) -> None:
        """Give a group up, and go on with the next one."""
        self._give_up(running, why)
        self._consider()

    def _give_up(self, running: _Running[Room], why: str) -> None:
        """Have nothing of a group count; its members send by themselves."""
        self._end(running)
        self.counters["failed_groups"] += 1
        workers = ", ".join(str(each.port.worker_id) for each in running.members)
        _logger.warning("a switch group of workers %s is given up: %s", workers, why)
        self._sink.drop_sum(running.room)
        self._decline(running.members)

    def _end(self, running: _Running[Room]) -> None:
        assert self._running is running
        self.counters["group_packets"] += running.chunks.num_taken
        self.counters["group_repeats"] += running.chunks.num_repeated
        self._running = None
        if self._tick_timer is not None:
            self._tick_timer.cancel()
            self._tick_timer = None

    def _cancel(self) -> None:
        for timer in (self._tick_timer, self._gather_timer):
            if timer is not None:
                timer.cancel()
        self._tick_timer = self._gather_timer = None
