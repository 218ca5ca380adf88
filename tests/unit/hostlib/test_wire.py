# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from scapy.layers.inet import IP, UDP

from switchfold.hostlib.slots import wire
from switchfold.hostlib.slots.scapy_layers import Switchfold, pack_values, unpack_values


def test_header_is_44_bytes_without_holes() -> None:
    offset = 0
    for name in wire.HEADER_DTYPE.names or ():
        field, place = wire.HEADER_DTYPE.fields[name][:2]  # type: ignore[index]
        assert place == offset, name
        offset += field.itemsize
    assert offset == wire.HEADER_BYTES == 44


@pytest.mark.parametrize(("values", "size", "efficiency"), [(32, 172, 0.538), (352, 1452, 0.9275)])
def test_datagram_sizes(values: int, size: int, efficiency: float) -> None:
    assert wire.datagram_bytes(values) == size == wire.datagram_dtype(values).itemsize
    assert wire.frame_bytes(values) == size + 42
    assert wire.frame_bytes(values) - wire.ETHERNET_BYTES <= 1500
    assert wire.payload_efficiency(values) == pytest.approx(efficiency, abs=0.001)


def test_wide_variant_meets_the_efficiency_goal() -> None:
    assert wire.payload_efficiency(wire.VALUES_PER_PACKET_WIDE) >= 0.92


def test_numpy_view_and_scapy_layer_agree() -> None:
    fields = {
        "version": 1,
        "operation": 2,
        "flags": 0x8015,
        "job_id": 0x1234,
        "worker_id": 31,
        "priority": 7,
        "generation": 0xDEADBEEF,
        "slot_index": 1023,
        "round": 0xFFFFFFFF,
        "tensor_id": 5,
        "chunk_index": 6,
        "range_start": 192,
        "range_end": 224,
        "worker_bitmap": 0x80000000,
        "num_contributors": 1,
        "exponent": 200,
        "reserved": 3,
    }
    assert list(fields) == list(wire.HEADER_DTYPE.names or ())
    values = np.arange(-16, 16, dtype=np.int32) * 2**26
    buffer = np.zeros((1, wire.datagram_bytes(32)), np.uint8)
    view = wire.view_datagrams(buffer, 32)
    for name, value in fields.items():
        view["header"][name] = value
    view["values"] = values
    packet = Switchfold(**fields) / pack_values(values)
    assert bytes(packet) == buffer.tobytes()
    parsed = IP(bytes(IP() / UDP(sport=5000, dport=wire.UDP_PORT) / packet))[Switchfold]
    assert {name: int(getattr(parsed, name)) for name in fields} == fields
    np.testing.assert_array_equal(unpack_values(bytes(parsed.payload)), values)


def test_view_datagrams_shares_memory() -> None:
    buffer = np.zeros((3, wire.datagram_bytes(352)), np.uint8)
    view = wire.view_datagrams(buffer, 352)
    assert view.shape == (3,)
    view["header"]["round"][2] = 1
    assert buffer[2, 19] == 1
    assert np.shares_memory(view, buffer)
