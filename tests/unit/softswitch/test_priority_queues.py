# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Queues of a port's link by a stepped clock: strict priority, FIFO within one, bounds, depths."""

from __future__ import annotations

import ctypes
import heapq
import random
from typing import NamedTuple

import pytest

from stepped_link import (
    DELAYED,
    DUPLICATED,
    NEVER,
    OVERRUN,
    REORDERED,
    SteppedLink,
    compile_stepped_link,
)
from switchfold.softswitch.compilation.runtime_library import ImpairmentsT

RATE = 8e9
"""A byte takes a nanosecond."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_stepped_link(tmp_path_factory.mktemp("stepped_link"))


def settings(
    rate: float = RATE, *, delay_ns: int = 0, queue_packets: int = 1000, **more: float
) -> ImpairmentsT:
    return ImpairmentsT(
        rate_bits_per_s=rate, delay_ns=delay_ns, queue_packets=queue_packets, seed=1, **more
    )


class Arrival(NamedTuple):
    serial: int
    size: int
    priority: int
    at_ns: int


class Seen(NamedTuple):
    left: list[tuple[int, int]]
    """Packets in order, with the time at which each left."""
    depths: list[int]
    """What each arrival found in its queue."""
    lost: list[int]


def run(link: SteppedLink, arrivals: list[Arrival]) -> Seen:
    """Step the clock from one arrival or deadline to the next, as the data-plane thread does."""
    seen = Seen([], [], [])
    waiting = list(arrivals)
    while waiting or link.deadline_ns != NEVER:
        if waiting and waiting[0].at_ns < link.deadline_ns:
            arrival = waiting.pop(0)
            now, lost = arrival.at_ns, link.counter(OVERRUN)
            seen.depths.append(link.queued(arrival.priority, now))
            left = link.push(*arrival)
            if link.counter(OVERRUN) > lost:
                seen.lost.append(arrival.serial)
        else:
            now = link.deadline_ns
            left = link.advance(now)
            assert left, "a deadline at which nothing leaves"
        seen.left.extend((serial, now) for serial in left)
    return seen


def expected(arrivals: list[Arrival], *, delay_ns: int, queue_packets: int) -> Seen:
    """What a link with strict priorities does, computed from one transmission to the next."""
    seen = Seen([], [], [])
    queue: list[tuple[int, int, Arrival]] = []
    sending: Arrival | None = None
    free_ns = 0
    pending: list[tuple[int, int]] = []  # leaving time and priority

    def transmit(until_ns: int) -> None:
        nonlocal sending, free_ns
        while free_ns <= until_ns:
            sending = None
            if not queue:
                return
            sending = heapq.heappop(queue)[2]
            free_ns += sending.size
            seen.left.append((sending.serial, free_ns + delay_ns))
            pending.append((free_ns + delay_ns, sending.priority))

    for index, arrival in enumerate(arrivals):
        transmit(arrival.at_ns)
        same = [item for item in queue if -item[0] == arrival.priority]
        is_sent = sending is not None and sending.priority == arrival.priority
        seen.depths.append(len(same) + is_sent)
        delayed = [at for at, priority in pending if priority == arrival.priority]
        if len(same) + sum(at > arrival.at_ns for at in delayed) >= queue_packets:
            seen.lost.append(arrival.serial)
            continue
        heapq.heappush(queue, (-arrival.priority, index, arrival))
        free_ns = max(free_ns, arrival.at_ns)
        transmit(arrival.at_ns)
    transmit(NEVER)
    return seen


def random_arrivals(generator: random.Random, queues: int, count: int) -> list[Arrival]:
    now, made = 1, list[Arrival]()
    for serial in range(count):
        now += generator.choice([0, 0, 1, generator.randrange(300), generator.randrange(1200)])
        size = generator.randrange(4, 400)
        made.append(Arrival(serial, size, generator.randrange(queues), now))
    return made


@pytest.mark.parametrize("queues", [1, 2, 8, 256])
@pytest.mark.parametrize(("delay_ns", "queue_packets"), [(0, 1000), (0, 3), (5000, 1000), (900, 2)])
def test_every_packet_leaves_when_strict_priority_says(
    library: ctypes.CDLL, queues: int, delay_ns: int, queue_packets: int
) -> None:
    arrivals = random_arrivals(random.Random(queues), queues, 600)
    wanted = expected(arrivals, delay_ns=delay_ns, queue_packets=queue_packets)
    chosen = settings(delay_ns=delay_ns, queue_packets=queue_packets)
    with SteppedLink(library, queues, chosen) as link:
        seen = run(link, arrivals)
        assert seen == wanted
        assert link.counter(DELAYED) == len(seen.left)
        assert link.counter(OVERRUN) == len(seen.lost)
    assert len(seen.left) + len(seen.lost) == len(arrivals)
    if queues <= 8:
        assert bool(seen.lost) == (queue_packets < 1000)


def test_one_queue_is_a_line(library: ctypes.CDLL) -> None:
    arrivals = random_arrivals(random.Random(3), 1, 600)
    free_ns, wanted = 0, list[tuple[int, int]]()
    for arrival in arrivals:
        free_ns = max(free_ns, arrival.at_ns) + arrival.size
        wanted.append((arrival.serial, free_ns + 70))
    with SteppedLink(library, 1, settings(delay_ns=70)) as link:
        assert run(link, arrivals).left == wanted


def test_the_packet_that_is_sent_is_not_overtaken(library: ctypes.CDLL) -> None:
    with SteppedLink(library, 8, settings()) as link:
        assert link.push(0, 100, 0, now_ns=1000) == []
        assert link.push(1, 100, 0, now_ns=1000) == []
        assert link.push(2, 100, 7, now_ns=1099) == []
        assert [link.queued(priority, 1099) for priority in (0, 7)] == [2, 1]
        assert link.deadline_ns == 1100
        assert link.advance(1100) == [0]
        assert [link.queued(priority, 1100) for priority in (0, 7)] == [1, 1]
        # Too late for 2, which the link sends until 1200, and in time for the next turn.
        assert link.push(3, 100, 7, now_ns=1150) == []
        assert link.advance(1299) == [2]
        assert [link.queued(priority, 1299) for priority in (0, 7)] == [1, 1]
        assert link.advance(1400) == [3, 1]
        assert [link.queued(priority, 1400) for priority in (0, 7)] == [0, 0]
        assert link.deadline_ns == NEVER


def test_a_late_clock_changes_no_order(library: ctypes.CDLL) -> None:
    with SteppedLink(library, 8, settings()) as link:
        link.push(0, 100, 0, now_ns=1000)
        link.push(1, 100, 0, now_ns=1000)
        # The link has begun to send 1 at 1100, before 2 arrived.
        assert link.push(2, 100, 7, now_ns=1101) == [0]
        assert link.advance(5000) == [1, 2]


def test_each_queue_has_a_bound_of_its_own(library: ctypes.CDLL) -> None:
    with SteppedLink(library, 8, settings(queue_packets=4)) as link:
        for serial in range(80):
            assert link.push(serial, 60, serial % 8, now_ns=1000) == []
        assert [link.queued(priority, 1000) for priority in range(8)] == [4] * 8
        assert link.counter(OVERRUN) == 80 - 32
        left = link.advance(NEVER - 1)
    assert left[0] == 0
    assert left[1:] == [
        serial for priority in range(7, -1, -1) for serial in range(priority, 32, 8) if serial
    ]


def test_a_delay_alone_keeps_the_order(library: ctypes.CDLL) -> None:
    with SteppedLink(library, 8, settings(0.0, delay_ns=500)) as link:
        for serial in range(16):
            assert link.push(serial, 60, serial % 8, now_ns=1000 + serial) == []
        assert [link.queued(priority, 1010) for priority in range(8)] == [0] * 8
        assert link.advance(1507) == list(range(8))
        assert link.advance(1515) == list(range(8, 16))


def test_new_settings_release_what_waits_in_strict_order(library: ctypes.CDLL) -> None:
    with SteppedLink(library, 4, settings()) as link:
        for serial in range(12):
            assert link.push(serial, 1000, serial % 4, now_ns=1000) == []
        released = link.set(settings(0.0))
        assert released == [0, 3, 7, 11, 2, 6, 10, 1, 5, 9, 4, 8]
        assert link.push(12, 1000, 0, now_ns=1001) == [12]


def test_packets_released_before_their_time_do_not_hold_up_later_ones(
    library: ctypes.CDLL,
) -> None:
    with SteppedLink(library, 2, settings()) as link:
        for serial in range(2):
            link.push(serial, 1000, serial, now_ns=1000)
        assert link.advance(NEVER) == [0, 1]
        assert link.push(2, 1000, 1, now_ns=1500) == []
        assert link.queued(1, 1500) == 1
        assert link.deadline_ns != NEVER
        assert link.advance(link.deadline_ns) == []
        assert link.deadline_ns == 4000
        assert link.advance(4000) == [2]


def test_duplicates_and_held_packets_keep_their_priority(library: ctypes.CDLL) -> None:
    doubled = settings(duplication=1.0)
    with SteppedLink(library, 8, doubled) as link:
        for serial in range(8):
            assert link.push(serial, 100, serial, now_ns=1000) == []
        assert link.counter(DUPLICATED) == 8
        assert [link.queued(priority, 1000) for priority in range(8)] == [2] * 8
        left = link.advance(1000 + 1600)
        assert left == [0, *(serial for serial in range(7, 0, -1) for _ in range(2)), 0]
    held = settings(reordering=1.0, reordering_packets=2)
    with SteppedLink(library, 8, held) as link:
        for serial in range(8):
            assert link.push(serial, 100, serial, now_ns=1000) == []
        assert link.counter(REORDERED) == 8
        assert link.advance(1600) == [0, 5, 4, 3, 2, 1]
