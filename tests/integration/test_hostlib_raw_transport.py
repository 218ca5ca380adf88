# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pyroute2 import IPRoute
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from hostlib_reflector import reflect_frames, running
from switchfold.hostlib import errors
from switchfold.hostlib.control.view import Endpoint, JobView
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.session import Session
from switchfold.hostlib.slots.wire import UDP_PORT, datagram_bytes, frame_bytes
from switchfold.hostlib.transports.frames import parse_mac
from switchfold.hostlib.transports.packet_filter import ETH_P_IP
from switchfold.hostlib.transports.packet_socket import PACKET_IGNORE_OUTGOING, SOL_PACKET
from switchfold.hostlib.transports.raw import RawTransport
from time_bound import wait_until
from veth_pair import bring_up

NEAR, FAR = f"sfr{os.getpid()}a", f"sfr{os.getpid()}b"
NETWORK = f"10.217.{os.getpid() % 256}"  # another run beside this one has its own route
SIZE = datagram_bytes(352)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="packet sockets and veth need root")


@pytest.fixture
def cable() -> Iterator[str]:
    """A veth pair; yields the far end's MAC address."""
    netlink: Any = IPRoute()  # pyroute2's types do not tell what the calls return
    with netlink as route:
        route.link("add", ifname=NEAR, kind="veth", peer={"ifname": FAR})
        try:
            bring_up(NEAR, FAR)
            near = route.link_lookup(ifname=NEAR)[0]
            route.addr("add", index=near, address=f"{NETWORK}.1", prefixlen=24)
            yield route.get_links(ifname=FAR)[0].get_attr("IFLA_ADDRESS")
        finally:
            route.link("del", index=route.link_lookup(ifname=NEAR)[0])


def far_socket() -> socket.socket:
    far = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0)
    far.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    far.bind((FAR, ETH_P_IP))
    return far


@needs_root
@pytest.mark.root
@pytest.mark.parametrize("values", [32, 352])
def test_raw_allreduce_over_veth(cable: str, values: int) -> None:
    transport = RawTransport(NEAR)
    assert transport.local.address == f"{NETWORK}.1"
    assert len(parse_mac(transport.local.mac)) == 6
    view = JobView.on_one_switch(
        job=1,
        generation=2,
        worker_id=0,
        num_workers=1,
        slot_count=64,
        values_per_packet=values,
        switch=Endpoint(address=f"{NETWORK}.254", mac=cable),
    )
    array = np.arange(200_000, dtype=np.int32)
    with running(far_socket(), frame_bytes(values), reflect_frames):
        options = SessionOptions(timeout_s=120.0, min_rto_s=0.05)
        with Session.direct(view, transport, options) as session:
            np.testing.assert_array_equal(session.allreduce(array).result(60), array)
            assert session.statistics["value_packets_received"] == -(-200_000 // values)
            # The job moves to a switch with another address.
            moved = Endpoint(address=f"{NETWORK}.253", mac=cable)
            new = replace(view, generation=3, switch=moved)
            session._engine.commit(new, 1, 0)  # pyright: ignore[reportPrivateUsage]
            np.testing.assert_array_equal(session.allreduce(array).result(60), array)
            assert session.view.generation == 3


@needs_root
@pytest.mark.root
def test_raw_reserves_its_port(cable: str) -> None:
    transport = RawTransport(NEAR, 4321)
    with pytest.raises(errors.PortTakenError):
        RawTransport(NEAR, 4321)
    transport.close()
    RawTransport(NEAR, 4321).close()


@needs_root
@pytest.mark.root
def test_raw_counts_datagrams_of_strangers(cable: str) -> None:
    transport = RawTransport(NEAR)
    local = transport.local.address, transport.local.udp_port
    with (
        closing(transport),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger,
    ):
        for switch in (f"{NETWORK}.254", f"{NETWORK}.253"):  # the second is a view change
            transport.open(Endpoint(address=switch, mac=cable), 1452)
        for _ in range(5):
            stranger.sendto(bytes(1452), local)
        wait_until(lambda: transport.counters["stranger"] == 5, "five counted datagrams")
        with pytest.raises(errors.PortTakenError):
            RawTransport(NEAR, local[1])
    assert transport.counters["stranger"] == 5


def frame_to(transport: RawTransport, far_mac: str, **changes: Any) -> bytes:
    """A frame with one datagram from the switch, but for the changes."""
    local = transport.local
    fields = {"src": f"{NETWORK}.254", "sport": UDP_PORT, "dport": local.udp_port, "bytes": SIZE}
    fields |= changes
    packet = Ether(src=far_mac, dst=local.mac) / IP(src=fields["src"], dst=local.address)
    packet /= UDP(sport=fields["sport"], dport=fields["dport"]) / Raw(bytes(fields["bytes"]))
    return bytes(packet)


@needs_root
@pytest.mark.root
def test_raw_filters_other_ports_and_counts_the_rest_by_cause(cable: str) -> None:
    with closing(RawTransport(NEAR)) as transport, far_socket() as far:
        early = frame_to(transport, cable)
        far.send(early)  # nothing comes in before `open`
        transport.open(Endpoint(address=f"{NETWORK}.254", mac=cable), SIZE)
        good = frame_to(transport, cable)
        damaged = bytearray(good)
        damaged[-1] ^= 1
        arp = bytearray(good)
        arp[12:14] = 8, 6
        fragment = bytearray(good)
        fragment[20:22] = 0, 1
        for frame in (
            frame_to(transport, cable, sport=9),
            frame_to(transport, cable, dport=9),
            bytes(arp),
            bytes(fragment),
            frame_to(transport, cable, src=f"{NETWORK}.253"),
            frame_to(transport, cable, bytes=SIZE + 1),
            good[:-1],
            good + b"\0",
            bytes(damaged),
            good,
        ):
            far.send(frame)
        out = np.empty((16, SIZE), np.uint8)
        wait_until(lambda: transport.receive(out, 1.0) == 1, "the good frame")
        assert out[0].tobytes() == bytes(SIZE)
        # A frame whose headers state another length is other traffic. Strangers sent what came
        # before `open`, from another port, and from another address.
        counts = Counter(other_traffic=2, length=2, checksum=1, stranger=3)
        assert transport.counters == counts
    with pytest.raises(errors.TransportClosedError):
        transport.receive(out, 0.0)


@needs_root
@pytest.mark.root
def test_raw_counts_frames_without_room(cable: str) -> None:
    with closing(RawTransport(NEAR)) as transport, far_socket() as far:
        transport.open(Endpoint(address=f"{NETWORK}.254", mac=cable), SIZE)
        far.setblocking(True)
        good = frame_to(transport, cable)
        sent = 0
        while not transport.counters["overflow"]:
            far.send(good)
            sent += 1
        out = np.empty((256, SIZE), np.uint8)
        received = 0

        def are_all_accounted_for() -> bool:
            nonlocal received
            received += transport.receive(out, 0.0)
            return received + transport.counters["overflow"] == sent

        wait_until(are_all_accounted_for, "every frame is received or counted")
    assert transport.counters["overflow"] == sent - received


@needs_root
@pytest.mark.root
def test_raw_receive_returns_when_woken_or_over(cable: str) -> None:
    out = np.empty((1, SIZE), np.uint8)
    with closing(RawTransport(NEAR)) as transport:
        with pytest.raises(errors.TransportClosedError, match="is not open"):
            transport.receive(out, 0.0)
        transport.open(Endpoint(address=f"{NETWORK}.254", mac=cable), SIZE)
        transport.wake()
        assert transport.receive(out, 60.0) == 0
        assert transport.receive(out, 0.01) == 0


@needs_root
@pytest.mark.root
def test_raw_interface_missing() -> None:
    with pytest.raises(errors.InterfaceMissingError, match="ip link"):
        RawTransport("nosuch0")


@needs_root
@pytest.mark.root
def test_raw_without_privileges() -> None:
    # Privileges go after the imports: the interpreter may lie in root's home.
    code = (
        "import os\n"
        "from switchfold.hostlib.transports.raw import RawTransport\n"
        "from switchfold.hostlib.errors import TransportPermissionError\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "try:\n    RawTransport('lo')\n"
        "except TransportPermissionError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "CAP_NET_RAW" in done.stdout, done.stderr
