# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Forged ICMP errors cost retransmissions at most; a small MTU is a clear error."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyroute2
import pytest

from icmp_forger import KINDS, TOLD_KINDS, Address, forge
from switchfold.bmv2_topos import Testbed, state
from switchfold.bmv2_topos.topology.topology import single_switch
from switchfold.hostlib.control.view import Endpoint
from switchfold.hostlib.errors import MtuTooSmallError
from switchfold.hostlib.slots.wire import datagram_bytes
from switchfold.hostlib.transports.base import Transport
from switchfold.hostlib.transports.raw import RawTransport
from switchfold.hostlib.transports.tunnel import TunnelTransport
from switchfold.hostlib.transports.udp import UdpTransport
from time_bound import wait_until

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="raw sockets and network namespaces need root"),
]
NEAR, FAR = f"sfi{os.getpid()}a", f"sfi{os.getpid()}b"
NETWORK = f"10.218.{os.getpid() % 256}"  # another run beside this one has its own route
ADDRESS, SWITCH = f"{NETWORK}.1", f"{NETWORK}.254"
SIZE = datagram_bytes(352)
ROWS = 4


def open_udp(peer: Address) -> tuple[UdpTransport, Address]:
    transport = UdpTransport("127.0.0.1")
    transport.open(Endpoint(address=peer[0], udp_port=peer[1]), SIZE)
    return transport, ("127.0.0.1", transport.local.udp_port)


def open_tunnel(peer: Address) -> tuple[TunnelTransport, Address]:
    local = Endpoint(address="10.0.0.1", udp_port=4000, mac="02:00:00:00:00:01")
    transport = TunnelTransport(local, port_address=peer)
    transport.open(Endpoint(address="10.0.0.254", mac="02:00:00:00:01:00"), SIZE)
    return transport, transport.cable_address


@pytest.mark.parametrize("make", [open_udp, open_tunnel], ids=["udp", "tunnel"])
def test_every_forged_error_is_counted_and_nothing_is_lost(
    make: Callable[[Address], tuple[Transport, Address]],
) -> None:
    rows = np.zeros((ROWS, SIZE), np.uint8)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", 0))
        peer.settimeout(60)
        transport, local = make(peer.getsockname())
        with closing(transport):

            def errors() -> int:
                assert transport.receive(rows.copy(), 0.0) == 0
                return transport.counters["network_error"]

            for number, kind in enumerate(forge(local, peer.getsockname()), 1):
                assert transport.send(rows) == ROWS
                for _ in range(ROWS):
                    assert len(peer.recv(1 << 16)) >= SIZE
                told = sum(each in TOLD_KINDS for each in KINDS[:number])
                wait_until(lambda told=told: errors() == told, f"the error of {kind}")
            assert transport.counters["path_mtu_ignored"] == 1


def test_forged_errors_wake_a_receive_and_do_no_more() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", 0))
        transport, local = open_udp(peer.getsockname())
        with closing(transport):
            for _ in forge(local, peer.getsockname()):
                assert transport.receive(np.empty((1, SIZE), np.uint8), 0.001) == 0
            peer.sendto(bytes(SIZE), local)
            out = np.empty((1, SIZE), np.uint8)
            wait_until(lambda: transport.receive(out, 1.0) == 1, "the datagram")


@pytest.fixture
def set_mtu() -> Iterator[Callable[[int], None]]:
    """A veth pair whose near end has an address; yields a function that sets both ends' MTU."""
    with cast(Any, pyroute2).IPRoute() as route:
        route.link("add", ifname=NEAR, kind="veth", peer={"ifname": FAR})
        try:
            ends = [route.link_lookup(ifname=name)[0] for name in (NEAR, FAR)]
            for end in ends:
                route.link("set", index=end, state="up")
            route.addr("add", index=ends[0], address=ADDRESS, prefixlen=24)
            route.neigh("add", dst=SWITCH, lladdr="02:53:46:00:00:fe", ifindex=ends[0])

            def set_both(mtu: int) -> None:
                for end in ends:
                    route.link("set", index=end, mtu=mtu)

            yield set_both
        finally:
            route.link("del", index=route.link_lookup(ifname=NEAR)[0])


@pytest.mark.parametrize("kind", ["udp", "raw"])
def test_small_mtu_is_an_error_with_advice(set_mtu: Callable[[int], None], kind: str) -> None:
    remote = Endpoint(address=SWITCH, mac="02:53:46:00:00:fe")
    rows = np.zeros((ROWS, SIZE), np.uint8)
    text = rf"{NEAR} has an MTU of 552 bytes .* have 1480; run 'ip link set dev {NEAR} mtu 1500'"
    with closing(UdpTransport(ADDRESS) if kind == "udp" else RawTransport(NEAR)) as transport:
        set_mtu(552)
        with pytest.raises(MtuTooSmallError, match=text):
            transport.open(remote, SIZE)
        set_mtu(1500)
        transport.open(remote, SIZE)
        assert transport.send(rows) == ROWS
        set_mtu(552)
        with pytest.raises(MtuTooSmallError, match=text):
            transport.send(rows)
        with pytest.raises(MtuTooSmallError, match=text):
            transport.raise_failure(0)  # what a reducer calls after the library has sent
        set_mtu(1500)
        assert transport.send(rows) == ROWS


WORKER = f"""
import os, socket, sys, time
from pathlib import Path
import numpy as np
sys.path.insert(0, {str(Path(__file__).parents[1] / "support")!r})
from switchfold.hostlib import SessionOptions
from switchfold.hostlib.config import join_from_environment
from icmp_forger import CLAIMED_MTU, KINDS, forge

IP_MTU, POLL_S = 14, 0.01
VICTIMS = [("10.0.0.1", 4000), ("10.0.0.2", 4000)]
folder, transport = Path(sys.argv[1]), sys.argv[2]
ends = [folder / "end0", folder / "end1"]
worker = int(os.environ["SWITCHFOLD_WORKER_ID"])

def attack():
    while not (folder / "switch").exists():
        if any(end.exists() for end in ends):
            return
        time.sleep(POLL_S)
    switch = tuple((folder / "switch").read_text().split())
    while not all(end.exists() for end in ends):
        for victim in VICTIMS:
            list(forge(victim, (switch[0], int(switch[1]))))
        time.sleep(POLL_S)

def known_mtu(address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(address)
        return sock.getsockopt(socket.IPPROTO_IP, IP_MTU)

def sum_on():
    os.environ.update(SWITCHFOLD_NUM_WORKERS="2", SWITCHFOLD_UDP_PORT="4000")
    os.environ.update(SWITCHFOLD_TRANSPORT=transport)
    array = np.arange(20_000, dtype=np.int32)
    with join_from_environment(SessionOptions(timeout_s=120.0)) as session:
        switch = session.view.switch
        temporary = folder / f"switch{{worker}}"
        temporary.write_text(f"{{switch.address}} {{switch.udp_port}}")
        temporary.rename(folder / "switch")
        is_over, number = False, 0
        while not is_over:
            # Both go on until both have met what they wait for, so that none leaves the other.
            has_met = known_mtu((switch.address, switch.udp_port)) == CLAIMED_MTU
            if transport == "udp":
                has_met = has_met and session.statistics.get("refused_path_mtu_ignored", 0) >= 20
            else:
                has_met = number >= 20
            total = session.allreduce(array + int(has_met)).result(120)
            is_over = int(total[0]) == 2
            np.testing.assert_array_equal(total - total[0], 2 * array)
            number += 1
        session.barrier("end")

try:
    attack() if worker == 2 else sum_on()
finally:
    if worker < 2:
        ends[worker].touch()
"""


@pytest.mark.parametrize("transport", ["udp", "raw"])
def test_job_sums_on_while_a_stranger_forges(
    transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    with Testbed(single_switch(3, rate_bits_per_s=None), name=f"icmp-{os.getpid()}") as testbed:
        command = [sys.executable, "-c", WORKER, str(tmp_path), transport]
        for result in testbed.run_workers(command, timeout_s=250):
            assert result.exit_status == 0, f"worker {result.worker_id}:\n{result.output}"
