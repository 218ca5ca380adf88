# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Bytes per port as the P4 program counts them, read from the switch by P4Runtime."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc
from finsy.proto import p4i, p4r
from google.protobuf import text_format

from ...hostlib.credentials import Credentials, Role, role_name
from ...hostlib.credentials.grpc_channels import open_channel
from ..errors import TestbedError
from ..topology.topology import Topology
from .link_counters import LinkBytes, SwitchLinkBytes

_READ: Final = "/p4.v1.P4Runtime/Read"
_TIMEOUT_S: Final = 60.0
_COUNTERS: Final = ("port_in", "port_out")
"""Indirect counters of every frame that enters and leaves, indexed by port."""


@dataclass(frozen=True, kw_only=True)
class PortBytes:
    """What a switch counted at one of its ports since it started."""

    in_bytes: int = 0
    in_packets: int = 0
    out_bytes: int = 0
    out_packets: int = 0


@dataclass(frozen=True, kw_only=True)
class SwitchCalls:
    """How to read a testbed's switches."""

    addresses: Mapping[str, str]
    """P4Runtime addresses by the switches' names."""
    p4info: Path
    """Of the program that they all run."""
    credentials: Credentials | None = None
    """What is shown to them."""


def read_port_bytes(topology: Topology, calls: SwitchCalls) -> tuple[LinkBytes, ...]:
    """Read what crossed each host's link; TestbedError when one of the switches does not answer.

    A switch counts the same bytes as a kernel interface: frames without preamble and FCS. It counts
    from its start on.
    """
    leaves = {link.switch for link in topology.links}
    counted = {name: _ports(topology, name, calls) for name in leaves}
    found: list[LinkBytes] = []
    for link in topology.links:
        port = counted[link.switch][link.port]
        found.append(
            LinkBytes(
                host=link.host,
                port=link.port,
                from_host_bytes=port.in_bytes,
                from_host_packets=port.in_packets,
                to_host_bytes=port.out_bytes,
                to_host_packets=port.out_packets,
                dropped_packets=0,
            )
        )
    return tuple(found)


def read_switch_port_bytes(topology: Topology, calls: SwitchCalls) -> tuple[SwitchLinkBytes, ...]:
    """Read what crossed each link between switches, as the receiving switch counts it."""
    ends = {end for link in topology.switch_links for end in (link.a, link.b)}
    counted = {name: _ports(topology, name, calls) for name in ends}
    found: list[SwitchLinkBytes] = []
    for link in topology.switch_links:
        at_a, at_b = counted[link.a][link.a_port], counted[link.b][link.b_port]
        found.append(
            SwitchLinkBytes(
                a=link.a,
                a_port=link.a_port,
                b=link.b,
                b_port=link.b_port,
                from_a_bytes=at_b.in_bytes,
                from_a_packets=at_b.in_packets,
                from_b_bytes=at_a.in_bytes,
                from_b_packets=at_a.in_packets,
                # Only the link itself can lose a frame; the last frames may still be in flight.
                dropped_packets=max(0, at_a.out_packets - at_b.in_packets)
                + max(0, at_b.out_packets - at_a.in_packets),
            )
        )
    return tuple(found)


def _ports(topology: Topology, name: str, calls: SwitchCalls) -> dict[int, PortBytes]:
    switch = topology.switch_named(name)
    info = text_format.Parse(calls.p4info.read_text(), p4i.P4Info())
    ids = {
        counter.preamble.name.rpartition(".")[2]: counter.preamble.id for counter in info.counters
    }
    request = p4r.ReadRequest(device_id=switch.device_id)
    ports = [end.port for end in topology.ports_of(switch)]
    for counter in _COUNTERS:
        for port in ports:
            entity = request.entities.add()
            entity.counter_entry.counter_id = ids[counter]
            entity.counter_entry.index.index = port
    counted: dict[tuple[int, int], p4r.CounterData] = {}
    for response in _read(name, calls, request):
        for entity in response.entities:
            entry = entity.counter_entry
            counted[entry.counter_id, entry.index.index] = entry.data
    nothing = p4r.CounterData()
    found: dict[int, PortBytes] = {}
    for port in ports:
        entered = counted.get((ids["port_in"], port), nothing)
        left = counted.get((ids["port_out"], port), nothing)
        found[port] = PortBytes(
            in_bytes=entered.byte_count,
            in_packets=entered.packet_count,
            out_bytes=left.byte_count,
            out_packets=left.packet_count,
        )
    return found


def _read(name: str, calls: SwitchCalls, request: p4r.ReadRequest) -> list[p4r.ReadResponse]:
    address, server = calls.addresses[name], role_name(Role.SWITCH, name)
    with open_channel(grpc, address, credentials=calls.credentials, server=server) as channel:
        # grpc is only partly annotated.
        read = channel.unary_stream(
            _READ,
            request_serializer=p4r.ReadRequest.SerializeToString,
            response_deserializer=p4r.ReadResponse.FromString,
        )
        try:
            answers: Iterable[p4r.ReadResponse] = read(request, timeout=_TIMEOUT_S)
            return list(answers)
        except grpc.RpcError as exc:
            raise TestbedError(
                f"switch at {address} does not answer with its port counters: {exc}"
            ) from exc
