# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Packet-in and packet-out: P4Runtime metadata to and from controller headers on the CPU port."""

from finsy.proto import p4r, rpc_code

from ..p4info.schema import ControllerHeader
from ..p4info.values import decode, encode, field_bytes
from .status import RequestError


def pack_packet_out(header: ControllerHeader | None, packet: p4r.PacketOut) -> bytes:
    """Return the frame that enters by the CPU port: packet_out header, then payload.

    Raises RequestError INVALID_ARGUMENT or OUT_OF_RANGE if the metadata does not fit the P4Info.
    """
    given = {item.metadata_id: item.value for item in packet.metadata}
    fields = header.fields if header is not None else ()
    known = {item.id for item in fields}
    if len(given) != len(packet.metadata):
        raise RequestError(rpc_code.INVALID_ARGUMENT, "packet-out: a metadata_id is given twice")
    for metadata_id in given:
        if metadata_id not in known:
            raise RequestError(
                rpc_code.INVALID_ARGUMENT,
                f"packet-out: metadata_id {metadata_id} is not in the P4Info's packet_out header",
            )
    bits, total = 0, 0
    for item in fields:
        value = given.get(item.id)
        if value is None:
            if not item.name.startswith("_"):  # padding may be left out
                raise RequestError(
                    rpc_code.INVALID_ARGUMENT, f"packet-out: metadata {item.name} is missing"
                )
            value = b"\0"
        if item.strings is None:
            value = decode(value, item.width, f"packet-out: {item.name}")
        else:
            value = item.strings.encode(value, item.width)
        number = int.from_bytes(value, "big")
        total = (total << item.width) | number
        bits += item.width
    size = (bits + 7) // 8  # the bits after the last field are 0
    return (total << (size * 8 - bits)).to_bytes(size, "big") + packet.payload


def unpack_packet_in(header: ControllerHeader | None, frame: bytes) -> p4r.PacketIn:
    """Split a frame that left by the CPU port into metadata and payload.

    Raises RequestError DATA_LOSS if the frame is shorter than the packet_in header.
    """
    if header is None:
        return p4r.PacketIn(payload=frame)
    size = (header.bits + 7) // 8
    if len(frame) < size:
        raise RequestError(
            rpc_code.DATA_LOSS,
            f"packet-in: {len(frame)} bytes, but the packet_in header has {size}; "
            f"the program must make it valid for frames to the CPU port",
        )
    packed = int.from_bytes(frame[:size], "big")
    packet = p4r.PacketIn(payload=frame[size:])
    shift = size * 8
    for item in header.fields:
        shift -= item.width
        number = (packed >> shift) & ((1 << item.width) - 1)
        field = number.to_bytes(field_bytes(item.width), "big")
        value = encode(field) if item.strings is None else item.strings.decode(field)
        packet.metadata.add(metadata_id=item.id, value=value)
    return packet
