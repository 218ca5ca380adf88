# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Testbeds of many switches: links between switches, rates, counters, restarts, cuts."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from fabric_routes import count_routes, install_routes
from switchfold.bmv2_topos import Host, Testbed, leaf_spine, state
from switchfold.bmv2_topos.errors import TestbedBusyError
from switchfold.bmv2_topos.network.namespaces import call_in_namespace, namespace_inode
from switchfold.bmv2_topos.processes.daemons import Mode, Target
from switchfold.bmv2_topos.processes.processes import read_records
from time_bound import wait_until

needs_root = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
needs_bmv2 = [
    pytest.mark.bmv2,
    pytest.mark.skipif(
        shutil.which("simple_switch_grpc") is None, reason="simple_switch_grpc is not on the PATH"
    ),
]
KINDS = [
    pytest.param("softswitch", "udp", id="softswitch-udp"),
    pytest.param("softswitch", "veth", id="softswitch-veth", marks=needs_root),
    pytest.param("bmv2", "veth", id="bmv2-veth", marks=[*needs_root, *needs_bmv2]),
]
PORT = 7000
FRAME_OVERHEAD_BYTES = 14 + 20 + 8


@pytest.fixture(autouse=True)
def records(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep these tests' records apart; the path stays short enough for sockets."""
    root = tmp_path_factory.mktemp("r")
    monkeypatch.setattr(state, "records_directory", lambda: root)
    return root


@pytest.fixture(autouse=True)
def _patient_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("finsy.p4client._DEFAULT_RPC_TIMEOUT", 120.0)


class Station:
    """A host's own UDP socket in mode veth; in mode udp its link, which carries frames."""

    def __init__(self, testbed: Testbed, host: Host) -> None:
        self.testbed = testbed
        self.host = host
        self.endpoint = testbed.endpoint(host.worker_id)
        namespace = testbed.namespace_of(host)
        address = (host.address, PORT) if namespace else ("127.0.0.1", self.endpoint.host_udp_port)

        def bound() -> socket.socket:
            opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            opened.bind(address)
            return opened

        self.socket = call_in_namespace(namespace, bound) if namespace else bound()

    def send(self, other: Host, text: bytes) -> None:
        if self.testbed.mode == "veth":
            self.socket.sendto(text, (other.address, PORT))
            return
        frame = Ether(dst=self.endpoint.switch.mac, src=self.host.mac)
        frame /= IP(dst=other.address, src=self.host.address) / UDP(sport=PORT, dport=PORT) / text
        self.socket.sendto(bytes(frame), ("127.0.0.1", self.endpoint.switch_udp_port))

    def receive(self, timeout_s: float = 60.0) -> tuple[str, bytes]:
        """Return who sent and what; TimeoutError."""
        self.socket.settimeout(timeout_s)
        data, sender = self.socket.recvfrom(2000)
        if self.testbed.mode == "veth":
            return sender[0], data
        frame: Any = Ether(data)
        assert frame.dst == self.host.mac
        return frame[IP].src, bytes(frame[UDP].payload)

    def drain(self) -> None:
        """Forget what has arrived so far."""
        self.socket.setblocking(False)
        try:
            while self.socket.recv(2000):
                pass
        except BlockingIOError:
            return


@contextmanager
def stations(testbed: Testbed) -> Generator[list[Station]]:
    with ExitStack() as stack:
        made = [Station(testbed, host) for host in testbed.topology.hosts]
        for station in made:
            stack.enter_context(station.socket)
        yield made


def check_reachable(one: Station, other: Station) -> None:
    """Send until a message arrives: a switch or link that has just come up may lose the first.

    That message is the last one sent: no earlier one is still under way.
    """
    for here, there in ((one, other), (other, one)):
        there.drain()
        for number in range(300):
            last = b"anybody? %d" % number
            here.send(there.host, last)
            if heard(there, here, last):
                break
        else:
            pytest.fail(f"{there.host.name} hears nothing of {here.host.name}")


def heard(there: Station, here: Station, text: bytes) -> bool:
    """Return whether a message comes, perhaps after others."""
    try:
        while (found := there.receive(0.2)) != (here.host.address, text):
            assert found[0] == here.host.address, found
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize(("target", "mode"), KINDS)
def test_fabric_carries_counts_and_recovers(target: Target, mode: Mode) -> None:
    topology = leaf_spine(2, 1, 1, host_rate_bits_per_s=None, uplink_rate_bits_per_s=None)
    with (
        Testbed(
            topology, target=target, mode=mode, variant="narrow", has_controller=False
        ) as testbed,
        stations(testbed) as (one, other),
    ):
        install_routes(testbed)
        check_reachable(one, other)
        one.drain()
        other.drain()
        before = testbed.switch_link_bytes()
        for _ in range(20):
            one.send(other.host, b"x" * 500)
            assert other.receive() == (one.host.address, b"x" * 500)
        up, down = testbed.switch_link_bytes()
        sent_bytes = 20 * (500 + FRAME_OVERHEAD_BYTES)
        assert (up.a, up.b, down.a) == ("s1", "s3", "s2")
        assert up.from_a_bytes - before[0].from_a_bytes == sent_bytes
        assert down.from_b_bytes - before[1].from_b_bytes == sent_bytes
        assert up.from_b_bytes == before[0].from_b_bytes
        assert down.from_a_packets == before[1].from_a_packets

        (spine,) = (each for each in read_records(testbed.run_directory) if each.name == "s3")
        with pytest.raises(TestbedBusyError, match=r"s3.*runs already"):
            testbed.start_switch("s3")
        testbed.restart_switch("s3")
        assert not spine.is_leader_alive()
        if target == "softswitch":  # BMv2 starts without any program
            assert count_routes(testbed, "s3") == 0
        assert testbed.status().is_up
        install_routes(testbed, "s3")
        check_reachable(one, other)
        if mode == "veth":
            check_cut(testbed, one, other)
        else:
            with pytest.raises(ValueError, match="no cables"):
                testbed.cut_link("s1", "s3")
    if mode == "veth":
        assert namespace_inode(f"sf-{testbed.name}-s3") is None


def check_cut(testbed: Testbed, one: Station, other: Station) -> None:
    testbed.cut_link("s3", "s1")
    assert testbed.status().cut_links == ("s1-s3",)
    before = testbed.switch_link_bytes()
    one.drain()
    other.drain()
    for here, there in ((one, other), (other, one)):
        here.send(there.host, b"lost")
        with pytest.raises(TimeoutError):
            there.receive(0.2)
    wait_until(
        lambda: testbed.switch_link_bytes()[1].from_a_packets == before[1].from_a_packets + 1,
        "the packet towards the cut",
    )
    after = testbed.switch_link_bytes()
    assert after[0] == before[0]  # nothing passed the cut, in either direction
    testbed.mend_link("s1", "s3")
    assert testbed.status().cut_links == ()
    check_reachable(one, other)
    testbed.cut_link("h1", "s1")
    testbed.mend_link("h1", "s1")
    check_reachable(one, other)


def test_switch_limits_its_links_where_the_kernel_does_not() -> None:
    rate_bits_per_s, packets = 2_500_000, 30
    topology = leaf_spine(
        2, 1, 1, host_rate_bits_per_s=100_000_000, uplink_rate_bits_per_s=rate_bits_per_s
    )
    with (
        Testbed(
            topology, mode="udp", variant="narrow", shaping="switch", has_controller=False
        ) as testbed,
        stations(testbed) as (one, other),
    ):
        install_routes(testbed)
        check_reachable(one, other)
        one.drain()
        other.drain()
        began_s = time.monotonic()
        for _ in range(packets):  # a switch that does not run loses what its socket cannot hold: 50
            one.send(other.host, b"x" * 1000)
        for _ in range(packets):
            other.receive()
        took_s = time.monotonic() - began_s
        expected_s = packets * 8 * (1000 + FRAME_OVERHEAD_BYTES) / rate_bits_per_s
        assert took_s >= expected_s
        assert testbed.status().shaper == "softswitch"


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_rates_and_ecn_are_set_as_asked() -> None:
    topology = leaf_spine(
        2, 1, 1, host_rate_bits_per_s=100_000_000, uplink_rate_bits_per_s=25_000_000
    )

    def rates(testbed: Testbed) -> dict[str, int]:
        found: dict[str, int] = {}
        for node in (*topology.switches, *topology.hosts):
            namespace = testbed.namespace_of(node)
            assert namespace is not None
            found.update(call_in_namespace(namespace, shaped))
        return found

    def shaped() -> dict[str, int]:
        listed = subprocess.run(
            ["tc", "-j", "qdisc", "show"], check=True, capture_output=True, timeout=240
        )
        return {
            queue["dev"]: 8 * queue["options"]["rate"]
            for queue in json.loads(listed.stdout)
            if queue["kind"] == "tbf"
        }

    def ecn() -> str:
        return Path("/proc/sys/net/ipv4/tcp_ecn").read_text()

    hosts = {"h1-eth0": 100_000_000, "h2-eth0": 100_000_000}
    leaf_ends = {f"s{n}-eth1": 100_000_000 for n in (1, 2)}
    uplinks = dict.fromkeys(("s1-eth2", "s2-eth2", "s3-eth1", "s3-eth2"), 25_000_000)
    with Testbed(topology, has_switch=False, tcp_ecn=True) as testbed:
        assert rates(testbed) == hosts | leaf_ends | uplinks
        testbed.cut_link("s1", "s3")
        assert rates(testbed).keys() == (hosts | leaf_ends | uplinks).keys() - {
            "s1-eth2",
            "s3-eth1",
        }
        testbed.mend_link("s1", "s3")
        assert rates(testbed) == hosts | leaf_ends | uplinks
        assert call_in_namespace(f"sf-{testbed.name}-h2", ecn) == "1\n"
        assert len(testbed.switch_link_bytes()) == 2
        assert len(testbed.status().switch_links) == 2
