# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What programs see of standard_metadata in ingress and egress, as simple_switch shows it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest

from pipeline_driver import PROGRAMS
from switchfold.softswitch import Impairments, Switch, compile_program

TIMES = ("ingress_global_timestamp", "egress_global_timestamp", "enq_timestamp")


class View(NamedTuple):
    ingress_port: int = 1
    egress_spec: int = 0
    egress_port: int = 0
    instance_type: int = 0
    packet_length: int = 4
    mcast_grp: int = 0
    egress_rid: int = 0
    checksum_error: int = 0
    parser_error: int = 0
    priority: int = 0
    ingress_global_timestamp: int = 0
    egress_global_timestamp: int = 0
    enq_timestamp: int = 0
    enq_qdepth: int = 0
    deq_timedelta: int = 0
    deq_qdepth: int = 0


def view(data: bytes) -> View:
    head = struct.unpack_from(">HHHIIHHBBB", data)
    late, last = data[21:33], struct.unpack_from(">IIII", data, 33)
    times = int.from_bytes(late[:6], "big"), int.from_bytes(late[6:], "big")
    return View(*head, *times, *last)


SIZE = 49


def views(frame: bytes, skip: int = 4) -> tuple[View, View]:
    """Return what ingress and egress saw."""
    return view(frame[skip:]), view(frame[skip + SIZE :])


def timeless(seen: View) -> View:
    return seen._replace(ingress_global_timestamp=0, egress_global_timestamp=0, enq_timestamp=0)


@pytest.fixture
def switch() -> Iterator[Switch]:
    program = compile_program(PROGRAMS / "standard_metadata.json", cflags=("-Werror",))
    with Switch(program) as held:
        for number in (1, 2, 3, 5, 77):
            held.ports.add(number, "mem")
        held.replication.set_multicast_group(3, [(2, 1), (3, 2)])
        yield held


def run(
    switch: Switch, command: int, argument: int = 0, checksum: int = 0, rest: bytes = b""
) -> list[tuple[int, bytes]]:
    return switch.process(1, bytes([command, argument]) + checksum.to_bytes(2, "big") + rest)


def test_plain_packet(switch: Switch) -> None:
    [(port, frame)] = run(switch, 0)
    ingress, egress = views(frame)
    assert port == 2
    assert timeless(ingress) == View()
    # The header that ingress added counts.
    assert timeless(egress) == View(egress_port=2, packet_length=4 + SIZE)


def test_times_are_microseconds_since_the_start(switch: Switch) -> None:
    seen: list[int] = []
    for _ in range(3):
        ingress, egress = views(run(switch, 0)[0][1])
        assert ingress.egress_global_timestamp == ingress.enq_timestamp == 0
        seen += [getattr(egress, name) for name in TIMES]
        assert egress.ingress_global_timestamp == ingress.ingress_global_timestamp
    assert seen == sorted(seen)
    assert 0 < seen[0] <= seen[-1] < 60_000_000


def test_egress_sees_what_ingress_wrote_but_for_what_the_switch_sets(switch: Switch) -> None:
    [(port, frame)] = run(switch, 1)
    _, egress = views(frame)
    assert port == 2
    expected = View(77, 0, 2, packet_length=4 + SIZE, egress_rid=55)
    assert timeless(egress) == expected
    assert egress.ingress_global_timestamp == 0xABC


def test_copies_have_their_replica_id(switch: Switch) -> None:
    sent = {port: views(frame)[1] for port, frame in run(switch, 2)}
    for port, rid in ((2, 1), (3, 2)):
        expected = View(1, 0, port, 5, 4 + SIZE, 3, rid)
        assert timeless(sent[port]) == expected


def test_errors(switch: Switch) -> None:
    assert [seen.checksum_error for seen in views(run(switch, 4)[0][1])] == [1, 1]
    assert [seen.checksum_error for seen in views(run(switch, 4, 0, 0xFBFF)[0][1])] == [0, 0]
    assert [seen.parser_error for seen in views(run(switch, 5)[0][1])] == [1, 1]
    assert [seen.parser_error for seen in views(run(switch, 7)[0][1])] == [0, 0]
    assert [seen.parser_error for seen in views(run(switch, 7, 1)[0][1])] == [2, 2]
    written = views(run(switch, 3)[0][1])[1]
    assert (written.parser_error, written.checksum_error) == (2, 1)


def test_length_follows_set_valid_and_set_invalid(switch: Switch) -> None:
    # One header of 3 bytes is removed and two are added; pop_front's header still counts.
    [(_, frame)] = run(switch, 6, rest=bytes(10))
    ingress, egress = views(frame, 4 + 3)
    assert (ingress.packet_length, egress.packet_length) == (14, 14 + SIZE - 3 + 3 + 3)
    assert len(frame) == 14 - 3 + 3 + 2 * SIZE
    # Counters count the packet as it came.
    assert switch.arrays.read_counter(0, 0) == (1, 14)


def test_egress_spec_decides_in_ingress_and_egress_port_is_fixed(switch: Switch) -> None:
    assert [port for port, _ in run(switch, 8)] == [2]
    assert [port for port, _ in run(switch, 9, 5)] == [5]


@pytest.mark.parametrize(
    ("impairments", "expected"),
    [
        (Impairments(rate_bits_per_s=20_000), [0, 1, 2]),
        (Impairments(rate_bits_per_s=20_000, delay_s=0.1), [0, 1, 2]),
        (Impairments(delay_s=0.1), [0, 0, 0]),
    ],
)
def test_queue_depths_are_those_of_the_shaped_port(
    switch: Switch, impairments: Impairments, expected: list[int]
) -> None:
    switch.ports.set_impairments(2, impairments, direction="out")
    switch.start()
    frames, lengths = np.zeros((3, 4), np.uint8), np.full(3, 4, np.int32)
    assert switch.ports.mem_port(1).send(frames, lengths) == 3
    received, sizes = np.zeros((3, 256), np.uint8), np.zeros(3, np.int32)
    depths: list[int] = []
    while len(depths) < 3:
        count = switch.ports.mem_port(2).receive(received, sizes, timeout_s=60)
        assert count > 0
        for row in received[:count]:
            egress = views(row.tobytes())[1]
            assert egress.enq_qdepth == egress.deq_qdepth
            depths.append(egress.enq_qdepth)
    assert depths == expected
    # Nothing waits any more, however many have passed.
    assert switch.ports.mem_port(1).send(frames, lengths) == 3
    assert switch.ports.mem_port(2).receive(received, sizes, timeout_s=60) > 0
    assert views(received[0].tobytes())[1].enq_qdepth == 0
