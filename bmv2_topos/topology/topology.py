# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A testbed's topology in Mininet's terms: hosts h1..hN, switches s1.., and the links between them.

P4 port numbers equal the eth numbers of the switch: host h3 is on s1-eth3, port 3. Worker ids
start at 0, so worker 2 runs on h3. A topology is a description; `bmv2_topos.testbed` builds it.

Hosts of one switch share a subnet, and the switch is their gateway to all others. Switches route
IPv4 by table and flood nothing, so the links may form rings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_HOSTS: Final = 32
"""Most hosts of one switch: the width of its worker bitmap."""
MAX_PORT: Final = 254
"""Highest port of a switch: 255 is the controller's."""
SUBNET_PREFIX_LENGTH: Final = 24
MTU_BYTES: Final = 1500


@dataclass(frozen=True, kw_only=True)
class Host:
    """A machine that runs one worker."""

    name: str
    """h1..hN."""
    worker_id: int
    """0 for h1."""
    address: str
    """IPv4 address on the link to the switch."""
    mac: str
    interface: str
    """Name inside the host's namespace, such as h1-eth0."""


@dataclass(frozen=True, kw_only=True)
class Switch:
    """A P4 switch."""

    name: str
    """s1.."""
    device_id: int
    """P4Runtime device id."""
    address: str
    """IPv4 address that workers send their contributions to; the gateway of the switch's hosts."""
    mac: str
    level: int = 0
    """0 for switches with hosts; one more for each level above them."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """One cable between a host and a switch port."""

    host: str
    switch: str
    port: int
    """P4 port of the switch, counted from 1."""
    host_interface: str
    switch_interface: str
    rate_bits_per_s: int | None
    """Rate of each direction, over Ethernet frames without preamble and FCS; None: unshaped."""

    def __post_init__(self) -> None:
        _check_rate(self.host_interface, self.rate_bits_per_s)

    @property
    def name(self) -> str:
        """The unique name of this link: its host's."""
        return self.host

    @property
    def ends(self) -> tuple[str, str]:
        """Names of the host and the switch."""
        return self.host, self.switch


@dataclass(frozen=True, kw_only=True)
class SwitchLink:
    """One cable between two switches; `a` is the one nearer to hosts."""

    a: str
    a_port: int
    b: str
    b_port: int
    a_interface: str
    b_interface: str
    rate_bits_per_s: int | None
    """Rate of each direction, over Ethernet frames without preamble and FCS; None: unshaped."""

    def __post_init__(self) -> None:
        _check_rate(self.a_interface, self.rate_bits_per_s)
        if self.a == self.b:
            raise ValueError(f"a link joins {self.a} with itself")

    @property
    def name(self) -> str:
        """The unique name of this link, such as s1-s3."""
        return f"{self.a}-{self.b}"

    @property
    def ends(self) -> tuple[str, str]:
        """Names of both switches."""
        return self.a, self.b


@dataclass(frozen=True, kw_only=True)
class PortEnd:
    """A switch port and what lies at the other end of its link."""

    port: int
    interface: str
    link: Link | SwitchLink
    is_b: bool = False
    """Whether this is the end `b` of a link between switches."""


@dataclass(frozen=True, kw_only=True)
class Topology:
    """Hosts, switches and links; checked for names, ports and addresses that clash."""

    hosts: tuple[Host, ...]
    switches: tuple[Switch, ...]
    links: tuple[Link, ...]
    """One per host."""
    switch_links: tuple[SwitchLink, ...] = ()

    def __post_init__(self) -> None:
        names = [node.name for node in (*self.hosts, *self.switches)]
        if len(set(names)) != len(names):
            raise ValueError(f"node names must differ: {', '.join(names)}")
        ends = [(link.host, link.switch) for link in self.links]
        ends += [(link.a, link.b) for link in self.switch_links]
        ports = [(link.switch, link.port) for link in self.links]
        for link in self.switch_links:
            ports += [(link.a, link.a_port), (link.b, link.b_port)]
        if len(set(ports)) != len(ports):
            raise ValueError("two links use the same switch port")
        for name, port in ports:
            if not 1 <= port <= MAX_PORT:
                raise ValueError(f"{name} has no port {port}: ports are 1 to {MAX_PORT}")
        unknown = {end for pair in ends for end in pair} - set(names)
        if unknown:
            raise ValueError(f"links name unknown nodes: {', '.join(sorted(unknown))}")
        if len(set(ends)) != len(ends):
            raise ValueError("two links join the same two nodes")
        for what in ("address", "mac"):
            values = [getattr(node, what) for node in (*self.hosts, *self.switches)]
            if len(set(values)) != len(values):
                raise ValueError(f"two nodes have the same {what}")
        device_ids = [switch.device_id for switch in self.switches]
        if len(set(device_ids)) != len(device_ids):
            raise ValueError("two switches have the same device_id")

    def host_of(self, worker_id: int) -> Host:
        """Return the host that runs a worker; ValueError when there is none."""
        for host in self.hosts:
            if host.worker_id == worker_id:
                return host
        raise ValueError(f"no worker {worker_id} in a topology of {len(self.hosts)} hosts")

    def switch_named(self, name: str) -> Switch:
        """Return the switch of this name; ValueError when there is none."""
        for switch in self.switches:
            if switch.name == name:
                return switch
        names = ", ".join(switch.name for switch in self.switches)
        raise ValueError(f"no switch {name!r} in this topology; there are {names}")

    def link_of(self, host: Host) -> Link:
        """Return the link that joins a host to its switch."""
        return next(link for link in self.links if link.host == host.name)

    def switch_of(self, host: Host) -> Switch:
        """Return the switch of a host."""
        return self.switch_named(self.link_of(host).switch)

    def links_of(self, switch: Switch) -> tuple[Link, ...]:
        """Return the links of a switch to its hosts, in the order of their ports."""
        mine = [link for link in self.links if link.switch == switch.name]
        return tuple(sorted(mine, key=lambda link: link.port))

    def ports_of(self, switch: Switch) -> tuple[PortEnd, ...]:
        """Return every port of a switch with its link, in the order of ports."""
        ends = [
            PortEnd(port=link.port, interface=link.switch_interface, link=link)
            for link in self.links_of(switch)
        ]
        for link in self.switch_links:
            if link.a == switch.name:
                ends.append(PortEnd(port=link.a_port, interface=link.a_interface, link=link))
            elif link.b == switch.name:
                ends.append(
                    PortEnd(port=link.b_port, interface=link.b_interface, link=link, is_b=True)
                )
        return tuple(sorted(ends, key=lambda end: end.port))

    def link_named(self, name: str) -> Link | SwitchLink:
        """Return the link of this name: a host's, or both ends' as in h1-s1 or s3-s1."""
        named: dict[str, Link | SwitchLink] = {}
        for link in (*self.links, *self.switch_links):
            one, other = link.ends
            for each in (link.name, f"{one}-{other}", f"{other}-{one}"):
                named[each] = link
        if name not in named:
            known = ", ".join("-".join(link.ends) for link in (*self.links, *self.switch_links))
            raise ValueError(f"no link {name!r} in this topology; there are {known}")
        return named[name]

    def link_between(self, one: str, other: str) -> Link | SwitchLink:
        """Return the link between two named nodes; ValueError when there is none."""
        for link in (*self.links, *self.switch_links):
            if set(link.ends) == {one, other}:
                return link
        raise ValueError(f"no link joins {one} and {other} in this topology")


def make_switch(number: int, *, level: int = 0) -> Switch:
    """Return switch s<number>; 10.x.y.254 with x.y the number's two bytes, like the MAC."""
    high, low = divmod(number, 256)
    return Switch(
        name=f"s{number}",
        device_id=number,
        address=f"10.{high}.{low}.254",
        mac=f"02:00:00:{high:02x}:{low:02x}:fe",
        level=level,
    )


def make_host(number: int, *, subnet: int, place: int) -> Host:
    """Return host h<number>, the `place`-th (from 1) of subnet 10.x.y.0/24."""
    high, low = divmod(subnet, 256)
    return Host(
        name=f"h{number}",
        worker_id=number - 1,
        address=f"10.{high}.{low}.{place}",
        mac=f"02:00:00:{high:02x}:{low:02x}:{place:02x}",
        interface=f"h{number}-eth0",
    )


def join_host(host: Host, switch: Switch, port: int, rate_bits_per_s: int | None) -> Link:
    """Return the link of a host to a switch port."""
    return Link(
        host=host.name,
        switch=switch.name,
        port=port,
        host_interface=host.interface,
        switch_interface=f"{switch.name}-eth{port}",
        rate_bits_per_s=rate_bits_per_s,
    )


def single_switch(num_workers: int, *, rate_bits_per_s: int | None = 100_000_000) -> Topology:
    """Describe `num_workers` hosts around one switch, every link with the same rate.

    Addresses are 10.0.0.<n>/24 and 02:00:00:00:00:<n> for h<n>; the switch answers at 10.0.0.254.
    Raises ValueError for fewer than 1 or more than 32 workers.
    """
    if not 1 <= num_workers <= MAX_HOSTS:
        raise ValueError(f"num_workers is {num_workers}; a switch joins 1 to {MAX_HOSTS} workers")
    switch = Switch(name="s1", device_id=1, address="10.0.0.254", mac="02:00:00:00:00:fe")
    numbers = range(1, num_workers + 1)
    hosts = tuple(make_host(number, subnet=0, place=number) for number in numbers)
    links = tuple(
        join_host(host, switch, number, rate_bits_per_s)
        for number, host in zip(numbers, hosts, strict=True)
    )
    return Topology(hosts=hosts, switches=(switch,), links=links)


def _check_rate(interface: str, rate_bits_per_s: int | None) -> None:
    if rate_bits_per_s is not None and rate_bits_per_s < 1_000_000:
        raise ValueError(
            f"rate_bits_per_s of {interface} is {rate_bits_per_s}; "
            "the shapers need at least 1000000 (1 Mbit/s), or None for no shaping"
        )
