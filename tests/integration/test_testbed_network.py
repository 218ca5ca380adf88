# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The testbed's network in real namespaces: made, shaped, cleaned, never touching anything else."""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyroute2.netlink.exceptions import NetlinkError

from switchfold.bmv2_topos import Testbed, single_switch, state
from switchfold.bmv2_topos.config import child_environment
from switchfold.bmv2_topos.errors import KernelError, NameTakenError, ShaperMissingError
from switchfold.bmv2_topos.network import links, namespaces
from switchfold.bmv2_topos.network.rate_probe import probe_rate
from switchfold.bmv2_topos.processes.processes import read_records
from time_bound import wait_until

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]

NAMESPACES = Path("/run/netns")
MINE = f"-{os.getpid()}-"
"""In the name of every namespace that these tests make: other runs may go on beside this one."""
SIOCETHTOOL = 0x8946
ETHTOOL_GGRO = 0x2B
SLEEPER = [sys.executable, "-S", "-c", "import signal; signal.pause()"]


def machine() -> tuple[set[str], list[str]]:
    """Return the named namespaces and the interfaces of the test's own namespace."""
    names = {path.name for path in NAMESPACES.iterdir()} if NAMESPACES.is_dir() else set[str]()
    return names, [name for _, name in socket.if_nameindex()]


@pytest.fixture(autouse=True)
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Keep these tests' records apart, and demand that each leaves nothing behind."""
    root = tmp_path / "records"
    monkeypatch.setattr(state, "records_directory", lambda: root)
    yield root
    names = {path.name for path in NAMESPACES.iterdir()}
    assert not {name for name in names if MINE in name}
    assert not root.exists() or not list(root.iterdir())


def network(num_workers: int, *, name: str, rate_bits_per_s: int | None = None) -> Testbed:
    topology = single_switch(num_workers, rate_bits_per_s=rate_bits_per_s)
    return Testbed(topology, name=f"test-{name}-{os.getpid()}", has_switch=False)


def test_network_is_made_and_removed_completely() -> None:
    before = machine()
    with network(3, name="whole", rate_bits_per_s=50_000_000) as made:
        assert machine()[0] - before[0] >= {
            f"sf-{made.name}-{node}" for node in ("s1", "h1", "h2", "h3")
        }
        status = made.status()
        assert status.is_up
        assert status.shaper in {"tbf", "htb"}
        assert not {"h1-eth0", "s1-eth1"} & (set(machine()[1]) - set(before[1]))  # all inside
        made.start("idle", SLEEPER, node=made.topology.hosts[0])
    assert not {name for name in machine()[0] if made.name in name}


def test_hosts_see_only_their_link_with_permanent_neighbours() -> None:
    show = (
        "import socket; from pathlib import Path;"
        "print([name for _, name in socket.if_nameindex()]);"
        "print(Path('/proc/net/arp').read_text());"
        "v6 = Path('/proc/net/if_inet6'); print('v6', v6.read_text() if v6.exists() else '')"
    )
    with network(2, name="host") as made:
        process = made.start("show", [sys.executable, "-c", show], node=made.topology.hosts[1])
        assert process.wait(timeout_s=240) == 0
        output = process.log.read_text()
        assert "['lo', 'h2-eth0']" in output
        for address, mac in (
            ("10.0.0.1", "02:00:00:00:00:01"),
            ("10.0.0.254", "02:00:00:00:00:fe"),
        ):
            (line,) = [line for line in output.splitlines() if line.split()[:1] == [address]]
            assert mac in line
            assert "0x6" in line  # complete and permanent
        assert output.endswith("v6 \n")


@pytest.mark.parametrize("offloads", [False, True])
def test_links_carry_large_frames_only_with_offloads(offloads: bool) -> None:
    send = (
        "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
        "s.bind(('10.0.0.1', 5000)); s.setsockopt(socket.SOL_UDP, 103, 1000);"  # UDP_SEGMENT
        "s.sendto(b'x' * 5000, ('10.0.0.254', 21318))"
    )

    def listen() -> socket.socket:
        receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        receiver.bind(("s1-eth1", 0x0800))
        receiver.settimeout(60)
        return receiver

    topology = single_switch(1)
    name = f"test-large{int(offloads)}-{os.getpid()}"
    with Testbed(topology, name=name, has_switch=False, offloads=offloads) as made:
        namespace = made.namespace_of(made.switch)
        assert namespace is not None
        with namespaces.call_in_namespace(namespace, listen) as receiver:
            made.start("send", [sys.executable, "-c", send], node=made.topology.hosts[0])
            sizes = [len(receiver.recv(1 << 16))]
            while sum(sizes) - 42 * len(sizes) < 5000:
                sizes.append(len(receiver.recv(1 << 16)))
    assert sizes == ([5042] if offloads else [1042] * 5)


def test_frames_cross_with_checksums_and_are_counted() -> None:
    send = (
        "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
        "s.bind(('10.0.0.1', 5000)); s.sendto(b'x' * 1000, ('10.0.0.254', 21318))"
    )

    def listen() -> socket.socket:
        receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        receiver.bind(("s1-eth1", 0x0800))
        receiver.settimeout(60)
        return receiver

    with network(1, name="frame") as made:
        switch_namespace = made.namespace_of(made.switch)
        assert switch_namespace is not None
        with namespaces.call_in_namespace(switch_namespace, listen) as receiver:
            sender = made.start("send", [sys.executable, "-c", send], node=made.topology.hosts[0])
            frame = receiver.recv(2000)
            assert sender.wait(timeout_s=240) == 0
        assert len(frame) == 14 + 20 + 8 + 1000
        assert frame[:12].hex() == "0200000000fe" + "020000000001"
        words = frame[26:34] + b"\0\x11" + frame[38:40] + frame[34:]
        total = sum(int.from_bytes(words[i : i + 2], "big") for i in range(0, len(words), 2))
        assert total % 0xFFFF == 0  # the UDP checksum is real, not left to hardware
        (counted,) = made.link_bytes()
        assert (counted.from_host_bytes, counted.from_host_packets) == (len(frame), 1)
        assert counted.to_host_bytes == 0


def test_interfaces_keep_the_order_of_frames_and_put_none_together() -> None:
    """Else frames overtake each other where a sender moves between processors."""

    def has_gro(interface: str) -> bool:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            value = ctypes.create_string_buffer(struct.pack("=II", ETHTOOL_GGRO, 0))
            request = struct.pack("16sP16x", interface.encode(), ctypes.addressof(value))
            fcntl.ioctl(control, SIOCETHTOOL, request)
            return bool(struct.unpack("=II", value.raw[:8])[1])

    with network(1, name="order") as made:
        host = made.topology.hosts[0]
        for node, interface in ((host, host.interface), (made.switch, "s1-eth1")):
            namespace = made.namespace_of(node)
            assert namespace is not None
            limit = namespaces.call_with_route(
                namespace,
                lambda route, name=interface: route.get_links(ifname=name)[0].get("gro_max_size"),
            )
            assert limit in (links.GRO_BYTES, None)  # None: the kernel is older than the limit
            found = namespaces.call_in_namespace(namespace, lambda name=interface: has_gro(name))
            assert found == (limit is not None)


def shapers(made: Testbed, what: str) -> list[str]:
    """Return the kernel's description of queues ("qdisc") or classes at both ends of a link."""
    host = made.topology.hosts[0]
    found: list[str] = []
    for node, interface in ((host, host.interface), (made.switch, "s1-eth1")):
        namespace = made.namespace_of(node)
        assert namespace is not None
        command = ["tc", "-n", namespace, what, "show", "dev", interface]
        found.append(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def test_links_are_shaped_in_both_directions() -> None:
    with network(1, name="rate", rate_bits_per_s=100_000_000) as made:
        assert made.status().shaper == "tbf"
        for shown in shapers(made, "qdisc"):
            assert re.search(r"^qdisc tbf .* rate 100Mbit ", shown, re.MULTILINE), shown


def test_htb_shapes_where_tbf_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    real = links.add_shaper

    def without_tbf(
        shaper: links.Shaper, interface: str, rate_bits_per_s: int, *, namespace: str
    ) -> None:
        if shaper == "tbf":
            raise NetlinkError(2, "No such file or directory")
        real(shaper, interface, rate_bits_per_s, namespace=namespace)

    monkeypatch.setattr(links, "add_shaper", without_tbf)
    with network(1, name="htb", rate_bits_per_s=100_000_000) as made:
        assert made.status().shaper == "htb"
        for shown in shapers(made, "class"):
            rates = r"^class htb .* rate 100Mbit ceil 100Mbit "
            assert re.search(rates, shown, re.MULTILINE), shown


def test_probe_counts_what_a_link_carries() -> None:
    with network(1, name="probe", rate_bits_per_s=100_000_000) as made:
        host = made.topology.hosts[0]
        # The probe's own sender may not get to run in such a short time.
        wait_until(lambda: min(probe_rate(made, host, duration_s=0.2)) > 0, "frames on the link")


def test_kernel_without_shapers_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise NetlinkError(2, "No such file or directory")

    monkeypatch.setattr(links, "add_shaper", refuse)
    with pytest.raises(ShaperMissingError, match="sch_tbf"):
        network(1, name="none", rate_bits_per_s=100_000_000).up()


def test_network_is_made_without_forking(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a forked process, locks of the other threads may stay locked for ever."""

    def refuse() -> int:
        raise AssertionError("this process was forked")

    monkeypatch.setattr(os, "fork", refuse)
    with network(1, name="nofork") as made:
        assert made.status().is_up


def test_two_testbeds_live_at_once() -> None:
    with network(2, name="one") as one, network(2, name="two") as two:
        assert one.status().is_up
        assert two.status().is_up
        one.down()
        assert two.status().is_up


def test_foreign_namespace_is_refused_and_left_alone() -> None:
    made = network(2, name="foreign")
    name = f"sf-{made.name}-h2"
    namespaces.create_namespace(name)
    try:
        inode = namespaces.namespace_inode(name)
        with pytest.raises(NameTakenError, match=name):
            made.up()
        assert namespaces.namespace_inode(name) == inode
        assert namespaces.namespace_inode(f"sf-{made.name}-h1") is None
    finally:
        namespaces.remove_namespace(name)


def test_taken_interface_is_named() -> None:
    with network(1, name="taken") as made:
        host, link = made.topology.hosts[0], made.topology.links[0]
        here, there = made.namespace_of(host), made.namespace_of(made.switch)
        assert here is not None
        assert there is not None
        with pytest.raises(NameTakenError, match="h1-eth0"):
            links.create_link(link, host, host_namespace=here, switch_namespace=there)


def test_namespace_that_vanished_is_a_clear_error() -> None:
    with network(1, name="lost") as made:
        namespace = made.namespace_of(made.topology.hosts[0])
        assert namespace is not None
        namespaces.remove_namespace(namespace)
        assert not made.status().is_up
        with pytest.raises(KernelError, match="does not exist"):
            namespaces.call_in_namespace(namespace, socket.if_nameindex)


OWNER = """
import sys, signal
from pathlib import Path
from switchfold.bmv2_topos import Testbed, single_switch, state
state.records_directory = lambda: Path(sys.argv[1])
testbed = Testbed(single_switch(2), name=sys.argv[2], has_switch=False).up()
testbed.start("idle", sys.argv[3:], node=testbed.topology.hosts[0])
print("up", flush=True)
signal.pause()
"""


def test_killed_owner_is_cleaned_up_after_by_the_next(records: Path) -> None:
    name = f"test-killed-{os.getpid()}"
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(records), name, *SLEEPER],
        stdout=subprocess.PIPE,
        env=child_environment(records),
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"up\n"
        (process,) = read_records(records / name)
        owner.send_signal(signal.SIGKILL)
    wait_until(lambda: not process.living(), "the killed owner's process ends by itself")
    assert namespaces.namespace_inode(f"sf-{name}-h1") is not None
    with network(1, name="next"):
        assert not {path.name for path in NAMESPACES.iterdir() if name in path.name}
        assert not (records / name).exists()
