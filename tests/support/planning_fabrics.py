# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Fabrics that planning is tested on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from switchfold.controller.config import ControllerConfig, HostConfig, LinkConfig, SwitchConfig

MBIT = 1_000_000


@dataclass(frozen=True)
class At:
    """Where a worker is attached."""

    worker_id: int
    switch: str
    port: int


def build(
    hosts: Mapping[str, int],
    links: Iterable[tuple[str, str, int]],
    *,
    host_rate: int = 100 * MBIT,
    plain: Iterable[str] = (),
) -> ControllerConfig:
    """Build switches with so many hosts each, and (a, b, rate) links; hosts have the low ports."""
    plain = set(plain)
    switches: list[SwitchConfig] = []
    number = 0
    for index, (name, count) in enumerate(hosts.items(), 1):
        here: list[HostConfig] = []
        for port in range(1, count + 1):
            number += 1
            address = f"10.{number >> 8}.{number & 255}.1"
            mac = f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}"
            here.append(
                HostConfig(
                    name=f"h{number}",
                    port=port,
                    address=address,
                    mac=mac,
                    rate_bits_per_s=host_rate,
                )
            )
        switches.append(
            SwitchConfig(
                name=name,
                address=f"127.0.0.1:{9000 + index}",
                service_address=f"10.255.0.{index}",
                service_mac=f"02:53:46:00:00:{index:02x}",
                aggregates=name not in plain,
                hosts=tuple(here),
            )
        )
    used = dict(hosts)

    def next_port(switch: str) -> int:
        used[switch] += 1
        return used[switch]

    found = tuple(
        LinkConfig(a=a, a_port=next_port(a), b=b, b_port=next_port(b), rate_bits_per_s=rate)
        for a, b, rate in links
    )
    return ControllerConfig(switches=tuple(switches), links=found)


def leaf_spine(
    num_leaves: int,
    num_spines: int,
    hosts_per_leaf: int,
    *,
    host_rate: int = 100 * MBIT,
    uplink_rate: int = 100 * MBIT,
) -> ControllerConfig:
    """Build leaves s1.. and spines behind them in number."""
    leaves = [f"s{n}" for n in range(1, num_leaves + 1)]
    spines = [f"s{n}" for n in range(num_leaves + 1, num_leaves + num_spines + 1)]
    return build(
        {name: hosts_per_leaf if name in leaves else 0 for name in leaves + spines},
        [(leaf, spine, uplink_rate) for leaf in leaves for spine in spines],
        host_rate=host_rate,
    )


def attach_all(config: ControllerConfig) -> list[At]:
    """Return one worker per host."""
    places = [(switch.name, host.port) for switch in config.switches for host in switch.hosts]
    return [At(worker_id, *place) for worker_id, place in enumerate(places)]
