# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The network under a testbed: namespaces with shaped veth links, or loopback ports."""

from __future__ import annotations

import socket
from pathlib import Path

from bmv2_topos import links, namespaces
from bmv2_topos.errors import PortTakenError
from bmv2_topos.state import Record
from bmv2_topos.topology import Host, Switch, Topology


def namespace_name(testbed: str, node: Host | Switch) -> str:
    """Return the namespace of a node, such as sf-main-h1."""
    return f"sf-{testbed}-{node.name}"


def make_network(record: Record) -> None:
    """Make the namespaces and links of a record's topology, noting each in the record first."""
    topology = record.topology
    names = {
        node.name: namespace_name(record.name, node)
        for node in (*topology.switches, *topology.hosts)
    }
    for namespace in names.values():
        namespaces.check_free(namespace)
        record.namespaces[namespace] = None
        record.save()
        record.namespaces[namespace] = namespaces.create_namespace(namespace)
        record.save()
    for host in topology.hosts:
        link = topology.link_of(host)
        here, there = names[link.host], names[link.switch]
        links.create_link(link, host, host_namespace=here, switch_namespace=there)
        links.set_neighbours(host, topology, namespace=here)
    for link in topology.switch_links:
        a, b = names[link.a], names[link.b]
        links.create_switch_link(link, a_namespace=a, b_namespace=b)
    for namespace, shaped in _ends(topology, names).items():
        for interface, rate_bits_per_s, is_at_switch in shaped:
            is_ours = record.shaping == "links" or not is_at_switch
            if rate_bits_per_s is not None and is_ours:
                shaper = links.shape(interface, rate_bits_per_s, namespace=namespace)
                record.shaper = record.shaper or shaper
    record.save()
    for namespace, shaped in _ends(topology, names).items():
        interfaces = [interface for interface, _, _ in shaped]
        links.wait_for_carrier(interfaces, namespace=namespace, timeout_s=links.CARRIER_TIMEOUT_S)


def _ends(
    topology: Topology, names: dict[str, str]
) -> dict[str, list[tuple[str, int | None, bool]]]:
    """Return interface, rate and whether it is a switch's, of every end of a link by namespace."""
    ends: dict[str, list[tuple[str, int | None, bool]]] = {name: [] for name in names.values()}
    for link in topology.links:
        ends[names[link.host]].append((link.host_interface, link.rate_bits_per_s, False))
    for switch in topology.switches:
        for end in topology.ports_of(switch):
            ends[names[switch.name]].append((end.interface, end.link.rate_bits_per_s, True))
    return ends


def negotiate_ecn(record: Record) -> None:
    """Let the TCP of every host ask for ECN and grant it."""
    setting = Path("/proc/sys/net/ipv4/tcp_ecn")  # of the namespace of the thread that writes it
    for host in record.topology.hosts:
        namespace = namespace_name(record.name, host)
        namespaces.call_in_namespace(namespace, lambda: setting.write_text("1"))


def reserve_udp_ports(record: Record, base_port: int | None) -> None:
    """Choose loopback ports for each link: from `base_port` on, or whichever are free now.

    Raises PortTakenError when one that was asked for is in use.
    """
    held: list[socket.socket] = []
    try:
        topology = record.topology
        for number, link in enumerate((*topology.links, *topology.switch_links)):
            wanted = (0, 0)
            if base_port is not None:
                wanted = (base_port + 2 * number, base_port + 2 * number + 1)
            for port in wanted:
                held.append(_bind_loopback(port))
            ports = [int(taken.getsockname()[1]) for taken in held[-2:]]
            record.udp_ports[link.name] = (ports[0], ports[1])
    finally:
        for taken in held:
            taken.close()
    record.save()


def _bind_loopback(port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        bound.bind(("127.0.0.1", port))
    except OSError as exc:
        bound.close()
        raise PortTakenError(
            f"UDP port {port} of 127.0.0.1 cannot be used ({exc.strerror}): end the process that "
            "holds it or choose another --udp-base-port"
        ) from exc
    return bound
