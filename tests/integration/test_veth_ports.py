# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import socket
import struct
import subprocess
import time
from collections.abc import Iterator

import pytest

from first_byte import HandWrittenProgram, compile_first_byte
from switchfold.softswitch.errors import InterfaceNotFoundError, PortInUseError
from switchfold.softswitch.switch.port_watch import PortWatch
from switchfold.softswitch.switch.switch import Switch
from time_bound import wait_until
from veth_pair import bring_up, ip, packet_socket

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="veth ports need root"),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> HandWrittenProgram:
    return compile_first_byte(tmp_path_factory.mktemp("first_byte"))


@pytest.fixture
def interfaces() -> Iterator[tuple[str, str]]:
    switch_end, host_end = f"vs{os.getpid()}", f"vh{os.getpid()}"
    ip("link", "add", switch_end, "type", "veth", "peer", "name", host_end)
    try:
        bring_up(switch_end, host_end)
        yield switch_end, host_end
    finally:
        subprocess.run(["ip", "link", "del", switch_end], check=False, capture_output=True)


def test_veth_port_echoes_frames(program: HandWrittenProgram, interfaces: tuple[str, str]) -> None:
    with Switch(program) as switch, packet_socket(interfaces[1]) as host:
        switch.ports.add(1, f"veth:{interfaces[0]}")
        switch.start()
        for serial in range(200):
            data = bytes(8) + struct.pack(">I", serial) + b"\x88\xb5" + bytes(1400)
            host.send(data)
            assert host.recv(2048) == data
        statistics = switch.ports.statistics(1)
        assert (statistics["rx_packets"], statistics["tx_packets"]) == (200, 200)


def test_frames_that_find_no_room_are_counted(
    program: HandWrittenProgram, interfaces: tuple[str, str]
) -> None:
    with Switch(program) as switch, packet_socket(interfaces[1]) as host:
        switch.ports.add(1, f"veth:{interfaces[0]}")
        sent = 6000
        for _ in range(sent):  # nothing reads them yet, and the ring has 4096 slots
            host.send(bytes(12) + b"\x88\xb5" + bytes(46))
        wait_until(lambda: switch.ports.statistics(1)["rx_overflow"], "a full ring")
        switch.start()

        def are_all_counted() -> bool:
            counts = switch.ports.statistics(1)
            return counts["rx_packets"] + counts["rx_overflow"] == sent

        wait_until(are_all_counted, "every frame is received or counted")


def test_vlan_tag_is_kept(program: HandWrittenProgram, interfaces: tuple[str, str]) -> None:
    with Switch(program) as switch, packet_socket(interfaces[1]) as host:
        switch.ports.add(1, f"veth:{interfaces[0]}")
        switch.start()
        tagged = bytes(12) + b"\x81\x00\x00\x05\x88\xb5" + bytes(60)
        host.send(tagged)
        wait_for_statistic(switch, "tx_bytes", len(tagged))


def wait_for_statistic(switch: Switch, name: str, value: int) -> None:
    end = time.monotonic() + 60
    while switch.ports.statistics(1)[name] < value:
        assert time.monotonic() < end, (name, switch.ports.statistics(1))
    assert switch.ports.statistics(1)[name] == value


def test_offloaded_udp_checksum_is_completed(
    program: HandWrittenProgram, interfaces: tuple[str, str]
) -> None:
    ip("addr", "add", "10.99.7.1/24", "dev", interfaces[1])
    mac = "00:01:00:00:00:07"  # first byte 0: echo
    ip("neigh", "add", "10.99.7.2", "lladdr", mac, "dev", interfaces[1])
    with (
        Switch(program) as switch,
        packet_socket(interfaces[1]) as host,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        switch.ports.add(1, f"veth:{interfaces[0]}")
        switch.start()
        sender.sendto(b"abcde", ("10.99.7.2", 9))
        frame = host.recv(2048)
        while frame[12:14] != b"\x08\x00":
            frame = host.recv(2048)
    segment = frame[34 : 34 + 8 + 5]
    pseudo = frame[26:34] + struct.pack(">HH", 17, len(segment)) + segment + b"\0"
    total = sum(struct.unpack(f">{len(pseudo) // 2}H", pseudo))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    assert total == 0xFFFF
    assert segment[6:8] != b"\0\0"


def test_taken_and_missing_interfaces_are_refused(
    program: HandWrittenProgram, interfaces: tuple[str, str]
) -> None:
    with Switch(program) as switch, Switch(program) as second:
        switch.ports.add(1, f"veth:{interfaces[0]}")
        with pytest.raises(PortInUseError, match="another switch"):
            second.ports.add(1, f"veth:{interfaces[0]}")
        with pytest.raises(InterfaceNotFoundError, match="no interface 'nothere'"):
            second.ports.add(1, "veth:nothere")
        switch.ports.remove(1)
        second.ports.add(1, f"veth:{interfaces[0]}")


def test_vanished_interface_takes_only_its_port_down(
    program: HandWrittenProgram, interfaces: tuple[str, str]
) -> None:
    with Switch(program) as switch:
        switch.ports.add(1, f"veth:{interfaces[0]}")
        switch.start()
        ip("link", "del", interfaces[0])
        end = time.monotonic() + 60
        while switch.ports.statistics(1)["port_errors"] == 0:
            assert time.monotonic() < end
        switch.packet_out(bytes([4, 1]).ljust(60, b"\0"))
        wait_for_statistic(switch, "tx_down", 1)
        switch.packet_out(bytes([2]).ljust(60, b"\0"))
        assert switch.packet_in(60.0) is not None
        assert switch.ports.statistics(1)["port_errors"] <= 2


def test_interface_that_comes_back_is_used_again(
    program: HandWrittenProgram, interfaces: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    def says(text: str) -> None:
        end = time.monotonic() + 60
        while f"port 1 (veth:{interfaces[0]}): the interface {text}" not in caplog.text:
            assert time.monotonic() < end, caplog.text

    caplog.set_level("INFO", logger="switchfold.softswitch.switch.port_watch")
    data = bytes(12) + b"\x88\xb5" + bytes(60)
    with Switch(program) as switch:
        switch.ports.add(1, f"veth:{interfaces[0]}")
        switch.start()
        assert not switch.ports.reopen(1)
        watch = PortWatch(switch, interval_s=0.05)
        watch.start()
        try:
            for times in (1, 2):
                with packet_socket(interfaces[1]) as host:
                    host.send(data)
                    assert host.recv(2048) == data
                assert switch.ports.statistics(1)["rx_packets"] == times
                caplog.clear()
                ip("link", "del", interfaces[0])
                says("has vanished; packets for it are dropped")
                ip("link", "add", interfaces[0], "type", "veth", "peer", "name", interfaces[1])
                bring_up(*interfaces)
                says("is back")
        finally:
            watch.close()
