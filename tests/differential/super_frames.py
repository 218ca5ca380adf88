# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Super-frames behind a virtio_net_hdr: made of datagrams, and cut as Linux cuts them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from flow_frames import CWR, FIN, PSH, TAG, ones_sum
from packet_frames import internet_checksum
from switchfold.hostlib.slots.wire import ETHERNET_BYTES, IPV4_BYTES, UDP_BYTES

OFFLOAD = struct.Struct("=BBHHHH")
"""virtio_net_hdr: flags, kind, bytes of headers and of a datagram, checksum's start and offset."""
NEEDS_CHECKSUM = 1
GSO_TCPV4, GSO_TCPV6, GSO_UDP, GSO_ECN = 1, 4, 5, 0x80
TCP, UDP = 6, 17
CHECKSUM_AT = {TCP: 16, UDP: 6}
IPV6_BYTES = 40
TCP_FLAGS_AT = 13


@dataclass(frozen=True)
class Arrival:
    """What a host hands to its interface in one piece."""

    offload: bytes
    frame: bytes

    @property
    def is_super_frame(self) -> bool:
        return self.offload[1] != 0

    @cached_property
    def frames(self) -> list[bytes]:
        """The frames that it stands for, with complete checksums."""
        return cut(self.offload, self.frame)


@dataclass(frozen=True)
class Headers:
    """The headers of a flow's next datagrams."""

    ethernet: bytes
    """With a VLAN tag or without; the last two bytes are those of IPv4 or IPv6."""
    network: bytes
    """Its length and checksum are filled in."""
    transport: bytes
    """UDP or TCP, its length and checksum are filled in."""

    @property
    def protocol(self) -> int:
        return self.network[6 if self.is_ipv6 else 9]

    @property
    def is_ipv6(self) -> bool:
        return self.network[0] >> 4 == 6

    def carry(self, payloads: Sequence[bytes], *, needs_checksum: bool = True) -> Arrival:
        """Return a super-frame, or one frame; all payloads but the last are equally long."""
        start = len(self.ethernet) + len(self.network)
        payload = b"".join(payloads)
        frame = bytearray(self.ethernet + self.network + self.transport + payload)
        whole = len(frame) - start
        write_lengths(frame, len(self.ethernet), start)
        at = start + CHECKSUM_AT[self.protocol]
        pseudo = addresses(self.network) + struct.pack(">HH", self.protocol, whole)
        frame[at : at + 2] = struct.pack(">H", ones_sum(pseudo))
        kind = 0
        if len(payloads) > 1:
            kind = GSO_UDP
            if self.protocol == TCP:
                has_cwr = self.transport[TCP_FLAGS_AT] & CWR
                kind = (GSO_TCPV6 if self.is_ipv6 else GSO_TCPV4) | (GSO_ECN if has_cwr else 0)
        header_bytes = start + len(self.transport)
        size = len(payloads[0]) if kind else 0
        offset = CHECKSUM_AT[self.protocol]
        offload = OFFLOAD.pack(NEEDS_CHECKSUM, kind, header_bytes, size, start, offset)
        if needs_checksum or kind:
            return Arrival(offload, bytes(frame))
        (complete,) = cut(offload, bytes(frame))
        return Arrival(bytes(OFFLOAD.size), complete)


def addresses(network: bytes) -> bytes:
    """Return the addresses of an IPv4 or IPv6 header, for the pseudo header."""
    return network[8:40] if network[0] >> 4 == 6 else network[12:20]


def write_lengths(frame: bytearray, network: int, transport: int) -> None:
    """Set the lengths of IP and UDP, and the IPv4 checksum."""
    if frame[network] >> 4 == 6:
        struct.pack_into(">H", frame, network + 4, len(frame) - network - IPV6_BYTES)
        protocol = frame[network + 6]
    else:
        struct.pack_into(">H", frame, network + 2, len(frame) - network)
        struct.pack_into(">H", frame, network + 10, 0)
        checksum = internet_checksum(bytes(frame[network : network + IPV4_BYTES]))
        struct.pack_into(">H", frame, network + 10, checksum)
        protocol = frame[network + 9]
    if protocol == UDP:
        struct.pack_into(">H", frame, transport + 4, len(frame) - transport)


def cut(offload: bytes, frame: bytes) -> list[bytes]:
    """Return the frames that a frame behind this virtio_net_hdr stands for, as Linux cuts them.

    Its bytes of headers are not read: the kernel writes there how much of a frame is in one piece.
    """
    flags, kind, _, size, start, offset = OFFLOAD.unpack(offload)
    if kind == 0:
        return [_complete(frame, start, offset) if flags & NEEDS_CHECKSUM else frame]
    assert flags & NEEDS_CHECKSUM, "a super-frame has no complete checksum"
    header_bytes = start + (UDP_BYTES if kind == GSO_UDP else frame[start + 12] >> 4 << 2)
    payload = frame[header_bytes:]
    assert len(payload) > size, "a super-frame holds several datagrams"
    segments: list[bytes] = []
    for index, at in enumerate(range(0, len(payload), size)):
        segment = bytearray(frame[:header_bytes] + payload[at : at + size])
        _write_network(segment, index, start)
        # The field holds the sum of the pseudo header with the whole length.
        (pseudo,) = struct.unpack_from(">H", frame, start + offset)
        lengths = struct.pack(">HHH", pseudo, 0xFFFF ^ (len(frame) - start), len(segment) - start)
        struct.pack_into(">H", segment, start + offset, ones_sum(lengths))
        if kind != GSO_UDP:
            _write_tcp(segment, start, at, is_last=at + size >= len(payload))
        segments.append(_complete(bytes(segment), start, offset))
    return segments


def _write_network(segment: bytearray, index: int, transport: int) -> None:
    network = ETHERNET_BYTES + (len(TAG) if bytes(segment[12:14]) == TAG[:2] else 0)
    if segment[network] >> 4 == 4:
        (identification,) = struct.unpack_from(">H", segment, network + 4)
        struct.pack_into(">H", segment, network + 4, (identification + index) & 0xFFFF)
    write_lengths(segment, network, transport)


def _write_tcp(segment: bytearray, tcp: int, offset: int, *, is_last: bool) -> None:
    (sequence,) = struct.unpack_from(">I", segment, tcp + 4)
    struct.pack_into(">I", segment, tcp + 4, (sequence + offset) & 0xFFFFFFFF)
    if offset > 0:
        segment[tcp + TCP_FLAGS_AT] &= ~CWR & 0xFF
    if not is_last:
        segment[tcp + TCP_FLAGS_AT] &= ~(FIN | PSH) & 0xFF


def _complete(frame: bytes, start: int, offset: int) -> bytes:
    checksum = internet_checksum(frame[start:]) or 0xFFFF
    at = start + offset
    return frame[:at] + checksum.to_bytes(2, "big") + frame[at + 2 :]
