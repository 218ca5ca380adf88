# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Bytes per port as the P4 program counts them, read from the switch by P4Runtime."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, cast

import grpc
from finsy.proto import p4i, p4r
from google.protobuf import text_format

from bmv2_topos.errors import TestbedError
from bmv2_topos.links import LinkBytes
from bmv2_topos.topology import Topology

_READ: Final = "/p4.v1.P4Runtime/Read"
_TIMEOUT_S: Final = 5.0
_COUNTERS: Final = ("port_in", "port_out")
"""Indirect counters of every frame that enters and leaves, indexed by port."""


def read_port_bytes(
    topology: Topology, *, switch_address: str, p4info: Path
) -> tuple[LinkBytes, ...]:
    """Read what crossed each link; raises TestbedError when the switch does not answer.

    The switch counts the same bytes as a kernel interface: frames without preamble and FCS.
    """
    info = text_format.Parse(p4info.read_text(), p4i.P4Info())
    ids = {
        counter.preamble.name.rpartition(".")[2]: counter.preamble.id for counter in info.counters
    }
    request = p4r.ReadRequest(device_id=topology.switches[0].device_id)
    for name in _COUNTERS:
        for link in topology.links:
            entity = request.entities.add()
            entity.counter_entry.counter_id = ids[name]
            entity.counter_entry.index.index = link.port
    counted: dict[tuple[int, int], p4r.CounterData] = {}
    for response in _read(switch_address, request):
        for entity in response.entities:
            entry = entity.counter_entry
            counted[entry.counter_id, entry.index.index] = entry.data
    nothing = p4r.CounterData()
    found: list[LinkBytes] = []
    for link in topology.links:
        entered = counted.get((ids["port_in"], link.port), nothing)
        left = counted.get((ids["port_out"], link.port), nothing)
        found.append(
            LinkBytes(
                host=link.host,
                port=link.port,
                from_host_bytes=entered.byte_count,
                from_host_packets=entered.packet_count,
                to_host_bytes=left.byte_count,
                to_host_packets=left.packet_count,
                dropped_packets=0,
            )
        )
    return tuple(found)


def _read(address: str, request: p4r.ReadRequest) -> list[p4r.ReadResponse]:
    with grpc.insecure_channel(address) as channel:
        # grpc is only partly annotated.
        read = cast(Any, channel).unary_stream(
            _READ,
            request_serializer=p4r.ReadRequest.SerializeToString,
            response_deserializer=p4r.ReadResponse.FromString,
        )
        try:
            answers: Iterable[p4r.ReadResponse] = read(request, timeout=_TIMEOUT_S)
            return list(answers)
        except grpc.RpcError as exc:
            raise TestbedError(
                f"switch at {address} does not tell its port counters: {exc}"
            ) from exc
