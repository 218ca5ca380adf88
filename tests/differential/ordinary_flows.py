# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Random flows of UDP and TCP between hosts, cut at random into super-frames.

They are routed, find no route, expire, are taken for forged results, or go to the controller.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

from differential.super_frames import CHECKSUM_AT, TCP, UDP, Arrival, Headers
from flow_frames import ACK, CWR, ECE, FIN, PSH, TAG, ones_sum
from packet_frames import DONT_FRAGMENT, ETHERTYPE_IPV4, SWITCH_ADDRESS, SWITCH_MAC, ethernet
from packet_target import PORTS
from switchfold.hostlib.slots.wire import UDP_PORT

SUPER_FRAME_MAX = 40
"""Datagrams in a super-frame."""
HOSTS = 0x0A00_0100
"""10.0.1.port: addresses for ordinary traffic."""
NO_ROUTE = 0x0A00_0900
ETHERTYPE_IPV6 = 0x86DD
PAYLOAD_SIZES = (1, 40, 200, 701, 1000, 1352, 1400)
IPV4_BITS = ((1, 1), (1, 8), (5, 1), (6, 0x40), (8, 1))
"""Offset of a byte and a bit of it: ECN, DSCP, identification, DF, TTL."""
UDP_BITS = ((1, 1), (3, 1))
TCP_BITS = (*UDP_BITS, (7, 1), (11, 1), (13, PSH), (13, ECE), (15, 1), (-1, 1))
"""Ports; numbers of sequence and acknowledgement, flags, window, options or the urgent pointer."""


def with_sum_of_ones(payload: bytes, checksum: bytes) -> bytes:
    """Change the last word of a payload that has this checksum so that the computed one is 0."""
    return payload[:-2] + ones_sum(payload[-2:] + checksum).to_bytes(2, "big")


def sent_as(rng: random.Random, headers: Headers, payloads: Sequence[bytes]) -> Arrival:
    """Leave the checksum of a single frame to others, too, or complete, omit or damage it."""
    draw = rng.random()
    arrival = headers.carry(payloads, needs_checksum=draw < 0.5)
    if len(payloads) > 1 or draw < 0.8 or headers.protocol != UDP:
        return arrival
    at = len(headers.ethernet) + len(headers.network) + CHECKSUM_AT[UDP]
    checksum = b"\0\0" if draw < 0.87 else rng.randbytes(2)
    return replace(arrival, frame=arrival.frame[:at] + checksum + arrival.frame[at + 2 :])


def ipv4_header(rng: random.Random, protocol: int, src: int, dst: int) -> bytes:
    """Return a header with random fields that lawful senders choose; without lengths."""
    has_number = rng.random() < 0.5
    identification = rng.randrange(1 << 16) if has_number else 0
    fragment = DONT_FRAGMENT if not has_number or rng.random() < 0.5 else 0
    ttl = 17 if dst == SWITCH_ADDRESS else rng.choice((64, 64, 64, 64, 64, 64, 64, 17, 2, 1))
    fields = (0x45, rng.choice((0, 0, 1, 2, 3, 0xB8)), 0, identification, fragment)
    return struct.pack(">BBHHHBBHII", *fields, ttl, protocol, 0, src, dst)


def altered_headers(headers: Headers) -> list[Headers]:
    """Return the headers of IPv4 with one bit altered, each in one that forbids to join."""
    transport_bits = UDP_BITS if headers.protocol == UDP else TCP_BITS
    network = [replace(headers, network=_flipped(headers.network, *place)) for place in IPV4_BITS]
    return network + [
        replace(headers, transport=_flipped(headers.transport, *place)) for place in transport_bits
    ]


def _flipped(data: bytes, at: int, bit: int) -> bytes:
    flipped = bytearray(data)
    flipped[at] ^= bit
    return bytes(flipped)


def next_headers(headers: Headers, sizes: Sequence[int]) -> Headers:
    """Return the headers of the datagrams behind those of these sizes."""
    network, transport = bytearray(headers.network), bytearray(headers.transport)
    if not headers.is_ipv6:
        identification, fragment = struct.unpack_from(">HH", network, 4)
        if identification or not fragment:
            struct.pack_into(">H", network, 4, (identification + len(sizes)) & 0xFFFF)
    if headers.protocol == TCP:
        (sequence,) = struct.unpack_from(">I", transport, 4)
        struct.pack_into(">I", transport, 4, (sequence + sum(sizes)) & 0xFFFFFFFF)
    return replace(headers, network=bytes(network), transport=bytes(transport))


@dataclass
class Flow:
    """Ordinary traffic between two hosts; identifications and sequence numbers go on."""

    port: int
    headers: Headers
    sizes: int
    """Bytes of each datagram but the last of a super-frame."""


class OrdinaryFlows:
    """Flows that go on where their last datagrams ended."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._flow: Flow | None = None

    def next_arrivals(self) -> list[tuple[int, Arrival]]:
        """Return some super-frames and frames of a flow, the last one's or a new one."""
        rng = self._rng
        flow = self._flow
        if flow is None or rng.random() < 0.7:
            flow = self._flow = self._new_flow()
        arrivals: list[tuple[int, Arrival]] = []
        for _ in range(rng.randint(2, 7)):
            sizes = [flow.sizes] * rng.choice((1, 1, 3, rng.randint(1, SUPER_FRAME_MAX)))
            if rng.random() < 0.4:
                sizes[-1] = rng.randint(1, flow.sizes)
            payloads = [self._payload(flow.headers, size) for size in sizes]
            arrivals.append((flow.port, sent_as(rng, flow.headers, payloads)))
            flow.headers = next_headers(flow.headers, sizes)
            if rng.random() < 0.25 and not flow.headers.is_ipv6:
                flow.headers = self._altered(flow.headers)
        return arrivals

    def _payload(self, headers: Headers, size: int) -> bytes:
        """Return random bytes; now and then, the computed checksum of their UDP datagram is 0."""
        payload = self._rng.randbytes(size)
        if size % 2 or headers.protocol != UDP or self._rng.random() < 0.7:
            return payload
        frame = headers.carry([payload], needs_checksum=False).frame
        at = len(headers.ethernet) + len(headers.network) + CHECKSUM_AT[UDP]
        return with_sum_of_ones(payload, frame[at : at + 2])

    def barely_unlike(self) -> list[tuple[int, Arrival]]:
        """Return pairs of super-frames that would be one but for a single bit, size or checksum."""
        port, size = PORTS[0], PAYLOAD_SIZES[2]
        link = ethernet(SWITCH_MAC, 0x0200_0000_0010, ETHERTYPE_IPV4)
        arrivals: list[Arrival] = []
        for protocol, transport in (
            (UDP, struct.pack(">HHHH", 4000, 9, 0, 0)),
            (TCP, struct.pack(">HHIIBBHHH", 4000, 9, 1000, 5, 5 << 4, ACK, 99, 0, 0)),
        ):
            fields = (0x45, 2, 0, 1000, 0, 64, protocol, 0, HOSTS + port, HOSTS + PORTS[1])
            first = Headers(link, struct.pack(">BBHHHBBHII", *fields), transport)
            for last in (size, size // 2):
                sizes = [size, size, last]
                then = next_headers(first, sizes)
                for second in (then, *altered_headers(then)):
                    for headers in (first, second):
                        arrivals.append(
                            headers.carry([self._rng.randbytes(count) for count in sizes])
                        )
            damaged = first.carry([bytes(size)], needs_checksum=False)
            arrivals.append(replace(damaged, frame=_flipped(damaged.frame, -1, 1)))
            arrivals.append(next_headers(first, [size]).carry([bytes(size)] * 3))
            many = [PAYLOAD_SIZES[-1]] * SUPER_FRAME_MAX
            for headers in (first, next_headers(first, many)):  # together more than IP carries
                arrivals.append(headers.carry([bytes(count) for count in many]))
        return [(port, arrival) for arrival in arrivals]

    def _new_flow(self) -> Flow:
        rng = self._rng
        port, to = rng.choice(PORTS), rng.choice(PORTS)
        protocol = rng.choice((UDP, TCP))
        dst = HOSTS + to if rng.random() < 0.9 else NO_ROUTE
        is_ipv6 = rng.random() < 0.15
        ethertype = ETHERTYPE_IPV6 if is_ipv6 else ETHERTYPE_IPV4
        link = ethernet(SWITCH_MAC, 0x0200_0000_0010 + port, ethertype)
        if rng.random() < 0.1:
            link = link[:12] + TAG + link[12:]
        network = ipv4_header(rng, protocol, HOSTS + port, dst)
        if is_ipv6:
            head = struct.pack(">IHBB", 6 << 28 | rng.randrange(4) << 20, 0, protocol, 64)
            network = head + rng.randbytes(32)
        source = rng.choice((4000, 5000, UDP_PORT if rng.random() < 0.1 else 6000))
        transport = struct.pack(">HHHH", source, 9, 0, 0)
        if protocol == TCP:
            flags = ACK | rng.choice((0, 0, PSH, PSH | FIN, ECE, CWR))
            sequence = rng.choice((1000, 2**32 - 900))
            options = rng.choice((b"", b"\1\1\x08\x0a" + rng.randbytes(8)))
            offset = (5 + len(options) // 4) << 4
            fields = (source, 9, sequence, 5, offset, flags, 99, 0, 0)
            transport = struct.pack(">HHIIBBHHH", *fields) + options
        return Flow(port, Headers(link, network, transport), rng.choice(PAYLOAD_SIZES))

    def _altered(self, headers: Headers) -> Headers:
        """Return the headers with another bit, so that what follows is not joined."""
        return self._rng.choice(altered_headers(headers))
