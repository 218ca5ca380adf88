# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from first_byte import HandWrittenProgram, compile_first_byte
from switchfold.softswitch.errors import (
    BadArgumentError,
    CaptureError,
    EntryNotFoundError,
    InterfaceNotFoundError,
    NoProgramError,
    PortError,
    PortExistsError,
    PortInUseError,
    PortNotFoundError,
    PortSpecError,
    SwitchStateError,
)
from switchfold.softswitch.switch.impairments import Impairments, parse_impairments
from switchfold.softswitch.switch.port_spec import parse_port_spec
from switchfold.softswitch.switch.switch import Switch
from time_bound import wait_until

MASK = (1 << 64) - 1


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> HandWrittenProgram:
    return compile_first_byte(tmp_path_factory.mktemp("first_byte"))


@pytest.fixture
def switch(program: HandWrittenProgram) -> Iterator[Switch]:
    with Switch(program) as switch:
        for number in (1, 2, 3, 4):
            switch.ports.add(number, "mem")
        yield switch


def frame(*head: int, length: int = 60, serial: int = 0) -> bytes:
    body = bytes(head).ljust(8, b"\0") + serial.to_bytes(4, "big")
    return body.ljust(length, b"\0")


def serial_of(data: bytes) -> int:
    return int.from_bytes(data[8:12], "big")


class Generator:
    """SplitMix64 as in the runtime's impairments, to predict what the switch does."""

    def __init__(self, seed: int, port: int, is_out: bool) -> None:
        self.state = (seed + (port * 2 + is_out) * 0xD1342543DE82EF95) & MASK

    def draw(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def happens(self, probability: float) -> bool:
        return (self.draw() >> 11) * 2.0**-53 < probability


def test_echo_returns_frame_unchanged_but_for_egress(switch: Switch) -> None:
    assert switch.process(1, frame(0, 9)) == [(1, frame(0, 9))]


@pytest.mark.parametrize("length", [4, 60, 1500, 9232])
def test_unicast_keeps_length(switch: Switch, length: int) -> None:
    data = bytes([4, 2]).ljust(length, b"\x5a")
    [(port, sent)] = switch.process(1, data)
    assert port == 2
    assert sent[4:] == data[4:]
    assert len(sent) == length


def test_multicast_makes_one_replica_per_port_and_id(switch: Switch) -> None:
    switch.replication.set_multicast_group(7, [(1, 11), (2, 12), (2, 13)])
    sent = switch.process(3, frame(1, 7))
    assert [(port, data[2], data[3]) for port, data in sent] == [(1, 11, 5), (2, 12, 5), (2, 13, 5)]
    switch.replication.delete_multicast_group(7)
    assert switch.process(3, frame(1, 7)) == []
    assert switch.ports.statistics(3)["dropped_unknown_group"] == 1
    with pytest.raises(EntryNotFoundError):
        switch.replication.delete_multicast_group(7)


def test_drops_are_counted_by_cause(switch: Switch) -> None:
    assert switch.process(1, frame(3)) == []
    assert switch.process(1, frame(5)) == []
    assert switch.process(1, frame(4, 99)) == []
    statistics = switch.ports.statistics(1)
    assert statistics["dropped_by_program"] == 2
    assert statistics["dropped_unknown_port"] == 1
    assert statistics["rx_packets"] == 3
    assert statistics["rx_bytes"] == 180
    assert statistics["tx_packets"] == 0


def test_switch_without_program_drops_and_counts() -> None:
    with Switch() as empty:
        empty.ports.add(1, "mem")
        with pytest.raises(NoProgramError):
            empty.process(1, frame(0))
        with pytest.raises(NoProgramError):
            empty.arrays.read_counter(0, 0)
        empty.packet_out(frame(0))
        assert empty.ports.statistics(255)["dropped_no_program"] == 1


def test_load_replaces_program_and_keeps_ports(switch: Switch, program: HandWrittenProgram) -> None:
    switch.start()
    switch.packet_out(frame(4, 255, serial=1))
    assert switch.packet_in(60.0) is not None
    switch.load(program)
    assert switch.arrays.read_counter(0, 0) == (0, 0)
    switch.packet_out(frame(4, 255, serial=2))
    answer = switch.packet_in(60.0)
    assert answer is not None
    assert serial_of(answer) == 2


def test_registers_and_counters_cross_the_seam(switch: Switch) -> None:
    switch.arrays.write_register(0, 3, b"\1\2\3\4")
    assert switch.arrays.read_register(0, 3) == b"\1\2\3\4"
    switch.process(1, frame(0))
    assert switch.arrays.read_counter(0, 0) == (1, 60)
    switch.arrays.write_counter(0, 0, 5, 6)
    assert switch.arrays.read_counter(0, 0) == (5, 6)
    with pytest.raises(BadArgumentError):
        switch.arrays.read_register(0, 4)


def test_packet_in_reaches_callback_once(switch: Switch) -> None:
    frames: list[bytes] = []
    arrived = threading.Event()

    def take(data: bytes) -> None:
        frames.append(data)
        arrived.set()

    switch.set_packet_in(take)
    assert switch.process(1, frame(2)) == [(255, frame(2))]
    assert frames == [frame(2)]
    arrived.clear()
    switch.start()
    switch.packet_out(frame(2, serial=5))
    assert arrived.wait(60)
    assert [serial_of(data) for data in frames] == [0, 5]
    switch.set_packet_in(None)


def test_loss_and_duplication_are_exactly_predictable(switch: Switch) -> None:
    settings = Impairments(loss=0.1, duplication=0.2, seed=7)
    switch.ports.set_impairments(1, settings, direction="in")
    expected: list[int] = []
    generator = Generator(7, 1, is_out=False)
    for serial in range(2000):
        if generator.happens(0.1):
            continue
        expected += [serial] * (2 if generator.happens(0.2) else 1)
    received = [
        serial_of(data)
        for serial in range(2000)
        for _, data in switch.process(1, frame(4, 2, serial=serial))
    ]
    assert received == expected
    statistics = switch.ports.statistics(1)
    lost = 2000 - len(set(expected))
    assert statistics["impaired_in_lost"] == lost
    assert statistics["impaired_in_duplicated"] == len(expected) - len(set(expected))
    assert statistics["rx_packets"] == 2000
    assert switch.ports.statistics(2)["tx_packets"] == len(expected)


def test_corruption_flips_one_bit(switch: Switch) -> None:
    switch.ports.set_impairments(2, Impairments(corruption=1.0, seed=3), direction="out")
    for _ in range(50):
        [(_, data)] = switch.process(1, frame(4, 2))
        difference = int.from_bytes(data, "big") ^ int.from_bytes(frame(4, 2), "big")
        assert difference.bit_count() == 1
    assert switch.ports.statistics(2)["impaired_out_corrupted"] == 50


def test_reordering_holds_for_as_many_packets_as_asked(switch: Switch) -> None:
    settings = Impairments(reordering=0.05, reordering_packets=300, seed=5)
    switch.ports.set_impairments(2, settings, direction="out")
    generator = Generator(5, 2, is_out=True)
    expected: list[int] = []
    held: list[tuple[int, int]] = []
    for serial in range(2000):
        if generator.happens(0.05):
            held.append((serial + 300, serial))
        else:
            expected.append(serial)
        while held and held[0][0] <= serial:
            expected.append(held.pop(0)[1])
    received = [
        serial_of(data)
        for serial in range(2000)
        for _, data in switch.process(1, frame(4, 2, serial=serial))
    ]
    assert received == expected
    assert held
    flushed = [serial_of(data) for _, data in switch.flush_delayed()]
    assert flushed == [serial for _, serial in held]
    assert sorted(received + flushed) == list(range(2000))


def test_delay_rate_and_timed_reordering_in_the_thread(switch: Switch) -> None:
    switch.ports.set_impairments(
        2, Impairments(delay_s=0.03, rate_bits_per_s=10e6, seed=1), direction="out"
    )
    switch.ports.set_impairments(
        3, Impairments(reordering=1.0, reordering_delay_s=0.03, seed=1), direction="in"
    )
    switch.start()
    for sender in (1, 3):
        begin = time.monotonic()
        frames = np.zeros((10, 1250), np.uint8)
        frames[:, 0], frames[:, 1] = 4, 2 if sender == 1 else 4
        switch.ports.mem_port(sender).send(frames, np.full(10, 1250, np.int32))
        received = receive_all(switch, 2 if sender == 1 else 4, 10)
        assert received == 10
        # 10 frames of 1 ms after a delay of 30 ms: the last one cannot come earlier
        assert time.monotonic() - begin >= (0.0395 if sender == 1 else 0.0295)
    assert switch.ports.statistics(2)["impaired_out_delayed"] == 10
    assert switch.ports.statistics(3)["impaired_in_reordered"] == 10


def receive_all(switch: Switch, port: int, count: int, timeout_s: float = 60.0) -> int:
    frames, lengths = np.zeros((64, 2048), np.uint8), np.zeros(64, np.int32)
    end = time.monotonic() + timeout_s
    received = 0
    while received < count and time.monotonic() < end:
        received += switch.ports.mem_port(port).receive(frames, lengths, 1.0)
    return received


def test_threaded_mem_carries_every_frame_in_order(switch: Switch) -> None:
    switch.start()
    with pytest.raises(SwitchStateError):
        switch.process(1, frame(0))
    with pytest.raises(SwitchStateError):
        switch.start()
    port = switch.ports.mem_port(1)
    frames = np.zeros((256, 1500), np.uint8)
    frames[:, 4] = np.arange(256)
    got, lengths = np.zeros((256, 1500), np.uint8), np.zeros(256, np.int32)
    for _ in range(20):
        assert port.send(frames, np.full(256, 1500, np.int32)) == 256
        count = 0
        while count < 256:
            part = port.receive(got[count:], lengths[count:], 60.0)
            assert part > 0
            count += part
        assert (got[:, 4] == np.arange(256)).all()
        assert (lengths == 1500).all()
    assert port.receive(got, lengths, 0.0) == 0


def test_remove_port_wakes_a_waiting_receiver(switch: Switch) -> None:
    switch.start()
    errors: list[Exception] = []
    waiting = threading.Event()

    def wait() -> None:
        waiting.set()
        try:
            receive_all(switch, 2, 1)
        except PortNotFoundError as exc:
            errors.append(exc)

    thread = threading.Thread(target=wait)
    thread.start()
    waiting.wait()
    switch.ports.remove(2)
    thread.join(60)
    assert errors
    with pytest.raises(PortNotFoundError):
        switch.ports.remove(2)


def test_multicast_change_is_atomic_for_every_packet(switch: Switch) -> None:
    switch.replication.set_multicast_group(1, [(1, 1), (2, 1)])
    switch.start()
    frames = np.zeros((64, 60), np.uint8)
    frames[:, 0] = 1
    frames[:, 1] = 1
    lengths = np.full(64, 60, np.int32)
    got: dict[int, list[int]] = {1: [], 2: []}
    buffer, sizes = np.zeros((64, 60), np.uint8), np.zeros(64, np.int32)
    for batch in range(200):
        frames[:, 8:12] = np.frombuffer(
            np.arange(batch * 64, batch * 64 + 64).astype(">u4").tobytes(), np.uint8
        ).reshape(64, 4)
        switch.ports.mem_port(3).send(frames, lengths)
        switch.replication.set_multicast_group(1, [(1, batch % 200), (2, batch % 200)])
    for port, rows in got.items():
        while len(rows) < 12800:
            count = switch.ports.mem_port(port).receive(buffer, sizes, 60.0)
            assert count > 0
            rows += [int(row[2]) for row in buffer[:count]]
    assert got[1] == got[2]


def test_operations_of_one_block_are_one_for_every_packet(switch: Switch) -> None:
    switch.replication.set_multicast_group(1, [(1, 1)])
    switch.start()
    frames = np.zeros((64, 60), np.uint8)
    frames[:, :2] = 1
    lengths = np.full(64, 60, np.int32)
    for round_number in range(100):
        with switch.atomically():
            # Frames that arrive at this moment would be lost.
            switch.replication.delete_multicast_group(1)
            assert switch.ports.mem_port(3).send(frames, lengths) == 64
            with switch.atomically():
                switch.replication.set_multicast_group(1, [(1, round_number)])
    assert receive_all(switch, 1, 6400) == 6400


def test_udp_port_echoes_to_last_source(program: HandWrittenProgram) -> None:
    with Switch(program) as switch, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as host:
        switch.ports.add(1, "udp:127.0.0.1:0")
        switch.start()
        host.bind(("127.0.0.1", 0))
        host.settimeout(60)
        for serial in range(100):
            host.sendto(frame(0, serial=serial, length=1500), switch.ports.udp_address(1))
            assert serial_of(host.recv(2048)) == serial
        statistics = switch.ports.statistics(1)
        assert (statistics["rx_packets"], statistics["tx_packets"]) == (100, 100)


def test_udp_port_with_fixed_peer_refuses_others(program: HandWrittenProgram) -> None:
    with (
        Switch(program) as switch,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other,
    ):
        peer.bind(("127.0.0.1", 0))
        peer.settimeout(60)
        switch.ports.add(1, f"udp:127.0.0.1:0-127.0.0.1:{peer.getsockname()[1]}")
        switch.start()
        other.sendto(frame(0, serial=1), switch.ports.udp_address(1))
        peer.sendto(frame(0, serial=2), switch.ports.udp_address(1))
        assert serial_of(peer.recv(2048)) == 2
        assert switch.ports.statistics(1)["rx_foreign"] == 1


def test_udp_port_counts_what_finds_no_room(program: HandWrittenProgram) -> None:
    with Switch(program) as switch, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", 0))
        switch.ports.add(1, f"udp:127.0.0.1:0-127.0.0.1:{peer.getsockname()[1]}")
        sent = 3000
        for _ in range(sent):  # the switch does not take them yet, and the buffer has at most 8 MiB
            peer.sendto(frame(0, serial=1, length=9000), switch.ports.udp_address(1))
        wait_until(lambda: switch.ports.statistics(1)["rx_overflow"], "a full buffer")
        switch.start()

        def are_all_counted() -> bool:
            counts = switch.ports.statistics(1)
            return counts["rx_packets"] + counts["rx_overflow"] == sent

        wait_until(are_all_counted, "every frame is received or counted")
        assert switch.ports.all_statistics()[1] == switch.ports.statistics(1)


def test_capture_holds_both_directions(program: HandWrittenProgram, tmp_path: Path) -> None:
    scapy = pytest.importorskip("scapy.utils")
    with Switch(program) as switch:
        switch.ports.add(1, "mem", capture=tmp_path / "p1.pcap")
        switch.process(1, frame(0, serial=1))
        switch.process(1, frame(3, serial=2))
        with scapy.RawPcapReader(str(tmp_path / "p1.pcap")) as reader:
            frames = [data for data, _ in reader]
    assert [serial_of(data) for data in frames] == [1, 1, 2]


def test_a_card_is_named_by_what_it_is() -> None:
    parsed = parse_port_spec("interface:eno1")
    assert (parsed.text, parsed.interface) == ("interface:eno1", "eno1")
    assert parsed.kind == parse_port_spec("veth:eno1").kind
    with pytest.raises(PortSpecError, match="the interface eno1 is interface:eno1"):
        parse_port_spec("eno1")


def test_bad_ports_raise_typed_errors(switch: Switch, tmp_path: Path) -> None:
    with pytest.raises(PortExistsError, match="remove it first"):
        switch.ports.add(1, "mem")
    for text in (
        "",
        "memory",
        "veth:",
        "interface:",
        "udp:",
        "udp:127.0.0.1",
        "udp:127.0.0.1:99999",
    ):
        with pytest.raises(PortSpecError):
            switch.ports.add(9, text)
    with pytest.raises(PortSpecError):
        switch.ports.add(511, "mem")
    missing = tmp_path / "none" / "a.pcap"
    with pytest.raises(CaptureError, match=f"capture file {missing} cannot be written: No such"):
        switch.ports.add(9, "mem", capture=missing)
    with pytest.raises(CaptureError, match="/dev/full cannot be written: No space left"):
        switch.ports.add(9, "mem", capture=Path("/dev/full"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:
        holder.bind(("127.0.0.1", 0))
        with pytest.raises(PortInUseError, match="another socket"):
            switch.ports.add(9, f"udp:127.0.0.1:{holder.getsockname()[1]}")
    for kind in ("veth", "interface"):
        with pytest.raises((InterfaceNotFoundError, PortError)):
            switch.ports.add(9, f"{kind}:no-such-if")
    with pytest.raises(PortNotFoundError):
        switch.ports.mem_port(9)
    with pytest.raises(PortNotFoundError):
        switch.process(9, frame(0))
    with pytest.raises(ValueError, match="too long"):
        switch.process(1, bytes(9233))


def test_closed_switch_refuses(program: HandWrittenProgram) -> None:
    switch = Switch(program)
    switch.close()
    switch.close()
    with pytest.raises(SwitchStateError, match="closed"):
        switch.process(1, frame(0))


def test_impairments_check_themselves() -> None:
    assert parse_impairments("1:in:loss=0.05,reordering=0.05,reordering_packets=9,seed=7") == (
        1,
        "in",
        Impairments(loss=0.05, reordering=0.05, reordering_packets=9, seed=7),
    )
    for text in ("1", "1:up:loss=1", "1:in:lost=1", "1:in:loss=x", "1:in:loss=2", "1:in:"):
        with pytest.raises(ValueError, match="impairments"):
            parse_impairments(text)
    with pytest.raises(ValueError, match="never go on"):
        Impairments(reordering=0.1)


def test_capture_that_breaks_is_counted_and_the_port_goes_on(
    program: HandWrittenProgram, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with Switch(program) as switch:
        switch.ports.add(1, "mem", capture=pipe)
        assert switch.process(1, frame(0)) == [(1, frame(0))]
        assert len(os.read(reader, 65536)) == 24 + 2 * (16 + 60)
        os.close(reader)
        assert switch.ports.statistics(1)["capture_errors"] == 0
        for _ in range(2):
            assert switch.process(1, frame(0)) == [(1, frame(0))]
        statistics = switch.ports.statistics(1)
        assert (statistics["capture_errors"], statistics["tx_packets"]) == (3, 3)


def test_every_statistic_is_documented(switch: Switch) -> None:
    page = (Path(__file__).parents[3] / "docs" / "softswitch.md").read_text(encoding="utf-8")
    names = set(switch.ports.statistics(1))
    assert {name for name in names if f"`{name}`" not in page and "_out_" not in name} == set()
