# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Switchfold packets for scapy: docs/wire_format.md as a layer above UDP.

Needs scapy (`pip install scapy`). Importing this module binds the layer to UDP port 21318.
"""

from __future__ import annotations

from typing import Final

from scapy.fields import (
    ByteEnumField,
    ByteField,
    FieldListField,
    FlagsField,
    IntField,
    ShortField,
    SignedIntField,
    XIntField,
)
from scapy.layers.inet import UDP
from scapy.packet import Packet, bind_layers

from ..slots.wire import (
    UDP_PORT,
    VALUES_PER_PACKET_WIDE,
    WIRE_VERSION,
    Flag,
    Operation,
)

_OPERATIONS: Final = {int(each): each.name for each in Operation}
_FIRST_SIGNATURE: Final = 1 << 20
"""The bits above a tensor's position."""


class SwitchfoldPacket(Packet):
    """The header and the lanes of one datagram.

    Fields have the names and units of docs/wire_format.md. `lanes` has signed 32-bit integers, as
    many as the datagram has; a variant's datagrams have 32 or 352. Nothing is filled in: a range
    that does not fit the lanes is sent as it is, so that refusals can be tried.

        Ether() / IP(dst="10.0.255.254") / UDP(sport=40000, dport=21318) / SwitchfoldPacket(
            operation="FLUSH", job_id=7, worker_id=2, lanes=[0] * 32)
    """

    name = "Switchfold"
    fields_desc = [  # noqa: RUF012 - as scapy declares it
        ByteField("version", WIRE_VERSION),
        ByteEnumField("operation", int(Operation.AGGREGATE_ADD), _OPERATIONS),
        FlagsField("flags", 0, 16, [flag.name or "" for flag in Flag]),
        ShortField("job_id", 1),
        ByteField("worker_id", 0),
        ByteField("priority", 0),
        IntField("generation", 1),
        IntField("slot_index", 0),
        IntField("round", 1),
        IntField("tensor_id", 1),
        IntField("chunk_index", 0),
        IntField("range_start", 0),
        IntField("range_end", 1),
        XIntField("worker_bitmap", 1),
        ShortField("num_contributors", 1),
        ByteField("exponent", 0),
        ByteField("expected", 0),
        FieldListField("lanes", [], SignedIntField("lane", 0), max_count=VALUES_PER_PACKET_WIDE),
    ]

    def mysummary(self) -> str:
        """Return one line, the one that the dissector for Wireshark shows."""
        operation, flags = int(self.operation), int(self.flags)
        name = _OPERATIONS.get(operation, f"operation {operation}")
        parts = [f"{name} job={self.job_id} worker={self.worker_id}"]
        if operation == Operation.MULTICAST:
            parts.append("report" if flags & Flag.REPORT else f"number={self.round}")
        elif flags & Flag.TO_SERVER or operation in {Operation.READ, Operation.WRITE}:
            parts.append(f"row={self.slot_index} epoch={self.tensor_id} round={self.round}")
        else:
            position = self.tensor_id % _FIRST_SIGNATURE
            parts.append(f"slot={self.slot_index} round={self.round} tensor={position}")
        parts.append(f"[{self.range_start},{self.range_end})")
        if operation in {Operation.RESULT, Operation.NOTICE}:
            parts.append(f"of {self.num_contributors}")
        names = [flag.name or "" for flag in Flag if flags & flag]
        return " ".join([*parts, "|".join(names)] if names else parts)


bind_layers(UDP, SwitchfoldPacket, sport=UDP_PORT)
bind_layers(UDP, SwitchfoldPacket, dport=UDP_PORT)
