# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Topologies: names, addresses, ports and refusals."""

from __future__ import annotations

import pytest

from switchfold import bmv2_topos
from switchfold.bmv2_topos.topology.topology import Host, Link, Switch, Topology, single_switch


def test_single_switch_names_and_addresses_follow_mininet() -> None:
    topology = single_switch(3, rate_bits_per_s=10_000_000)
    host, link = topology.hosts[2], topology.links[2]
    assert (host.name, host.worker_id, host.address) == ("h3", 2, "10.0.0.3")
    assert (host.mac, host.interface) == ("02:00:00:00:00:03", "h3-eth0")
    assert (link.switch, link.port, link.switch_interface) == ("s1", 3, "s1-eth3")
    assert link.rate_bits_per_s == 10_000_000
    switch = topology.switches[0]
    assert (switch.address, switch.mac) == ("10.0.0.254", "02:00:00:00:00:fe")


def test_single_switch_of_32_workers_has_distinct_ends() -> None:
    topology = single_switch(32)
    for what in ("address", "mac", "interface", "worker_id"):
        assert len({getattr(host, what) for host in topology.hosts}) == 32
    assert [link.port for link in topology.links_of(topology.switches[0])] == list(range(1, 33))
    assert max(len(link.switch_interface) for link in topology.links) <= 15


@pytest.mark.parametrize("num_workers", [-1, 0, 33])
def test_single_switch_refuses_impossible_numbers(num_workers: int) -> None:
    with pytest.raises(ValueError, match="1 to 32"):
        single_switch(num_workers)


def test_link_refuses_a_rate_below_the_shapers() -> None:
    with pytest.raises(ValueError, match="at least 1000000"):
        single_switch(1, rate_bits_per_s=1000)


def test_topology_refuses_clashes() -> None:
    good = single_switch(2)
    switch = Switch(name="h1", device_id=1, address="10.0.0.9", mac="02:00:00:00:00:09")
    with pytest.raises(ValueError, match="names must differ"):
        Topology(hosts=good.hosts, switches=(switch,), links=())
    with pytest.raises(ValueError, match="same switch port"):
        Topology(hosts=good.hosts, switches=good.switches, links=(good.links[0],) * 2)
    stranger = Link(
        host="h9",
        switch="s1",
        port=9,
        host_interface="h9-eth0",
        switch_interface="s1-eth9",
        rate_bits_per_s=None,
    )
    with pytest.raises(ValueError, match="unknown nodes: h9"):
        Topology(hosts=good.hosts, switches=good.switches, links=(stranger,))


def test_lookups_find_and_refuse() -> None:
    topology = single_switch(2)
    host: Host = topology.host_of(1)
    assert topology.link_of(host).port == 2
    with pytest.raises(ValueError, match="no worker 2"):
        topology.host_of(2)


def test_topology_package_exports_what_it_says() -> None:
    assert bmv2_topos.__all__ == sorted(bmv2_topos.__all__)
    assert all(hasattr(bmv2_topos, name) for name in bmv2_topos.__all__)
