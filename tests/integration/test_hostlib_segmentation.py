# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Batches of the udp transport must reach the other end of a cable as frames of their own."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from ctypes import addressof, create_string_buffer
from typing import Any, cast

import numpy as np
import pyroute2
import pytest

from switchfold.hostlib.control.view import Endpoint
from switchfold.hostlib.slots.wire import UDP_PORT, datagram_bytes, frame_bytes
from switchfold.hostlib.transports.packet_ring import PACKET_IGNORE_OUTGOING, SOL_PACKET
from switchfold.hostlib.transports.segmentation import SIOCETHTOOL, sends_own_frames
from switchfold.hostlib.transports.udp import UdpTransport

IPRoute = cast(Any, pyroute2).IPRoute
NEAR, FAR = f"sfs{os.getpid()}a", f"sfs{os.getpid()}b"
ADDRESS = "10.213.9.1"
ETH_P_ALL = 3
ETHTOOL_STXCSUM = 0x17
ROWS = 20


@pytest.fixture
def far_end() -> Iterator[socket.socket]:
    """A veth pair as the kernel makes it, offloads on; yields a packet socket on the far end."""
    with IPRoute() as route:
        route.link("add", ifname=NEAR, kind="veth", peer={"ifname": FAR})
        try:
            for name in (NEAR, FAR):
                route.link("set", index=route.link_lookup(ifname=name)[0], state="up")
            near = route.link_lookup(ifname=NEAR)[0]
            route.addr("add", index=near, address=ADDRESS, prefixlen=24)
            route.neigh("add", dst="10.213.9.254", lladdr="02:53:46:00:00:fe", ifindex=near)
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sock:
                sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
                sock.bind((FAR, ETH_P_ALL))
                sock.settimeout(60)
                yield sock
        finally:
            route.link("del", index=route.link_lookup(ifname=NEAR)[0])


def turn_checksums_off(interface: str) -> None:
    value = create_string_buffer(struct.pack("II", ETHTOOL_STXCSUM, 0), 8)
    request = struct.pack("16sP16x", interface.encode(), addressof(value))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock.fileno(), SIOCETHTOOL, request)


@pytest.mark.skipif(os.geteuid() != 0, reason="packet sockets and veth need root")
@pytest.mark.root
@pytest.mark.parametrize("has_checksums", [True, False])
def test_batch_arrives_as_single_frames(far_end: socket.socket, *, has_checksums: bool) -> None:
    if not has_checksums:
        turn_checksums_off(NEAR)
    transport = UdpTransport(ADDRESS)
    try:
        transport.open(Endpoint(address="10.213.9.254"), datagram_bytes(352))
        assert transport.send(np.zeros((ROWS, datagram_bytes(352)), np.uint8)) == ROWS
        lengths: list[int] = []
        while len(lengths) < ROWS:
            frame = far_end.recv(1 << 16)
            if frame[12:14] == b"\x08\x00" and frame[36:38] == UDP_PORT.to_bytes(2, "big"):
                lengths.append(len(frame))
        assert set(lengths) == {frame_bytes(352)}
    finally:
        transport.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="packet sockets and veth need root")
@pytest.mark.root
def test_only_interfaces_that_segment_are_trusted(far_end: socket.socket) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((ADDRESS, 0))
        assert not sends_own_frames(sock)
        turn_checksums_off(NEAR)
        assert sends_own_frames(sock)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.2", 0))  # loopback's, but not the address that it lists
        assert not sends_own_frames(sock)
