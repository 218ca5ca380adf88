# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The network under a testbed: namespaces with shaped veth links, or loopback ports."""

from __future__ import annotations

import socket
from typing import Final

from bmv2_topos import links, namespaces
from bmv2_topos.errors import PortTakenError
from bmv2_topos.state import Record
from bmv2_topos.topology import Host, Switch

_CARRIER_TIMEOUT_S: Final = 5.0


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
    ends: dict[str, list[str]] = {namespace: [] for namespace in names.values()}
    for host in topology.hosts:
        link = topology.link_of(host)
        here, there = names[link.host], names[link.switch]
        links.create_link(link, host, host_namespace=here, switch_namespace=there)
        links.set_neighbours(host, topology, namespace=here)
        if link.rate_bits_per_s is not None:
            links.shape(link.switch_interface, link.rate_bits_per_s, namespace=there)
            record.shaper = links.shape(link.host_interface, link.rate_bits_per_s, namespace=here)
        ends[here].append(link.host_interface)
        ends[there].append(link.switch_interface)
    record.save()
    for namespace, interfaces in ends.items():
        links.wait_for_carrier(interfaces, namespace=namespace, timeout_s=_CARRIER_TIMEOUT_S)


def reserve_udp_ports(record: Record, base_port: int | None) -> None:
    """Choose loopback ports for each link: from `base_port` on, or whichever are free now.

    Raises PortTakenError when one that was asked for is in use.
    """
    held: list[socket.socket] = []
    try:
        for number, link in enumerate(record.topology.links):
            wanted = (0, 0)
            if base_port is not None:
                wanted = (base_port + 2 * number, base_port + 2 * number + 1)
            for port in wanted:
                held.append(_bind_loopback(port))
            ports = [int(taken.getsockname()[1]) for taken in held[-2:]]
            record.udp_ports[link.host] = (ports[0], ports[1])
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
