# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames whose checksum and segmentation Linux leaves to the network card, as it does on veth."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator

import pytest

from first_byte import HandWrittenProgram, compile_first_byte
from flow_frames import ones_sum
from switchfold.softswitch.switch.switch import Switch
from test_veth_ports import interfaces, wait_for_statistic
from veth_pair import ip, packet_socket

__all__ = ["interfaces"]  # a fixture

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="veth ports need root"),
]

SOL_PACKET, PACKET_VNET_HDR = 263, 15
NEEDS_CSUM, GSO_TCPV4, GSO_TCPV6, GSO_ECN = 1, 1, 4, 0x80
FIN_PSH, ACK, CWR = 0x09, 0x10, 0x80
ADDRESSES = {4: bytes([10, 0, 0, 1, 10, 0, 0, 2]), 6: bytes(15) + b"\1" + bytes(15) + b"\2"}
PAYLOAD = bytes(i * 7 % 251 for i in range(2500))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> HandWrittenProgram:
    return compile_first_byte(tmp_path_factory.mktemp("first_byte"))


@pytest.fixture
def switch(program: HandWrittenProgram, interfaces: tuple[str, str]) -> Iterator[Switch]:
    with Switch(program, super_frames=False) as switch:
        switch.ports.add(1, f"veth:{interfaces[0]}")
        switch.start()
        yield switch


def ethernet(version: int, tag: bytes) -> bytes:
    """First byte 0: the switch's program sends it back."""
    return bytes(11) + b"\1" + tag + (b"\x08\x00" if version == 4 else b"\x86\xdd")


def network(version: int, segment_bytes: int, ident: int) -> bytes:
    if version == 6:
        return struct.pack(">IHBB", 6 << 28, segment_bytes, 6, 64) + ADDRESSES[6]
    header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + segment_bytes, ident, 0x4000, 64, 6, 0)
    check = 0xFFFF ^ ones_sum(header + ADDRESSES[4])
    return header[:10] + struct.pack(">H", check) + ADDRESSES[4]


def tcp(sequence: int, flags: int, checksum: int = 0) -> bytes:
    options = b"\1\1\1\0"
    return struct.pack(">HHIIBBHHH", 7, 9, sequence, 5, 6 << 4, flags, 99, checksum, 0) + options


def pseudo(version: int, segment_bytes: int) -> bytes:
    return ADDRESSES[version] + struct.pack(">HH", 6, segment_bytes)


def expected_segment(version: int, tag: bytes, start: int, flags: int, ident: int) -> bytes:
    part = PAYLOAD[start : start + 1000]
    sequence = (0xFFFFFF00 + start) % 2**32
    size = 24 + len(part)
    check = 0xFFFF ^ ones_sum(pseudo(version, size) + tcp(sequence, flags) + part)
    body = tcp(sequence, flags, check) + part
    return ethernet(version, tag) + network(version, size, ident) + body


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("tag", [b"", b"\x81\x00\x20\x05"], ids=["untagged", "tagged"])
def test_large_tcp_segment_arrives_as_frames(
    switch: Switch, interfaces: tuple[str, str], version: int, tag: bytes
) -> None:
    size = 24 + len(PAYLOAD)
    whole = (
        ethernet(version, tag)
        + network(version, size, 0xFFFF)
        + tcp(0xFFFFFF00, FIN_PSH | ACK | CWR, ones_sum(pseudo(version, size)))
        + PAYLOAD
    )
    transport = len(ethernet(version, tag)) + (20 if version == 4 else 40)
    kind = (GSO_TCPV4 if version == 4 else GSO_TCPV6) | GSO_ECN
    offload = struct.pack("=BBHHHH", NEEDS_CSUM, kind, transport + 24, 1000, transport, 16)
    with packet_socket(interfaces[1]) as host, packet_socket(interfaces[1]) as sender:
        sender.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        sender.send(offload + whole)
        frames = [tagged_frame(host) for _ in range(3)]
    assert frames == [
        expected_segment(version, tag, 0, ACK | CWR, 0xFFFF),
        expected_segment(version, tag, 1000, ACK, 0),
        expected_segment(version, tag, 2000, ACK | FIN_PSH, 1),
    ]
    assert switch.ports.statistics(1)["rx_packets"] == 3
    assert switch.ports.statistics(1)["rx_oversize"] == 0


def tagged_frame(host: socket.socket) -> bytes:
    """A frame with the VLAN tag that the kernel has put aside for this socket."""
    host.setsockopt(SOL_PACKET, 8, 1)  # PACKET_AUXDATA, for the frames after this one
    data, ancillary, _, _ = host.recvmsg(16384, 256)
    for _, kind, aux in ancillary:
        status, _, _, _, _, tci, tpid = struct.unpack("=IIIHHHH", aux)
        if kind == 8 and status & 0x10:
            return data[:12] + struct.pack(">HH", tpid, tci) + data[12:]
    return data


def test_more_segments_than_a_batch_arrive_in_order(
    switch: Switch, interfaces: tuple[str, str]
) -> None:
    ip("addr", "add", "10.99.8.1/24", "dev", interfaces[1])
    ip("neigh", "add", "10.99.8.2", "lladdr", "00:01:00:00:00:07", "dev", interfaces[1])
    with (
        packet_socket(interfaces[1]) as host,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        host.setsockopt(socket.SOL_SOCKET, 33, 1 << 22)  # SO_RCVBUFFORCE
        sender.setsockopt(socket.SOL_UDP, 103, 500)  # UDP_SEGMENT
        data = b"".join(struct.pack(">H", i // 250) for i in range(60 * 250))
        for _ in range(4):
            sender.sendto(data, ("10.99.8.2", 9))
        payloads: list[bytes] = []
        while len(payloads) < 240:
            frame = host.recv(2048)
            if frame[12:14] + frame[23:24] != b"\x08\x00\x11":
                continue
            segment = frame[34:]
            assert struct.unpack(">H", segment[4:6]) == (508,)
            assert ones_sum(frame[26:34] + struct.pack(">HH", 17, 508) + segment) == 0xFFFF
            payloads.append(segment[8:])
    assert b"".join(payloads) == data * 4


def test_mtu_may_grow_while_the_switch_runs(switch: Switch, interfaces: tuple[str, str]) -> None:
    for name in interfaces:
        ip("link", "set", name, "mtu", "9000")
    data = bytes(12) + b"\x88\xb5" + bytes(8986)
    with packet_socket(interfaces[1]) as host:
        host.send(data)
        assert host.recv(16384) == data
    wait_for_statistic(switch, "rx_oversize", 0)


def test_frames_beyond_the_longest_are_counted(switch: Switch, interfaces: tuple[str, str]) -> None:
    for name in interfaces:
        ip("link", "set", name, "mtu", "20000")
    with packet_socket(interfaces[1]) as host:
        host.send(bytes(12) + b"\x88\xb5" + bytes(9232 - 14))
        assert len(host.recv(16384)) == 9232
        host.send(bytes(12) + b"\x88\xb5" + bytes(9233 - 14))
        host.send(bytes(12) + b"\x88\xb5" + bytes(18000))
        wait_for_statistic(switch, "rx_oversize", 2)
        host.send(bytes(12) + b"\x88\xb5" + bytes(60))
        assert len(host.recv(16384)) == 74
