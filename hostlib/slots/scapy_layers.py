# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Scapy layer of the Switchfold header, for tests and debugging only; never on the data path."""

from __future__ import annotations

from typing import Any

import numpy as np
from scapy.fields import (
    ByteEnumField,
    ByteField,
    FlagsField,
    IntField,
    ShortField,
    XIntField,
)
from scapy.layers.inet import UDP
from scapy.packet import Packet, bind_layers

from .wire import UDP_PORT, WIRE_VERSION, Flag, Operation

_OPERATIONS = {int(operation): operation.name for operation in Operation}
_FLAGS = [flag.name or "" for flag in Flag]


class Switchfold(Packet):
    """Header of 44 bytes; the lanes are its raw payload."""

    name = "Switchfold"
    fields_desc = [  # noqa: RUF012  # scapy's own form
        ByteField("version", WIRE_VERSION),
        ByteEnumField("operation", Operation.AGGREGATE_ADD, _OPERATIONS),
        FlagsField("flags", 0, 16, _FLAGS),
        ShortField("job_id", 0),
        ByteField("worker_id", 0),
        ByteField("priority", 0),
        IntField("generation", 0),
        IntField("slot_index", 0),
        IntField("round", 1),
        IntField("tensor_id", 0),
        IntField("chunk_index", 0),
        IntField("range_start", 0),
        IntField("range_end", 0),
        XIntField("worker_bitmap", 1),
        ShortField("num_contributors", 1),
        ByteField("exponent", 0),
        ByteField("reserved", 0),
    ]


def pack_values(values: Any) -> bytes:
    """Return lanes as they are on the wire, from anything that numpy turns into int32."""
    return np.asarray(values).astype(">i4").tobytes()


def unpack_values(payload: bytes) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Return the lanes of a payload as native int32."""
    return np.frombuffer(payload, ">i4").astype(np.int32)


bind_layers(UDP, Switchfold, dport=UDP_PORT)
bind_layers(UDP, Switchfold, sport=UDP_PORT)
