# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What crossed each link of a testbed, in both directions, as the kernel counts it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..topology.topology import Link, SwitchLink, Topology
from .links import GRO_BYTES
from .namespaces import call_with_route

_ETHERNET_HEADER_BYTES: Final = 14
_KINDS: Final = ("rx_bytes", "rx_packets", "tx_bytes", "tx_packets", "rx_dropped", "tx_dropped")


@dataclass(frozen=True, kw_only=True)
class LinkBytes:
    """What crossed a host's link, counted in Ethernet frames without preamble and FCS."""

    host: str
    port: int
    from_host_bytes: int
    from_host_packets: int
    to_host_bytes: int
    to_host_packets: int
    dropped_packets: int
    """Dropped at the switch's end of the link: by its shaper, or because nothing received them."""


@dataclass(frozen=True, kw_only=True)
class SwitchLinkBytes:
    """What crossed a link between switches `a` and `b`, counted like LinkBytes."""

    a: str
    a_port: int
    b: str
    b_port: int
    from_a_bytes: int
    from_a_packets: int
    from_b_bytes: int
    from_b_packets: int
    dropped_packets: int
    """Dropped at either end: by its shaper, or because nothing received them."""


def read_link_bytes(topology: Topology, namespaces: Mapping[str, str]) -> tuple[LinkBytes, ...]:
    """Read the kernel's 64-bit counters of the switches' interfaces; namespaces by switch name."""
    counted = {
        switch: read_counters(namespaces[switch])
        for switch in {link.switch for link in topology.links}
    }
    return tuple(
        _link_bytes(link, counted[link.switch][link.switch_interface]) for link in topology.links
    )


def read_switch_link_bytes(
    topology: Topology, namespaces: Mapping[str, str]
) -> tuple[SwitchLinkBytes, ...]:
    """Read the same counters of both ends of every link between switches."""
    ends = {end for link in topology.switch_links for end in (link.a, link.b)}
    counted = {switch: read_counters(namespaces[switch]) for switch in ends}
    return tuple(
        _switch_link_bytes(
            link, counted[link.a][link.a_interface], counted[link.b][link.b_interface]
        )
        for link in topology.switch_links
    )


def read_counters(namespace: str) -> dict[str, dict[str, int]]:
    """Read the 64-bit counters of a namespace's interfaces, by name and kind.

    Bytes count whole Ethernet frames.
    """

    def read(route: Any) -> dict[str, dict[str, int]]:
        return {message.get("ifname"): _counters(message) for message in route.get_links()}

    return call_with_route(namespace, read)


def _counters(message: Any) -> dict[str, int]:
    counted = message.get("stats64")
    counters = {kind: int(counted[kind]) for kind in _KINDS}
    if message.get("gro_max_size") == GRO_BYTES:  # with GRO, a veth leaves the header out
        for direction in ("rx", "tx"):
            headers = counters[f"{direction}_packets"] * _ETHERNET_HEADER_BYTES
            counters[f"{direction}_bytes"] += headers
    return counters


def _link_bytes(link: Link, counted: dict[str, int]) -> LinkBytes:
    return LinkBytes(
        host=link.host,
        port=link.port,
        from_host_bytes=counted["rx_bytes"],
        from_host_packets=counted["rx_packets"],
        to_host_bytes=counted["tx_bytes"],
        to_host_packets=counted["tx_packets"],
        dropped_packets=counted["rx_dropped"] + counted["tx_dropped"],
    )


def _switch_link_bytes(
    link: SwitchLink, at_a: dict[str, int], at_b: dict[str, int]
) -> SwitchLinkBytes:
    return SwitchLinkBytes(
        a=link.a,
        a_port=link.a_port,
        b=link.b,
        b_port=link.b_port,
        from_a_bytes=at_a["tx_bytes"],
        from_a_packets=at_a["tx_packets"],
        from_b_bytes=at_b["tx_bytes"],
        from_b_packets=at_b["tx_packets"],
        dropped_packets=sum(
            end[kind] for end in (at_a, at_b) for kind in ("rx_dropped", "tx_dropped")
        ),
    )
