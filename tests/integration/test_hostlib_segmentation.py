# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What reaches the other end of a cable: single, complete frames, or super-frames that it can cut.

A veth interface that computes checksums passes super-frames on uncut. Only a switch that reads the
kernel's virtio_net_hdr can cut them and finish their checksums. BMv2 is no such switch.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from ctypes import addressof, create_string_buffer
from typing import Any, cast

import numpy as np
import pyroute2
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from switchfold.hostlib.control.view import Endpoint
from switchfold.hostlib.errors import MtuTooSmallError
from switchfold.hostlib.slots.wire import UDP_PORT, datagram_bytes, frame_bytes
from switchfold.hostlib.transports import packet_socket
from switchfold.hostlib.transports.base import Transport
from switchfold.hostlib.transports.frames import ECN_CAPABLE
from switchfold.hostlib.transports.packet_socket import (
    PACKET_IGNORE_OUTGOING,
    PACKET_VNET_HDR,
    SOL_PACKET,
)
from switchfold.hostlib.transports.raw import RawTransport
from switchfold.hostlib.transports.segmentation import SIOCETHTOOL, cuts_super_frames
from switchfold.hostlib.transports.udp import UdpTransport
from time_bound import wait_until
from veth_pair import bring_up

IPRoute = cast(Any, pyroute2).IPRoute
NEAR, FAR = f"sfs{os.getpid()}a", f"sfs{os.getpid()}b"
NETWORK = f"10.214.{os.getpid() % 256}"  # another run beside this one has its own route
ADDRESS = f"{NETWORK}.1"
ETH_P_ALL = 3
ETHTOOL_STXCSUM, ETHTOOL_SGRO = 0x17, 0x2C
ETHTOOL_GSTRINGS, ETHTOOL_SFEATURES, ETH_SS_FEATURES = 0x1B, 0x3B, 4
ROWS = 20
SIZE = datagram_bytes(352)
REMOTE = Endpoint(address=f"{NETWORK}.254", mac="02:53:46:00:00:fe")
LAYERS_BYTES, OFFLOAD_BYTES = 42, 10
NEEDS_CSUM, GSO_UDP_L4 = 1, 5
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="packet sockets and veth need root"),
]


@pytest.fixture
def far_end() -> Iterator[socket.socket]:
    """A veth pair as the kernel makes it, offloads on; yields a packet socket on the far end."""
    with IPRoute() as route:
        route.link("add", ifname=NEAR, kind="veth", peer={"ifname": FAR})
        try:
            bring_up(NEAR, FAR)
            near = route.link_lookup(ifname=NEAR)[0]
            route.addr("add", index=near, address=ADDRESS, prefixlen=24)
            route.neigh("add", dst=f"{NETWORK}.254", lladdr="02:53:46:00:00:fe", ifindex=near)
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sock:
                sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
                sock.bind((FAR, ETH_P_ALL))
                sock.settimeout(60)
                yield sock
        finally:
            route.link("del", index=route.link_lookup(ifname=NEAR)[0])


def ethtool(interface: str, request: bytes) -> bytes:
    value = create_string_buffer(request, len(request))
    pointer = struct.pack("16sP16x", interface.encode(), addressof(value))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock.fileno(), SIOCETHTOOL, pointer)
    return value.raw


def set_feature(interface: str, command: int, *, is_on: bool) -> None:
    ethtool(interface, struct.pack("II", command, is_on))


def turn_on_by_name(interface: str, feature: str) -> None:
    """Turn on one of the newer features, which have names and no command of their own."""
    count = 64
    names = ethtool(
        interface,
        struct.pack("III", ETHTOOL_GSTRINGS, ETH_SS_FEATURES, count) + bytes(32 * count),
    )
    at = names.index(feature.encode() + b"\0") - 12
    index = at // 32
    blocks = [[0, 0], [0, 0]]
    blocks[index // 32] = [1 << index % 32] * 2
    ethtool(interface, struct.pack("II4I", ETHTOOL_SFEATURES, 2, *blocks[0], *blocks[1]))


def turn_checksums_off(interface: str) -> None:
    set_feature(interface, ETHTOOL_STXCSUM, is_on=False)


def frames_to_switch(far_end: socket.socket, head_bytes: int = 0) -> Iterator[bytes]:
    """The messages for the switch's port that arrive at the far end."""
    while True:
        message = far_end.recv(1 << 17)
        frame = message[head_bytes:]
        if frame[12:14] == b"\x08\x00" and frame[36:38] == UDP_PORT.to_bytes(2, "big"):
            yield message


def assert_complete(frame: bytes) -> None:
    """The frame holds one datagram, and its checksums are right, by scapy."""
    assert len(frame) == frame_bytes(352)
    packet = Ether(frame)
    stated = packet[IP].chksum, packet[UDP].chksum
    assert stated[1] != 0
    del packet[IP].chksum, packet[UDP].chksum
    packet = Ether(bytes(packet))
    assert (packet[IP].chksum, packet[UDP].chksum) == stated
    assert packet[IP].flags == "DF"
    assert packet[IP].tos == ECN_CAPABLE


def rows_of(count: int) -> np.ndarray:
    return np.random.default_rng(count).integers(0, 256, (count, SIZE)).astype(np.uint8)


@pytest.mark.parametrize(
    ("kind", "has_checksums"), [("udp", False), ("raw", False), ("raw", True), ("old raw", False)]
)
def test_batch_arrives_as_single_complete_frames(
    far_end: socket.socket, kind: str, *, has_checksums: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_checksums:
        turn_checksums_off(NEAR)
    if kind == "old raw":  # a kernel that does not know the option
        monkeypatch.setattr(packet_socket, "PACKET_VNET_HDR", 250)
    transport: Transport = UdpTransport(ADDRESS) if kind == "udp" else RawTransport(NEAR)
    with closing(transport):
        transport.open(REMOTE, SIZE)
        together = transport.offloads.sent_together
        assert together == (45 if kind != "old raw" and not has_checksums else 1)
        rows = rows_of(ROWS)
        assert transport.send(rows) == ROWS
        frames = frames_to_switch(far_end)
        for row, frame in zip(rows, frames, strict=False):
            assert_complete(frame)
            assert frame[LAYERS_BYTES:] == row.tobytes()


def test_udp_batch_arrives_as_what_the_far_end_can_cut(far_end: socket.socket) -> None:
    far_end.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    with closing(UdpTransport(ADDRESS)) as transport:
        transport.open(REMOTE, SIZE)
        rows = rows_of(ROWS)
        assert transport.send(rows) == ROWS
        message = next(frames_to_switch(far_end, OFFLOAD_BYTES))
        assert segment_bytes_of(message) == SIZE
        assert message[OFFLOAD_BYTES + LAYERS_BYTES :] == rows.tobytes()


def segment_bytes_of(message: bytes) -> int:
    flags, kind, _, segment_bytes, _, _ = struct.unpack("=BBHHHH", message[:OFFLOAD_BYTES])
    assert (flags, kind) == (NEEDS_CSUM, GSO_UDP_L4)
    return segment_bytes


def super_frame(transport: RawTransport, rows: np.ndarray) -> bytes:
    """What a switch that leaves everything to others sends to the worker."""
    local = transport.local
    packet = Ether(dst=local.mac, src=REMOTE.mac) / IP(src=REMOTE.address, dst=local.address)
    packet /= UDP(sport=REMOTE.udp_port, dport=local.udp_port) / Raw(rows.tobytes())
    head = struct.pack("=BBHHHH", NEEDS_CSUM, GSO_UDP_L4, LAYERS_BYTES, SIZE, 34, 6)
    return head + bytes(packet)


def receive_all(transport: RawTransport, count: int) -> bytes:
    """The next `count` datagrams."""
    received = np.empty((count, SIZE), np.uint8)
    done = 0

    def is_complete() -> bool:
        nonlocal done
        done += transport.receive(received[done:], 1.0)
        return done == count

    wait_until(is_complete, lambda: f"{count} datagrams; {done} came")
    return received.tobytes()


@pytest.mark.parametrize("has_gro", [False, True])
def test_raw_answers_super_frames_with_super_frames(
    far_end: socket.socket, *, has_gro: bool
) -> None:
    set_feature(NEAR, ETHTOOL_SGRO, is_on=has_gro)
    far_end.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    with closing(RawTransport(NEAR)) as transport:
        transport.open(REMOTE, SIZE)
        rows = rows_of(30)
        assert transport.send(rows[:1]) == 1
        whole = next(frames_to_switch(far_end, OFFLOAD_BYTES))
        assert whole[:OFFLOAD_BYTES] == bytes(OFFLOAD_BYTES)
        assert_complete(whole[OFFLOAD_BYTES:])

        far_end.send(super_frame(transport, rows))
        assert receive_all(transport, len(rows)) == rows.tobytes()
        assert transport.counters == Counter()

        assert transport.send(rows) == len(rows)
        message = next(frames_to_switch(far_end, OFFLOAD_BYTES))
        assert segment_bytes_of(message) == SIZE
        assert message[OFFLOAD_BYTES + LAYERS_BYTES :] == rows.tobytes()


@pytest.mark.parametrize("feature", ["rx-udp-gro-forwarding", "rx-gro-list"])
def test_super_frames_that_gro_may_have_made_teach_nothing(
    far_end: socket.socket, feature: str
) -> None:
    set_feature(NEAR, ETHTOOL_SGRO, is_on=True)
    turn_on_by_name(NEAR, feature)
    far_end.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    rows = rows_of(30)
    with closing(RawTransport(NEAR)) as transport:
        transport.open(REMOTE, SIZE)
        far_end.send(super_frame(transport, rows))
        assert receive_all(transport, len(rows)) == rows.tobytes()
        assert transport.send(rows) == len(rows)
        for row, message in zip(rows, frames_to_switch(far_end, OFFLOAD_BYTES), strict=False):
            assert message[:OFFLOAD_BYTES] == bytes(OFFLOAD_BYTES)
            assert_complete(message[OFFLOAD_BYTES:])
            assert message[OFFLOAD_BYTES + LAYERS_BYTES :] == row.tobytes()
        assert str(transport.offloads).startswith("offloads: 1 datagram per message sent")


def test_mtu_that_shrinks_below_super_frames_is_an_error(far_end: socket.socket) -> None:
    turn_checksums_off(NEAR)
    rows = rows_of(ROWS)
    with closing(RawTransport(NEAR)) as transport, IPRoute() as route:
        near = route.link_lookup(ifname=NEAR)[0]
        transport.open(REMOTE, SIZE)
        assert transport.send(rows) == ROWS
        route.link("set", index=near, mtu=1479)
        with pytest.raises(MtuTooSmallError, match=f"{NEAR} has an MTU of 1479"):
            transport.send(rows)
        route.link("set", index=near, mtu=1480)
        assert transport.send(rows) == ROWS
        for _, frame in zip(range(2 * ROWS), frames_to_switch(far_end), strict=False):
            assert_complete(frame)


def test_only_interfaces_that_segment_are_trusted(far_end: socket.socket) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        assert not cuts_super_frames(sock, NEAR)
        turn_checksums_off(NEAR)
        assert cuts_super_frames(sock, NEAR)
        assert not cuts_super_frames(sock, "lo")
