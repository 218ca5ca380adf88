# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The network under a testbed: namespaces with shaped veth links, or loopback ports."""

from __future__ import annotations

import socket
from pathlib import Path

from ..errors import PortTakenError
from ..processes.free_ports import free_port
from ..state import Record
from ..topology.topology import Host, Link, Switch, SwitchLink
from . import links, namespaces


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
        links.create_link(
            link,
            host,
            host_namespace=here,
            switch_namespace=there,
            has_offloads=record.has_offloads,
        )
        links.set_neighbours(host, topology, namespace=here)
    for link in topology.switch_links:
        a, b = names[link.a], names[link.b]
        links.create_switch_link(
            link, a_namespace=a, b_namespace=b, has_offloads=record.has_offloads
        )
    every = [*topology.links, *topology.switch_links]
    for namespace, interface, rate_bits_per_s in (
        end for link in every for end in cable_ends(record, link)
    ):
        if rate_bits_per_s is not None:
            shaper = links.shape(interface, rate_bits_per_s, namespace=namespace)
            record.shaper = record.shaper or shaper
    record.save()
    waiting: dict[str, list[str]] = {}
    for namespace, interface, _ in (end for link in every for end in cable_ends(record, link)):
        waiting.setdefault(namespace, []).append(interface)
    for namespace, interfaces in waiting.items():
        links.wait_for_carrier(interfaces, namespace=namespace, timeout_s=links.CARRIER_TIMEOUT_S)


def cable_ends(record: Record, link: Link | SwitchLink) -> list[tuple[str, str, int | None]]:
    """Return namespace, interface and the kernel's rate of both ends of a link.

    The rate is None for unshaped ends, and for ends that their switch shapes.
    """
    topology = record.topology
    at_switch = link.rate_bits_per_s if record.shaping == "links" else None

    def switch_end(name: str, interface: str) -> tuple[str, str, int | None]:
        return namespace_name(record.name, topology.switch_named(name)), interface, at_switch

    if isinstance(link, SwitchLink):
        return [switch_end(link.a, link.a_interface), switch_end(link.b, link.b_interface)]
    host = next(host for host in topology.hosts if host.name == link.host)
    host_end = (namespace_name(record.name, host), link.host_interface, link.rate_bits_per_s)
    return [host_end, switch_end(link.switch, link.switch_interface)]


def negotiate_ecn(record: Record) -> None:
    """Make the TCP of every host request and accept ECN."""
    setting = Path("/proc/sys/net/ipv4/tcp_ecn")  # of the namespace of the thread that writes it
    for host in record.topology.hosts:
        namespace = namespace_name(record.name, host)
        namespaces.call_in_namespace(namespace, lambda: setting.write_text("1"))


def reserve_udp_ports(record: Record, base_port: int | None) -> None:
    """Choose loopback ports for each link: from `base_port` on, or whichever are free.

    Raises PortTakenError when a requested port is in use.
    """
    topology = record.topology
    for number, link in enumerate((*topology.links, *topology.switch_links)):
        if base_port is None:
            ports = (free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_DGRAM))
        else:
            ports = (base_port + 2 * number, base_port + 2 * number + 1)
            for port in ports:
                _check_is_free(port)
        record.udp_ports[link.name] = ports
    record.save()


def _check_is_free(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as exc:
            raise PortTakenError(
                f"UDP port {port} of 127.0.0.1 cannot be used ({exc.strerror}): end the process "
                "that holds it or choose another --udp-base-port"
            ) from exc
