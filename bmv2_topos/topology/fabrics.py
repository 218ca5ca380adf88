# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Topologies of many switches: leaf-spine and the three-level fat-tree.

leaf_spine(4, 2, 2), level 1 over level 0:

        s5            s6           spines; port i leads to leaf i
      / | | \\      / | | \\
    s1  s2  s3  s4 (each to both)  leaves; host ports first, then one port per spine
    ||  ||  ||  ||
    h1 .. h8                       h1 and h2 are on s1, h3 and h4 on s2, ..

fat_tree(4), after Al-Fares, Loukissas, Vahdat (SIGCOMM 2008): 4 pods of 2 edge switches (level 0:
s1..s8) and 2 aggregation switches (level 1: s9..s16), 4 core switches (level 2: s17..s20), 16
hosts. Ports lead down first, then up; port p of a core switch leads to pod p.
"""

from __future__ import annotations

from .topology import (
    MAX_HOSTS,
    MAX_PORT,
    Host,
    Link,
    Switch,
    SwitchLink,
    Topology,
    join_host,
    make_host,
    make_switch,
)

DEFAULT_RATE_BITS_PER_S = 100_000_000
MAX_FAT_TREE = 2 * MAX_HOSTS


def leaf_spine(
    num_leaves: int,
    num_spines: int,
    hosts_per_leaf: int,
    *,
    host_rate_bits_per_s: int | None = DEFAULT_RATE_BITS_PER_S,
    uplink_rate_bits_per_s: int | None = DEFAULT_RATE_BITS_PER_S,
) -> Topology:
    """Describe leaves s1.. that are joined to every spine; all hosts are on leaves.

    Rates are those of a host's link and of each link between a leaf and a spine. Hosts of leaf
    s<n> have 10.0.<n>.1 and so on. Raises ValueError for counts that exceed a switch's ports.
    """
    _check("num_leaves", num_leaves, MAX_PORT)
    _check("hosts_per_leaf", hosts_per_leaf, MAX_HOSTS)
    _check("num_spines", num_spines, MAX_PORT - hosts_per_leaf)
    leaves = [make_switch(number) for number in range(1, num_leaves + 1)]
    spines = [make_switch(num_leaves + number, level=1) for number in range(1, num_spines + 1)]
    hosts, links = _hosts_of(leaves, hosts_per_leaf, host_rate_bits_per_s)
    uplinks = tuple(
        _join(leaf, hosts_per_leaf + up, spine, down, uplink_rate_bits_per_s)
        for down, leaf in enumerate(leaves, 1)
        for up, spine in enumerate(spines, 1)
    )
    return Topology(hosts=hosts, switches=(*leaves, *spines), links=links, switch_links=uplinks)


def fat_tree(
    k: int,
    *,
    host_rate_bits_per_s: int | None = DEFAULT_RATE_BITS_PER_S,
    edge_rate_bits_per_s: int | None = DEFAULT_RATE_BITS_PER_S,
    core_rate_bits_per_s: int | None = DEFAULT_RATE_BITS_PER_S,
) -> Topology:
    """Describe k pods of k/2 edge and k/2 aggregation switches under (k/2)^2 core switches.

    k/2 hosts are on each edge switch. Rates are those of host links, of links between edge and
    aggregation, and of links to the core. Raises ValueError unless k is even, 2 to 64.
    """
    if k % 2 or not 2 <= k <= MAX_FAT_TREE:
        raise ValueError(f"k is {k}; a fat-tree needs an even k, 2 to {MAX_FAT_TREE}")
    half = k // 2
    edges = [make_switch(number) for number in range(1, k * half + 1)]
    middles = [make_switch(k * half + number, level=1) for number in range(1, k * half + 1)]
    cores = [make_switch(2 * k * half + number, level=2) for number in range(1, half * half + 1)]
    hosts, links = _hosts_of(edges, half, host_rate_bits_per_s)
    switch_links: list[SwitchLink] = []
    for pod in range(k):
        pod_edges = edges[pod * half : (pod + 1) * half]
        pod_middles = middles[pod * half : (pod + 1) * half]
        switch_links += [
            _join(edge, half + up, middle, down, edge_rate_bits_per_s)
            for down, edge in enumerate(pod_edges, 1)
            for up, middle in enumerate(pod_middles, 1)
        ]
        switch_links += [
            _join(middle, half + up, cores[group * half + up - 1], pod + 1, core_rate_bits_per_s)
            for group, middle in enumerate(pod_middles)
            for up in range(1, half + 1)
        ]
    return Topology(
        hosts=hosts,
        switches=(*edges, *middles, *cores),
        links=links,
        switch_links=tuple(switch_links),
    )


def _hosts_of(
    switches: list[Switch], per_switch: int, rate_bits_per_s: int | None
) -> tuple[tuple[Host, ...], tuple[Link, ...]]:
    hosts: list[Host] = []
    links: list[Link] = []
    for switch in switches:
        for place in range(1, per_switch + 1):
            hosts.append(make_host(len(hosts) + 1, subnet=switch.device_id, place=place))
            links.append(join_host(hosts[-1], switch, place, rate_bits_per_s))
    return tuple(hosts), tuple(links)


def _join(
    below: Switch, below_port: int, above: Switch, above_port: int, rate_bits_per_s: int | None
) -> SwitchLink:
    return SwitchLink(
        a=below.name,
        a_port=below_port,
        b=above.name,
        b_port=above_port,
        a_interface=f"{below.name}-eth{below_port}",
        b_interface=f"{above.name}-eth{above_port}",
        rate_bits_per_s=rate_bits_per_s,
    )


def _check(what: str, number: int, most: int) -> None:
    if not 1 <= number <= most:
        raise ValueError(f"{what} is {number}; it must be 1 to {most}")
