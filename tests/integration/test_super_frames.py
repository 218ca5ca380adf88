# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What leaves in super-frames is, once cut, what leaves frame by frame."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from threading import Thread

import numpy as np
import pytest

from first_byte import HandWrittenProgram, compile_first_byte
from flow_frames import ACK, PSH, TAG, burst, ones_sum, payload
from super_frame_batches import CASES, OTHER, SIX, TCP, UDP, damaged, encoded, mixture
from switchfold.bmv2_topos.network.links import turn_offloads_off
from switchfold.bmv2_topos.network.namespaces import (
    call_in_namespace,
    call_with_route,
    create_namespace,
    remove_namespace,
)
from switchfold.softswitch.switch.switch import Switch
from test_veth_ports import interfaces
from veth_pair import bring_up, ip, packet_socket

__all__ = ["interfaces"]  # a fixture

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="veth ports need root"),
]

SOL_PACKET, PACKET_AUXDATA, PACKET_VNET_HDR = 263, 8, 15


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> HandWrittenProgram:
    return compile_first_byte(tmp_path_factory.mktemp("first_byte"))


def send_batch(switch: Switch, frames: Sequence[bytes]) -> None:
    """Put up to 64 frames into mem port 1 of a switch that does not run: they are one batch."""
    rows = np.zeros((len(frames), 9232), np.uint8)
    for row, frame in zip(rows, frames, strict=True):
        row[: len(frame)] = np.frombuffer(frame, np.uint8)
    lengths = np.array([len(frame) for frame in frames], np.int32)
    assert switch.ports.mem_port(1).send(rows, lengths) == len(frames)


def receive_mem(switch: Switch, number: int, count: int) -> list[bytes]:
    rows, lengths = np.zeros((64, 9232), np.uint8), np.zeros(64, np.int32)
    frames: list[bytes] = []
    while len(frames) < count:
        received = switch.ports.mem_port(number).receive(rows, lengths, 60.0)
        assert received > 0, f"{len(frames)} of {count} frames"
        frames += [rows[index, : lengths[index]].tobytes() for index in range(received)]
    return frames


def receive_raw(host: socket.socket) -> bytes:
    """Return a frame with the VLAN tag that the kernel has put aside."""
    data, ancillary, _, _ = host.recvmsg(65600, 256)
    for _, kind, aux in ancillary:
        status, _, _, _, _, tci, tpid = struct.unpack("=IIIHHHH", aux)
        if kind == PACKET_AUXDATA and status & 0x10:
            return data[:12] + struct.pack(">HH", tpid, tci) + data[12:]
    return data


def host_of(interface: str) -> socket.socket:
    host = packet_socket(interface)
    host.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    host.setsockopt(socket.SOL_SOCKET, 33, 1 << 23)  # SO_RCVBUFFORCE
    return host


def as_forwarded(frame: bytes) -> bytes:
    """Return the frame as the program first_byte sends it: it writes two bytes."""
    return frame[:2] + bytes(2) + frame[4:]


def unnumbered(frame: bytes) -> bytes:
    """Return the frame with identification 0 if it must not be fragmented (RFC 6864)."""
    at = 18 if frame[12:14] == TAG[:2] else 14
    if frame[at - 2 : at] != b"\x08\x00" or frame[at + 6 : at + 8] != b"\x40\x00":
        return frame
    head = frame[at : at + 4] + bytes(2) + frame[at + 6 : at + 10]
    addresses = frame[at + 12 : at + 20]
    if ones_sum(frame[at : at + 20]) != 0xFFFF:
        return frame  # never joined
    checksum = struct.pack(">H", 0xFFFF ^ ones_sum(head + addresses))
    return frame[:at] + head + checksum + addresses + frame[at + 20 :]


def has_no_number(frame: bytes) -> bool:
    at = 18 if frame[12:14] == TAG[:2] else 14
    return frame[at + 4 : at + 8] == b"\0\0\x40\0"


def assert_same(found: Sequence[bytes], sent: Sequence[bytes]) -> None:
    """Byte for byte, but for the numbers of packets that came without one."""
    wanted = [as_forwarded(frame) for frame in sent]
    found = [
        unnumbered(frame) if has_no_number(want) else frame
        for frame, want in zip(found, wanted, strict=True)
    ]
    assert found == wanted


def cut_by_kernel(
    program: HandWrittenProgram,
    between: tuple[str, str],
    frames: Sequence[bytes],
    *,
    super_frames: bool = True,
) -> tuple[list[bytes], int]:
    """Return the frames at the far end of a link that passes none larger, and the super-frames."""
    turn_offloads_off(between[0])
    with (
        Switch(program, super_frames=super_frames) as switch,
        host_of(between[1]) as host,
    ):
        switch.ports.add(1, "mem")
        switch.ports.add(2, f"veth:{between[0]}")
        send_batch(switch, frames)
        switch.start()
        found = [receive_raw(host) for _ in frames]
        counts = switch.ports.statistics(2)
        assert counts["tx_packets"] == len(frames)
        assert counts["tx_bytes"] == sum(map(len, frames))
        return found, counts["tx_super_frames"]


@pytest.mark.parametrize("name", CASES)
def test_kernel_cuts_what_one_by_one_would_be(
    program: HandWrittenProgram, interfaces: tuple[str, str], name: str
) -> None:
    frames, super_frames = CASES[name]
    found, joined = cut_by_kernel(program, interfaces, frames)
    assert_same(found, frames)
    assert joined == super_frames


def test_without_super_frames_each_leaves_alone(
    program: HandWrittenProgram, interfaces: tuple[str, str]
) -> None:
    frames, _ = CASES["TCP"]
    found, joined = cut_by_kernel(program, interfaces, frames, super_frames=False)
    assert (found, joined) == ([as_forwarded(frame) for frame in frames], 0)


@pytest.mark.parametrize("is_damaged", [False, True], ids=["sound", "damaged"])
@pytest.mark.parametrize("seed", range(6))
def test_mixtures_leave_the_same_with_and_without(
    program: HandWrittenProgram, interfaces: tuple[str, str], seed: int, *, is_damaged: bool
) -> None:
    frames = damaged(mixture(seed), seed) if is_damaged else mixture(seed)
    together, joined = cut_by_kernel(program, interfaces, frames)
    alone, none = cut_by_kernel(program, interfaces, frames, super_frames=False)
    assert alone == [as_forwarded(frame) for frame in frames]
    assert_same(together, frames)
    assert joined > 3
    assert none == 0


@pytest.fixture
def two_switches(
    program: HandWrittenProgram, interfaces: tuple[str, str]
) -> Iterator[tuple[Switch, Switch]]:
    """Mem port 1 of the first to mem port 2 of the second, over a link that cuts nothing."""
    with ExitStack() as stack:
        first, second = (stack.enter_context(Switch(program)) for _ in range(2))
        first.ports.add(1, "mem")
        first.ports.add(2, f"veth:{interfaces[0]}")
        second.ports.add(1, f"veth:{interfaces[1]}")
        second.ports.add(2, "mem")
        yield first, second


@pytest.mark.parametrize("name", CASES)
def test_another_switch_cuts_what_one_by_one_would_be(
    two_switches: tuple[Switch, Switch], name: str
) -> None:
    frames, super_frames = CASES[name]
    first, second = two_switches
    send_batch(first, frames)
    for switch in two_switches:
        switch.start()
    assert_same(receive_mem(second, 2, len(frames)), frames)
    counts = second.ports.statistics(1)
    assert counts["rx_packets"] == len(frames)
    assert counts["rx_bytes"] == sum(map(len, frames))
    assert counts["rx_super_frames"] == super_frames


@pytest.mark.parametrize("protocol", [6, 17])
def test_forwarded_super_frame_leaves_as_it_came(
    program: HandWrittenProgram, interfaces: tuple[str, str], protocol: int
) -> None:
    kind = {6: 1, 17: 5}[protocol]  # VIRTIO_NET_HDR_GSO_TCPV4, _UDP_L4
    data = bytes(i * 7 % 251 for i in range(41_111))
    whole = replace(
        TCP if protocol == 6 else UDP, mac=bytes(6), payload=data, flags=ACK | PSH
    ).encode()
    at = 34 + (16 if protocol == 6 else 6)
    pseudo = ones_sum(whole[26:34] + struct.pack(">HH", protocol, len(whole) - 34))
    whole = whole[:at] + struct.pack(">H", pseudo) + whole[at + 2 :]
    header_bytes = len(whole) - len(data)
    offload = struct.pack("=BBHHHH", 1, kind, header_bytes, 1400, 34, at - 34)
    with (
        Switch(program) as switch,
        packet_socket(interfaces[1]) as host,
    ):
        switch.ports.add(1, f"veth:{interfaces[0]}")
        switch.start()
        host.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        host.send(offload + whole)
        assert host.recv(1 << 17) == offload + whole
        counts = switch.ports.statistics(1)
    assert (counts["rx_packets"], counts["tx_packets"]) == (30, 30)
    assert (counts["rx_super_frames"], counts["tx_super_frames"]) == (1, 1)


def test_each_port_of_a_group_gets_a_super_frame(
    program: HandWrittenProgram, interfaces: tuple[str, str]
) -> None:
    to_group = bytes([1, 9, 0, 0, 0, 7])
    frames = encoded(*burst(replace(UDP, mac=to_group), SIX))
    second = (f"vt{os.getpid()}", f"vu{os.getpid()}")
    ip("link", "add", second[0], "type", "veth", "peer", "name", second[1])
    try:
        bring_up(*second)
        with Switch(program) as switch, ExitStack() as stack:
            switch.ports.add(1, "mem")
            hosts: list[socket.socket] = []
            for number, pair in enumerate((interfaces, second), 2):
                turn_offloads_off(pair[0])
                hosts.append(stack.enter_context(host_of(pair[1])))
                switch.ports.add(number, f"veth:{pair[0]}")
            switch.replication.set_multicast_group(9, [(2, 0), (3, 0)])
            send_batch(switch, frames)
            switch.start()
            for number, host in enumerate(hosts, 2):
                found = [receive_raw(host) for _ in frames]
                # The program writes the replica id and that this is a replica.
                wanted = [frame[:2] + b"\0\5" + frame[4:] for frame in frames]
                assert [unnumbered(frame) for frame in found] == wanted
                assert switch.ports.statistics(number)["tx_super_frames"] == 1
    finally:
        ip("link", "del", second[0])


def test_tcp_stream_crosses_the_switch_in_super_frames(program: HandWrittenProgram) -> None:
    """Kernels at both ends: the program sends by the destination's MAC, which begins 04 PORT."""
    names = [f"sft{os.getpid()}{end}" for end in "ab"]
    data = payload(1, 8_000_000)
    with ExitStack() as stack, Switch(program) as switch:
        for number, name in enumerate(names, 1):
            create_namespace(name)
            stack.callback(remove_namespace, name)
            at_switch = f"vw{os.getpid()}{number}"
            ip("link", "add", at_switch, "type", "veth", "peer", "name", "eth0", "netns", name)
            other = 3 - number
            for words in (
                ("link", "set", "eth0", "address", f"04:0{number}:00:00:00:07", "up"),
                ("addr", "add", f"10.98.0.{number}/24", "dev", "eth0"),
                (
                    *("neigh", "add", f"10.98.0.{other}", "dev", "eth0"),
                    *("lladdr", f"04:0{other}:00:00:00:07"),
                ),
            ):
                ip("-n", name, *words)
            bring_up(at_switch)
            switch.ports.add(number, f"veth:{at_switch}")
        switch.start()
        server = call_in_namespace(names[1], lambda: socket.create_server(("10.98.0.2", 7)))
        sender = call_in_namespace(
            names[0], lambda: socket.create_connection(("10.98.0.2", 7), timeout=60)
        )
        with server, sender:
            receiver, _ = server.accept()
            with receiver:
                receiver.settimeout(60)
                sending = Thread(target=sender.sendall, args=(data,))
                sending.start()
                received = bytearray()
                while len(received) < len(data):
                    part = receiver.recv(1 << 20)
                    assert part
                    received += part
                sending.join()
        assert received == data
        counts = [switch.ports.statistics(number) for number in (1, 2)]
    assert counts[0]["rx_super_frames"] > 0
    assert counts[1]["tx_super_frames"] > 0
    assert counts[1]["tx_packets"] >= len(data) // 1460


def test_packets_beyond_the_mtu_are_counted_and_not_joined(
    program: HandWrittenProgram, interfaces: tuple[str, str]
) -> None:
    frames = encoded(*burst(UDP, (1400,) * 6))
    with Switch(program) as switch:
        switch.ports.add(1, "mem")
        switch.ports.add(2, f"veth:{interfaces[0]}")
        ip("link", "set", interfaces[0], "mtu", "1000")
        send_batch(switch, [*frames, OTHER])
        with packet_socket(interfaces[1]) as host:
            switch.start()
            assert host.recv(2048) == as_forwarded(OTHER)
        counts = switch.ports.statistics(2)
    assert (counts["tx_packets"], counts["tx_oversize"]) == (1, 6)


@pytest.mark.parametrize(
    ("burst_bytes", "limit_bytes", "super_frames"),
    [
        pytest.param(15_140, 1_000_000, 1, id="cuts what is larger than its burst"),
        pytest.param(100_000, 10_000, 0, id="has no room for a super-frame"),
    ],
)
def test_shaper_loses_nothing(
    program: HandWrittenProgram,
    interfaces: tuple[str, str],
    burst_bytes: int,
    limit_bytes: int,
    super_frames: int,
) -> None:
    frames = encoded(*burst(UDP, (1400,) * 40))
    shaper = ["tbf", "rate", "100mbit", "burst", str(burst_bytes), "limit", str(limit_bytes)]
    command = ["tc", "qdisc", "add", "dev", interfaces[0], "root", *shaper]
    subprocess.run(command, check=True)
    found, joined = cut_by_kernel(program, interfaces, frames)
    assert_same(found, frames)
    assert joined == super_frames


def udp_switches(stack: ExitStack, program: HandWrittenProgram) -> tuple[Switch, Switch]:
    """Return two switches: mem port 1 of the first to mem port 2 of the second, by udp ports."""
    first, second = (stack.enter_context(Switch(program)) for _ in range(2))
    second.ports.add(1, "udp:127.0.0.1:0")
    second.ports.add(2, "mem")
    _, number = second.ports.udp_address(1)
    first.ports.add(1, "mem")
    first.ports.add(2, f"udp:127.0.0.1:0-127.0.0.1:{number}")
    return first, second


def payloads_to_port_2(sizes: Sequence[int]) -> list[bytes]:
    return [bytes([4, 2, 0, 0]) + payload(index, size) for index, size in enumerate(sizes)]


@pytest.mark.parametrize("sizes", [SIX, (1400,) * 60, (700, 800, 800, 10, 9000, 9000, 9228, 0)])
def test_udp_ports_carry_the_same_frames(program: HandWrittenProgram, sizes: Sequence[int]) -> None:
    frames = payloads_to_port_2(sizes)
    with ExitStack() as stack:
        first, second = udp_switches(stack, program)
        send_batch(first, frames)
        for switch in (first, second):
            switch.start()
        assert receive_mem(second, 2, len(frames)) == frames
        sent, received = first.ports.statistics(2), second.ports.statistics(1)
    assert sent["tx_super_frames"] > 0
    assert received["rx_super_frames"] == sent["tx_super_frames"]
    assert (sent["tx_packets"], received["rx_packets"]) == (len(frames), len(frames))
    assert received["rx_bytes"] == sum(map(len, frames))


def test_udp_port_sends_alone_what_the_interface_cannot_cut(program: HandWrittenProgram) -> None:
    name = f"sfu{os.getpid()}"
    create_namespace(name)
    try:
        call_with_route(name, lambda route: route.link("set", index=1, mtu=1500, state="up"))
        frames = payloads_to_port_2((1480,) * 20 + (900,) * 20)  # 1484 + 28 > 1500
        with ExitStack() as stack:
            first, second = call_in_namespace(name, lambda: udp_switches(stack, program))
            send_batch(first, frames)
            for switch in (first, second):
                switch.start()
            assert receive_mem(second, 2, len(frames)) == frames
            counts = first.ports.statistics(2)
        assert (counts["tx_packets"], counts["tx_super_frames"]) == (40, 1)
        assert counts["tx_oversize"] == counts["port_errors"] == 0
    finally:
        remove_namespace(name)


def test_ports_say_which_super_frames_they_use(
    program: HandWrittenProgram, interfaces: tuple[str, str]
) -> None:
    for super_frames, veth, udp in (
        (True, "received, sent UDP, sent TCP", "received, sent UDP"),
        (False, "received", "none"),
    ):
        with Switch(program, super_frames=super_frames) as switch:
            switch.ports.add(1, f"veth:{interfaces[0]}")
            switch.ports.add(2, "udp:127.0.0.1:0")
            switch.ports.add(3, "mem")
            said = [switch.ports.super_frames(number).describe() for number in (1, 2, 3)]
        assert said == [veth, udp, "none"]
