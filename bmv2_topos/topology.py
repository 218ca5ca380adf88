# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The testbed's shape in mininet's words: hosts h1..hN, switches s1.., and the links between them.

P4 port numbers equal the eth numbers of the switch: host h3 hangs on s1-eth3, port 3. Worker ids
start at 0, so worker 2 runs on h3. A topology only describes; `bmv2_topos.testbed` builds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_HOSTS: Final = 32
"""Width of the worker bitmap: more workers cannot take part in one job."""
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
    """IPv4 address that workers send their contributions to."""
    mac: str


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
        if self.rate_bits_per_s is not None and self.rate_bits_per_s < 1_000_000:
            raise ValueError(
                f"rate_bits_per_s of {self.host_interface} is {self.rate_bits_per_s}; "
                "the shapers need at least 1000000 (1 Mbit/s), or None for no shaping"
            )


@dataclass(frozen=True, kw_only=True)
class Topology:
    """Hosts, switches and links; checked for names and ports that clash."""

    hosts: tuple[Host, ...]
    switches: tuple[Switch, ...]
    links: tuple[Link, ...]

    def __post_init__(self) -> None:
        names = [node.name for node in (*self.hosts, *self.switches)]
        if len(set(names)) != len(names):
            raise ValueError(f"node names must differ: {', '.join(names)}")
        ports = [(link.switch, link.port) for link in self.links]
        if len(set(ports)) != len(ports):
            raise ValueError("two links use the same switch port")
        unknown = {end for link in self.links for end in (link.host, link.switch)} - set(names)
        if unknown:
            raise ValueError(f"links name unknown nodes: {', '.join(sorted(unknown))}")

    def host_of(self, worker_id: int) -> Host:
        """Return the host that runs a worker; ValueError when there is none."""
        for host in self.hosts:
            if host.worker_id == worker_id:
                return host
        raise ValueError(f"no worker {worker_id} in a topology of {len(self.hosts)} hosts")

    def link_of(self, host: Host) -> Link:
        """Return the link that joins a host to its switch."""
        return next(link for link in self.links if link.host == host.name)

    def links_of(self, switch: Switch) -> tuple[Link, ...]:
        """Return a switch's links in the order of their ports."""
        mine = [link for link in self.links if link.switch == switch.name]
        return tuple(sorted(mine, key=lambda link: link.port))


def single_switch(num_workers: int, *, rate_bits_per_s: int | None = 100_000_000) -> Topology:
    """Describe `num_workers` hosts around one switch, every link with the same rate.

    Addresses are 10.0.0.<n>/24 and 02:00:00:00:00:<n> for h<n>; the switch answers at 10.0.0.254.
    Raises ValueError for fewer than 1 or more than 32 workers.
    """
    if not 1 <= num_workers <= MAX_HOSTS:
        raise ValueError(f"num_workers is {num_workers}; a switch joins 1 to {MAX_HOSTS} workers")
    switch = Switch(name="s1", device_id=1, address="10.0.0.254", mac="02:00:00:00:00:fe")
    numbers = range(1, num_workers + 1)
    hosts = tuple(
        Host(
            name=f"h{number}",
            worker_id=number - 1,
            address=f"10.0.0.{number}",
            mac=f"02:00:00:00:00:{number:02x}",
            interface=f"h{number}-eth0",
        )
        for number in numbers
    )
    links = tuple(
        Link(
            host=f"h{number}",
            switch=switch.name,
            port=number,
            host_interface=f"h{number}-eth0",
            switch_interface=f"{switch.name}-eth{number}",
            rate_bits_per_s=rate_bits_per_s,
        )
        for number in numbers
    )
    return Topology(hosts=hosts, switches=(switch,), links=links)
