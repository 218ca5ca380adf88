# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A testbed around a bridge of the kernel: the same links, joined without any switch process."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from switchfold.bmv2_topos import Testbed, single_switch, state
from switchfold.bmv2_topos.network.namespaces import call_in_namespace, namespace_inode


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_bridge_joins_all_hosts_and_vanishes_with_the_testbed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path / "records")
    name = f"test-bridge-{os.getpid()}"
    topology = single_switch(3, rate_bits_per_s=50_000_000)
    with Testbed(topology, name=name, has_bridge=True) as testbed:
        status = testbed.status()
        assert status.is_up
        assert not status.processes

        def bound(address: str) -> socket.socket:
            opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            opened.bind((address, 7000))
            opened.settimeout(60)
            return opened

        ends: list[socket.socket] = []
        try:
            for host in topology.hosts:
                namespace = testbed.namespace_of(host)
                assert namespace is not None
                ends.append(call_in_namespace(namespace, lambda a=host.address: bound(a)))
            for sender in range(3):
                for receiver in {0, 1, 2} - {sender}:
                    to = (topology.hosts[receiver].address, 7000)
                    ends[sender].sendto(bytes([sender, receiver]), to)
                    data, source = ends[receiver].recvfrom(100)
                    assert data == bytes([sender, receiver])
                    assert source == (topology.hosts[sender].address, 7000)
        finally:
            for end in ends:
                end.close()
        for link in testbed.link_bytes():
            assert link.from_host_packets == 2
            assert link.dropped_packets == 0
    assert namespace_inode(f"sf-{name}-s1") is None


def test_bridge_is_refused_where_links_are_not_interfaces() -> None:
    with pytest.raises(ValueError, match="mode udp has no interfaces to bridge"):
        Testbed(single_switch(2), mode="udp", has_bridge=True)
