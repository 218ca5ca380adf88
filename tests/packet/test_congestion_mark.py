# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Growing queues mark packets: ECN in IPv4, ECN_ECHO in results, with correct checksums.

A port that sends slowly makes the queue. softswitch limits the rate of the port's link, and no
frame leaves before all are in the queue. BMv2 limits the rate of its queue, which must therefore be
filled quickly.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import pytest

import bmv2_target
from p4runtime_control import P4RuntimeControl
from packet_frames import ETHERTYPE_IPV4, ethernet, internet_checksum, ipv4, udp
from packet_target import Entry
from packet_tree import Child, Node, worker
from packet_tree import switch as switch_station
from switchfold import p4src
from switchfold.hostlib.slots.wire import (
    ETHERNET_BYTES,
    VALUES_PER_PACKET_NARROW,
    Flag,
    Operation,
    datagram_dtype,
)
from time_bound import wait_until

MARK_DEPTH = 48
"""CONGESTION_MARK_DEPTH of constants.p4."""
FRAMES = MARK_DEPTH + 12
RATE_PPS = 10
"""Rate of BMv2's queue."""
FILLED_S = (FRAMES - MARK_DEPTH - 2) / RATE_PPS
"""If all frames are in the queue within this time, it has only grown."""
GROUP = 20
"""BMv2 loses frames when more than about 30 come at once; all of them fit its queue of 64."""
_generations = itertools.count(30_000)
IN_PORT, SLOW_PORT = 1, 2
SLOTS = 64
NOT_CAPABLE, CAPABLE_1, CAPABLE, EXPERIENCED = 0, 1, 2, 3


Make = Callable[[], Sequence[bytes]]
"""Makes the frames of a burst; it is called again if a busy machine was too slow."""


class Bottleneck(Protocol):
    """A switch whose SLOW_PORT sends slowly."""

    def install(self, entries: Sequence[Entry], groups: dict[int, list[tuple[int, int]]]) -> None:
        """Write entries and multicast groups."""
        ...

    def burst(self, make: Make) -> tuple[list[bytes], int]:
        """Send frames into IN_PORT at once; return the frames that leave SLOW_PORT in order.

        Also return how many packets without ECN were dropped because the queue was long.
        """
        ...


class SoftswitchBottleneck:
    """softswitch with a link of its own rate."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        from switchfold.softswitch import compile_program  # noqa: PLC0415
        from switchfold.softswitch.p4runtime.service.serve import serve  # noqa: PLC0415 (needs the server's packages)
        from switchfold.softswitch.switch.impairments import Impairments  # noqa: PLC0415
        from switchfold.softswitch.switch.switch import Switch  # noqa: PLC0415

        compile_program(p4src.artefacts("narrow").json)  # finsy waits 10 s, a compiler takes longer
        self._switch = stack.enter_context(Switch())
        for port in (IN_PORT, SLOW_PORT):
            self._switch.ports.add(port, "mem")
        self._standstill = Impairments(rate_bits_per_s=1)
        self._switch.ports.set_impairments(SLOW_PORT, self._standstill, direction="out")
        server = stack.enter_context(serve(self._switch, address="127.0.0.1:0"))
        self._control = P4RuntimeControl("narrow", server.address)
        stack.callback(self._control.close)
        self._switch.start()

    def install(self, entries: Sequence[Entry], groups: dict[int, list[tuple[int, int]]]) -> None:
        """See Bottleneck."""
        self._control.insert(*entries)
        for number, replicas in groups.items():
            self._control.set_multicast_group(number, replicas)

    def burst(self, make: Make) -> tuple[list[bytes], int]:
        """See Bottleneck."""
        frames = make()
        lengths = np.array([len(frame) for frame in frames], np.int32)
        rows = np.zeros((len(frames), max(lengths)), np.uint8)
        for row, frame in zip(rows, frames, strict=True):
            row[: len(frame)] = np.frombuffer(frame, np.uint8)
        before, arrived = self._count("congestion_drops", 0), self._count("port_in", IN_PORT)
        assert self._switch.ports.mem_port(IN_PORT).send(rows, lengths) == len(frames)
        wait_until(
            lambda: self._count("port_in", IN_PORT) == arrived + len(frames), "frames in the queue"
        )
        drops = self._count("congestion_drops", 0) - before
        # New settings release all frames that the line holds.
        self._switch.ports.set_impairments(SLOW_PORT, self._standstill, direction="out")
        received: list[bytes] = []
        space, sizes = np.zeros((len(frames), 2048), np.uint8), np.zeros(len(frames), np.int32)
        while len(received) + drops < len(frames):
            count = self._switch.ports.mem_port(SLOW_PORT).receive(space, sizes, timeout_s=60)
            assert count > 0, f"{len(received)} of {len(frames)} frames arrived"
            received += [bytes(space[i, : sizes[i]]) for i in range(count)]
        return received, drops

    def _count(self, name: str, index: int) -> int:
        return self._control.counters(name)[index]


class Bmv2Bottleneck:
    """BMv2 with a slow queue."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._target = bmv2_target.Bmv2Target("narrow")
        stack.callback(self._target.close)
        if not self._target.has_queue_rate:
            pytest.skip(f"this BMv2 has no Thrift, or there is no {bmv2_target.CLI}")
        self._target.set_queue_rate(SLOW_PORT, RATE_PPS)

    def install(self, entries: Sequence[Entry], groups: dict[int, list[tuple[int, int]]]) -> None:
        """See Bottleneck."""
        self._target.insert(*entries)
        for number, replicas in groups.items():
            self._target.set_multicast_group(number, replicas)

    def burst(self, make: Make) -> tuple[list[bytes], int]:
        """See Bottleneck."""
        found: tuple[list[bytes], int] = [], 0

        def is_filled_soon() -> bool:
            nonlocal found
            frames = make()
            before = self._count("congestion_drops", 0)
            arrived = self._count("port_in", IN_PORT)
            began_s = time.monotonic()
            for at in range(0, len(frames), GROUP):
                self._target.send(IN_PORT, frames[at : at + GROUP])
                self._await_frames(arrived + min(at + GROUP, len(frames)))
            took_s = time.monotonic() - began_s
            received = self._target.exchange_all(IN_PORT, [])
            drops = self._count("congestion_drops", 0) - before
            found = [frame for port, frame in received if port == SLOW_PORT], drops
            return took_s < FILLED_S

        wait_until(is_filled_soon, "a queue that grows all the time", 200.0)
        return found

    def _count(self, name: str, index: int) -> int:
        return self._target.counters(name)[index]

    def _await_frames(self, count: int) -> None:
        wait_until(lambda: self._count("port_in", IN_PORT) >= count, "the group's arrival")


@pytest.fixture(
    scope="module",
    params=["softswitch", pytest.param("bmv2", marks=[pytest.mark.bmv2, pytest.mark.root])],
)
def bottleneck(request: pytest.FixtureRequest) -> Iterator[Bottleneck]:
    """Each of the two switches, with a route to SLOW_PORT."""
    with contextlib.ExitStack() as stack:
        if request.param == "softswitch":
            made: Bottleneck = SoftswitchBottleneck(stack)
        else:
            reason = bmv2_target.missing_reason()
            if reason is not None:
                pytest.skip(reason)
            made = Bmv2Bottleneck(stack)
        route: dict[str, Any] = {"dst_address": (worker(1).address, 32)}
        to_slow_port = {"port": SLOW_PORT, "mac": worker(1).mac}
        made.install(
            [Entry(table="ipv4_forward", match=route, action="forward", params=to_slow_port)], {}
        )
        yield made


def ordinary_frame(ecn: int, number: int) -> bytes:
    """Return a frame of ordinary traffic, 214 bytes long like all others here."""
    sender, receiver = worker(0), worker(1)
    segment = udp(sender.address, receiver.address, 9, 9, number.to_bytes(4, "big") * 43)
    packet = ipv4(sender.address, receiver.address, segment, tos=0xB8 | ecn, identification=number)
    return ethernet(switch_station(1).mac, sender.mac, ETHERTYPE_IPV4) + packet


def ecn_of(frame: bytes) -> int:
    return frame[ETHERNET_BYTES + 1] & 3


def check_marks(marks: Sequence[bool]) -> None:
    """The first MARK_DEPTH frames find a shorter queue, the last ones do not."""
    assert len(marks) == FRAMES
    assert not any(marks[:MARK_DEPTH])
    # None is marked too early; some may leave while others arrive on a busy machine.
    assert any(marks[MARK_DEPTH:]), marks
    assert marks[-1], "the queue has grown all the time"


@pytest.mark.parametrize("ecn", [CAPABLE, CAPABLE_1])
def test_congestion_mark_of_ordinary_traffic(bottleneck: Bottleneck, ecn: int) -> None:
    sent = [ordinary_frame(ecn, number) for number in range(FRAMES)]
    received, _ = bottleneck.burst(lambda: sent)
    check_marks([ecn_of(frame) == EXPERIENCED for frame in received])
    for frame in received:
        assert ecn_of(frame) in (ecn, EXPERIENCED)
        assert frame[ETHERNET_BYTES + 1] & ~3 == 0xB8
        assert internet_checksum(frame[ETHERNET_BYTES : ETHERNET_BYTES + 20]) == 0


def test_congestion_mark_drops_what_cannot_carry_it(bottleneck: Bottleneck) -> None:
    sent = [ordinary_frame(NOT_CAPABLE, number) for number in range(FRAMES)]
    received, drops = bottleneck.burst(lambda: sent)
    assert [ecn_of(frame) for frame in received] == [NOT_CAPABLE] * len(received)
    # The first frames find a shorter queue; of the others, at least the last one is dropped.
    assert MARK_DEPTH <= len(received) < FRAMES
    assert drops == FRAMES - len(received)
    for number, frame in enumerate(received[:MARK_DEPTH]):
        assert frame[ETHERNET_BYTES + 28 :] == sent[number][ETHERNET_BYTES + 28 :]


def test_congestion_mark_leaves_marked_packets_alone(bottleneck: Bottleneck) -> None:
    sent = [ordinary_frame(EXPERIENCED, number) for number in range(FRAMES)]
    received, _ = bottleneck.burst(lambda: sent)
    assert [ecn_of(frame) for frame in received] == [EXPERIENCED] * FRAMES
    for frame in received:
        assert internet_checksum(frame[ETHERNET_BYTES : ETHERNET_BYTES + 20]) == 0


@pytest.mark.parametrize("ecn", [CAPABLE, NOT_CAPABLE])
def test_congestion_mark_of_results(bottleneck: Bottleneck, ecn: int) -> None:
    # Worker 0 is the only child; its results go out by the slow port.
    child = Child(child_id=0, port=IN_PORT, station=worker(0), contributor_mask=1)
    roots: list[Node] = []

    def make() -> list[bytes]:
        number = next(_generations)
        root = Node(
            job_id=number,
            generation=number,
            values_per_packet=VALUES_PER_PACKET_NARROW,
            station=switch_station(1),
            children=(child,),
            slot_base=256,
            slot_count=SLOTS,
        )
        bottleneck.install(root.entries(), {root.job_id: [(SLOW_PORT, 1)]})
        roots.append(root)
        return [
            root.from_child(0, root.packet(0, slot, slot_index=slot), tos=ecn)[1]
            for slot in range(FRAMES)
        ]

    received, _ = bottleneck.burst(make)
    root = roots[-1]
    marks: list[bool] = []
    for slot, frame in enumerate(received):
        datagram = np.frombuffer(frame[42:], datagram_dtype(VALUES_PER_PACKET_NARROW))[0]
        header = datagram["header"]
        assert (header["operation"], header["slot_index"]) == (Operation.RESULT, slot)
        marks.append(bool(header["flags"] & Flag.ECN_ECHO))
        assert ecn_of(frame) == (EXPERIENCED if marks[-1] else ecn)
        result = root.packet(
            0, slot, slot_index=slot, operation=Operation.RESULT, flags=int(header["flags"])
        )
        assert datagram.tobytes() == result.tobytes()
        # All checksums are those of the marked packet.
        assert frame == root.to_child(0, result, tos=ecn_of(frame))[0][1]
    if ecn == CAPABLE:
        check_marks(marks)
    else:
        assert not any(marks)


def test_congestion_mark_depth_is_the_programs() -> None:
    text = (p4src.artefacts("narrow").json.parents[2] / "include" / "constants.p4").read_text(
        encoding="utf-8"
    )
    assert f"const bit<19> CONGESTION_MARK_DEPTH = {MARK_DEPTH};" in text
