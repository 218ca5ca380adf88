# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames of TCP and UDP flows, for tests of segmentation: every field that a join looks at."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

FIN, SYN, PSH, ACK, ECE, CWR = 0x01, 0x02, 0x08, 0x10, 0x40, 0x80
DONT_FRAGMENT = 0x4000
TO_PORT_2 = bytes([4, 2, 0, 0, 0, 7])
"""Destination MAC by which the pipeline first_byte sends a frame to port 2."""
TAG = b"\x81\x00\x20\x05"


def ones_sum(data: bytes) -> int:
    """Return the one's complement sum of 16-bit words."""
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


@dataclass(frozen=True, kw_only=True)
class FlowFrame:
    """One frame of a flow; `encode` gives its bytes."""

    protocol: int = 17
    version: int = 4
    tag: bytes = b""
    mac: bytes = TO_PORT_2
    tos: int = 2
    identification: int = 0
    fragment: int = DONT_FRAGMENT
    ttl: int = 64
    source_port: int = 4000
    sequence: int = 1000
    acknowledged: int = 5
    flags: int = ACK
    window: int = 99
    options: bytes = b""
    payload: bytes = b""
    checksum: str = "good"
    """`good`, `none` (0) or `wrong`."""
    trailer: bytes = b""
    """Behind the IP packet, as padding is."""

    def encode(self) -> bytes:
        """Return the frame."""
        addresses = bytes([10, 0, 0, 1, 10, 0, 0, 2])
        if self.version == 6:
            addresses = bytes(15) + b"\1" + bytes(15) + b"\2"
        transport = self._transport(0)
        length = len(transport)
        pseudo = addresses + struct.pack(">HH", self.protocol, length)
        checksum = 0xFFFF ^ ones_sum(pseudo + transport)
        if self.protocol == 17 and checksum == 0:
            checksum = 0xFFFF
        if self.checksum != "good":
            checksum = 0 if self.checksum == "none" else checksum ^ 0x0100
        network = self._network(length, addresses)
        ethertype = b"\x08\x00" if self.version == 4 else b"\x86\xdd"
        head = self.mac + bytes(5) + b"\1" + self.tag + ethertype
        return head + network + self._transport(checksum) + self.trailer

    def _network(self, length: int, addresses: bytes) -> bytes:
        if self.version == 6:
            first = 6 << 28 | self.tos << 20
            return struct.pack(">IHBB", first, length, self.protocol, self.ttl) + addresses
        fields = (0x45, self.tos, 20 + length, self.identification, self.fragment)
        head = struct.pack(">BBHHHBB", *fields, self.ttl, self.protocol)
        checksum = 0xFFFF ^ ones_sum(head + bytes(2) + addresses)
        return head + struct.pack(">H", checksum) + addresses

    def _transport(self, checksum: int) -> bytes:
        if self.protocol == 17:
            length = 8 + len(self.payload)
            head = struct.pack(">HHHH", self.source_port, 9, length, checksum)
            return head + self.payload
        offset = (5 + len(self.options) // 4) << 4
        ports = struct.pack(">HHII", self.source_port, 9, self.sequence, self.acknowledged)
        rest = struct.pack(">BBHHH", offset, self.flags, self.window, checksum, 0)
        return ports + rest + self.options + self.payload


def payload(number: int, size: int) -> bytes:
    """Return some bytes that depend on both."""
    return random.Random(number).randbytes(size)


def burst(first: FlowFrame, sizes: Sequence[int], *, numbered: bool = False) -> list[FlowFrame]:
    """Return a flow's next frames; TCP sequence numbers (and, if numbered, IPv4 ones) go on."""
    frames: list[FlowFrame] = []
    for index, size in enumerate(sizes):
        frames.append(
            replace(
                first,
                payload=payload(index + first.sequence, size),
                sequence=(first.sequence + sum(sizes[:index])) % 2**32,
                identification=(first.identification + index * numbered) % 2**16,
            )
        )
    return frames
