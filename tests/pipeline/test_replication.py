# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Clones, digests, further passes, multicast and truncation, in the order of simple_switch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from pipeline_driver import PROGRAMS
from switchfold.softswitch import Switch, compile_program

REST = bytes(range(20))
NORMAL, INGRESS_CLONE, EGRESS_CLONE, RECIRC, REPLICATION, RESUBMIT = 0, 1, 2, 4, 5, 6


class Seen(NamedTuple):
    """What the program wrote into a packet that left."""

    port: int
    instance_type: int
    rid: int = 0
    ingress_port: int = 1
    length: int = 32
    kept: int = 0
    turn: int = 0
    """99 more if the parser's metadata survived."""
    touched: int = 1
    ingress_turn: int = 0
    tag: bytes = b""


def frame(command: int, argument: int = 0) -> bytes:
    return bytes([command, argument]) + bytes(10) + REST


def read(port: int, data: bytes, rest: bytes = REST) -> Seen:
    tag, data = (data[:4], data[4:]) if data[0] == 0xEE else (b"", data)
    assert data[12:] == rest
    ingress_port, length = int.from_bytes(data[4:6], "big"), int.from_bytes(data[6:8], "big")
    kept, turn, touched, ingress_turn = data[8:12]
    return Seen(
        port, data[2], data[3], ingress_port, length, kept, turn, touched, ingress_turn, tag
    )


@pytest.fixture
def switch() -> Iterator[Switch]:
    program = compile_program(PROGRAMS / "replication.json", cflags=("-Werror",))
    with Switch(program) as held:
        for number in (1, 2, 3, 4):
            held.ports.add(number, "mem")
        held.replication.set_multicast_group(1, [(2, 5), (3, 6), (3, 7)])
        held.replication.set_clone_session(5, [(3, 1)])
        held.replication.set_clone_session(6, [(4, 2)])
        held.replication.set_clone_session(7, [(3, 3), (4, 4), (4, 5)])
        yield held


def run(switch: Switch, command: int, argument: int = 0) -> list[Seen]:
    """Send one frame; return the packets that leave, sorted."""
    sent = switch.process(1, frame(command, argument))
    return sorted(read(port, data) for port, data in sent)


def drops(switch: Switch) -> dict[str, int]:
    statistics = switch.ports.statistics(1)
    return {name: count for name, count in statistics.items() if "dropped" in name and count}


def plain(argument: int = 0, **changes: Any) -> Seen:
    """Return what a unicast packet holds; `kept` is argument + 1 + argument."""
    return Seen(2, NORMAL, kept=2 * argument + 1, turn=99)._replace(**changes)


def test_ingress_clone_is_the_packet_as_it_came(switch: Switch) -> None:
    clone = Seen(3, INGRESS_CLONE, rid=1, ingress_port=0, touched=0)
    assert run(switch, 1, 4) == [plain(4), clone]


def test_ingress_clone_keeps_its_field_list_and_loses_other_metadata(switch: Switch) -> None:
    copies = [
        Seen(3, INGRESS_CLONE, rid=3, ingress_port=0, touched=0, kept=15),
        Seen(4, INGRESS_CLONE, rid=4, ingress_port=0, touched=0, kept=15),
        Seen(4, INGRESS_CLONE, rid=5, ingress_port=0, touched=0, kept=15),
    ]
    assert run(switch, 2, 7) == [plain(7), *copies]


def test_clone_without_a_session_is_nothing(switch: Switch) -> None:
    assert run(switch, 2, 9) == [plain(9)]
    switch.replication.delete_clone_session(5)
    assert run(switch, 1) == [plain()]
    assert drops(switch) == {}


def test_clone_of_a_dropped_packet_leaves(switch: Switch) -> None:
    assert run(switch, 13, 2) == [Seen(3, INGRESS_CLONE, rid=1, ingress_port=0, touched=0, kept=5)]
    assert drops(switch) == {"dropped_by_program": 1}


def test_clone_misses_what_ingress_adds_and_its_length(switch: Switch) -> None:
    clone = Seen(3, INGRESS_CLONE, rid=1, ingress_port=0, touched=0)
    assert run(switch, 15) == [plain(length=36, tag=bytes.fromhex("ee000001")), clone]


def test_session_cuts_its_copies(switch: Switch) -> None:
    switch.replication.set_clone_session(5, [(3, 1), (4, 1)], packet_length_bytes=14)
    sent = switch.process(1, frame(1))
    assert sorted((port, len(data)) for port, data in sent) == [(2, 32), (3, 14), (4, 14)]


def test_egress_clone_starts_at_egress_with_the_headers_as_they_are(switch: Switch) -> None:
    tag = bytes.fromhex("ee000003")
    copies = [
        Seen(port, EGRESS_CLONE, rid, ingress_port=0, kept=9, length=36, tag=tag)
        for port, rid in ((3, 3), (4, 4), (4, 5))
    ]
    assert run(switch, 24, 4) == [plain(4, tag=tag), *copies]


def test_egress_clones_of_egress_clones(switch: Switch) -> None:
    copies = [Seen(4, EGRESS_CLONE, 2, ingress_port=0, turn=turn) for turn in (1, 2, 3)]
    assert run(switch, 6, 3) == [
        plain(3, turn=100),
        copies[0]._replace(turn=2),
        *[copy._replace(turn=3) for copy in copies[1:]],
    ]


def test_egress_clone_of_a_dropped_packet_leaves(switch: Switch) -> None:
    assert run(switch, 14) == [Seen(4, EGRESS_CLONE, 2, ingress_port=0)]
    assert drops(switch) == {"dropped_by_program": 1}


def test_endless_egress_clones_end(switch: Switch) -> None:
    sent = run(switch, 11)
    assert len(sent) == 1025
    assert drops(switch) == {"dropped_clones": 1}


def test_resubmitted_packet_is_the_original_with_its_field_list(switch: Switch) -> None:
    # Four passes; the metadata of the last one starts empty except for the turn.
    assert run(switch, 4, 3) == [plain(3, ingress_port=0, turn=102, ingress_turn=3)]
    array = switch.arrays.read_counter(0, RESUBMIT)
    assert array == (3, 96)
    assert switch.arrays.read_counter(0, NORMAL) == (1, 32)


def test_resubmit_comes_before_multicast_and_after_clone(switch: Switch) -> None:
    sent = run(switch, 17)
    clone = Seen(3, INGRESS_CLONE, rid=1, ingress_port=0, touched=0)
    assert sent == [plain(ingress_port=0), clone]


def test_recirculated_packet_is_what_the_deparser_wrote(switch: Switch) -> None:
    assert run(switch, 5, 3) == [plain(3, ingress_port=0, touched=4, turn=102, ingress_turn=3)]
    assert switch.arrays.read_counter(0, RECIRC) == (3, 96)


def test_recirculation_needs_no_port(switch: Switch) -> None:
    assert run(switch, 16) == [plain(port=3, ingress_port=0, touched=2)]
    assert drops(switch) == {}


def test_recirculated_packet_is_whole_and_as_long_as_it_is(switch: Switch) -> None:
    tag = bytes.fromhex("ee000002")
    expected = plain(length=36, ingress_port=0, touched=2, turn=100, ingress_turn=1, tag=tag)
    assert run(switch, 23) == [expected]
    assert switch.arrays.read_counter(0, RECIRC) == (1, 36)


@pytest.mark.parametrize("command", [9, 10])
def test_endless_passes_end(switch: Switch, command: int) -> None:
    assert run(switch, command) == []
    assert drops(switch) == {"dropped_recirculated": 1}
    assert run(switch, 0) == [plain()]


def test_multicast_beats_unicast_and_drop_clears_it(switch: Switch) -> None:
    copies = [
        plain(port=port, instance_type=REPLICATION, rid=rid)
        for port, rid in ((2, 5), (3, 6), (3, 7))
    ]
    assert run(switch, 21) == copies
    assert run(switch, 20) == []
    assert drops(switch) == {"dropped_by_program": 1}
    assert run(switch, 19) == []
    assert drops(switch)["dropped_unknown_group"] == 1


def test_truncation(switch: Switch) -> None:
    assert [data[:1] + data[4:] for _, data in switch.process(1, frame(7, 5))] == [b"\x07\0"]
    assert [len(data) for _, data in switch.process(1, frame(22, 9))] == [9]
    assert [len(data) for _, data in switch.process(1, frame(7, 200))] == [32]
    # Copies of a packet that was truncated in ingress are whole, as in simple_switch.
    assert [len(data) for _, data in switch.process(1, frame(8, 5))] == [32] * 3


def test_digest(switch: Switch) -> None:
    samples: list[tuple[int, bytes]] = []
    switch.set_digest(lambda number, sample: samples.append((number, sample)))
    for argument in (1, 200):
        assert run(switch, 3, argument) == [
            plain(argument, turn=106)._replace(kept=(2 * argument + 1) & 0xFF)
        ]
    assert samples == [
        (1, bytes.fromhex("03000107" + "01".zfill(18))),
        (1, bytes.fromhex("03000107" + "c8".zfill(18))),
    ]
    switch.set_digest(None)
    run(switch, 3)
    assert len(samples) == 2
    assert drops(switch) == {}


def test_digests_that_nobody_takes_are_counted(switch: Switch) -> None:
    taken: list[bytes] = []

    def take(_: int, sample: bytes) -> None:
        # The data plane goes on while this waits.
        if not taken:
            for _ in range(80000):
                switch.packet_out(frame(3))
        taken.append(sample)

    switch.set_digest(take)
    switch.process(1, frame(3))
    lost = switch.ports.statistics(255)["dropped_digests"]
    assert lost > 0
    assert len(taken) + lost == 80001


def test_drop_port_can_be_chosen() -> None:
    program = compile_program(PROGRAMS / "replication.json")
    with Switch(program, drop_port=2) as switch:
        for number in (1, 2):
            switch.ports.add(number, "mem")
        assert run(switch, 0) == []
        assert drops(switch) == {"dropped_by_program": 1}


def row(data: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8).reshape(1, len(data)).copy()


def test_endless_passes_do_not_hold_up_control(switch: Switch) -> None:
    port, received = switch.ports.mem_port(1), np.zeros((1, 64), np.uint8)
    lengths = np.full(1, 32, np.int32)
    switch.start()
    for session in range(50):
        assert port.send(row(frame(10)), lengths) == 1
        switch.replication.set_clone_session(session, [(3, 2)])
    assert port.send(row(frame(0)), lengths) == 1
    assert switch.ports.mem_port(2).receive(received, lengths, timeout_s=60) == 1
    assert read(2, received[0, : lengths[0]].tobytes()) == plain()
    before = switch.arrays.read_counter(0, RECIRC)[0]
    while switch.arrays.read_counter(0, RECIRC)[0] == before:
        pass
    switch.stop()
