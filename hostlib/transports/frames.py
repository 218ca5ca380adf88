# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whole Ethernet frames around datagrams, built and checked for whole batches."""

from __future__ import annotations

import socket
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from ..control.view import Endpoint
from ..errors import AddressUnreachableError
from ..slots.wire import ETHERNET_BYTES, IPV4_BYTES, UDP_BYTES
from .base import Datagrams

ETHERTYPE_IPV4 = 0x0800
PROTOCOL_UDP = 17
TTL = 64
ECN_CAPABLE = 2
"""ECT(0) of RFC 3168: switches may mark these packets."""
LAYERS_BYTES = ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES
"""Bytes in front of the datagram."""
UDP_CHECKSUM = slice(LAYERS_BYTES - 2, LAYERS_BYTES)

_ETHERNET_DTYPE = np.dtype([("destination", "u1", 6), ("source", "u1", 6), ("ethertype", ">u2")])
_IPV4_DTYPE = np.dtype(
    [
        ("version_ihl", "u1"),
        ("tos", "u1"),
        ("total_length", ">u2"),
        ("identification", ">u2"),
        ("fragment", ">u2"),
        ("ttl", "u1"),
        ("protocol", "u1"),
        ("checksum", ">u2"),
        ("source", "u1", 4),
        ("destination", "u1", 4),
    ]
)
_UDP_DTYPE = np.dtype(
    [("source", ">u2"), ("destination", ">u2"), ("length", ">u2"), ("checksum", ">u2")]
)
LAYERS_DTYPE = np.dtype([("ethernet", _ETHERNET_DTYPE), ("ipv4", _IPV4_DTYPE), ("udp", _UDP_DTYPE)])
"""Ethernet, IPv4 without options and UDP."""

Frames = NDArray[np.uint8]
"""Frames without check sequence, one per row, shape (count, at least frame bytes)."""


def parse_mac(mac: str) -> NDArray[np.uint8]:
    """Return the six bytes of "02:00:00:00:00:01"; raises AddressUnreachableError."""
    parts = mac.split(":")
    try:
        if len(parts) == 6:
            return np.array([int(part, 16) for part in parts], np.uint8)
    except (ValueError, OverflowError):
        pass
    raise AddressUnreachableError(f"{mac!r} is no MAC address; write six hexadecimal bytes")


def parse_ipv4(address: str) -> NDArray[np.uint8]:
    """Return the four bytes of a dotted IPv4 address; raises AddressUnreachableError."""
    try:
        return np.frombuffer(socket.inet_pton(socket.AF_INET, address), np.uint8)
    except OSError:
        raise AddressUnreachableError(
            f"{address!r} is no IPv4 address; write it with dots, names are not looked up"
        ) from None


def fold_checksum(sums: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Fold sums of words to 16 bits with end-around carry."""
    sums = (sums >> np.uint64(32)) + (sums & np.uint64(0xFFFFFFFF))
    for _ in range(3):
        sums = (sums >> np.uint64(16)) + (sums & np.uint64(0xFFFF))
    return sums


def ipv4_checksum(header: NDArray[np.uint8]) -> int:
    """Return the checksum of an IPv4 header whose checksum field is zero."""
    total = np.array([header.view(">u2").sum(dtype=np.uint64)], np.uint64)
    return int(~fold_checksum(total)[0] & np.uint64(0xFFFF))


class FrameCodec:
    """Builds frames from `local` to `remote` and takes datagrams out of frames back.

    A one's complement sum does not depend on byte order, so sums run over native words.
    """

    def __init__(self, local: Endpoint, remote: Endpoint, datagram_bytes: int) -> None:
        self.datagram_bytes = datagram_bytes
        self.frame_bytes = LAYERS_BYTES + datagram_bytes
        self._template = _layers(local, remote, datagram_bytes)
        self._pseudo_sum = _pseudo_header_sum(self._template)
        # What comes back: addresses and ports the other way round.
        self._expected = _layers(remote, local, datagram_bytes)
        self._mask = _checked_bytes()

    def wrap(self, datagrams: Datagrams, frames: Frames) -> None:
        """Write (count, frame_bytes) frames around the datagrams."""
        frames[:, :LAYERS_BYTES] = self._template
        frames[:, LAYERS_BYTES : self.frame_bytes] = datagrams
        sums = datagrams.view(np.uint32).sum(axis=1, dtype=np.uint64) + self._pseudo_sum
        checksums = (~fold_checksum(sums)).astype(np.uint16)
        checksums[checksums == 0] = 0xFFFF
        frames[:, UDP_CHECKSUM] = checksums[:, None].view(np.uint8)

    def unwrap(
        self, frames: Frames, lengths: NDArray[np.int32], out: Datagrams, counters: Counter[str]
    ) -> int:
        """Copy the datagrams of good frames to `out`; return how many.

        Frames of other traffic, of a wrong length or with a wrong checksum are counted.
        """
        layers = frames[:, :LAYERS_BYTES]
        is_ours = ((layers ^ self._expected) & self._mask == 0).all(axis=1)
        is_good = is_ours & (lengths == self.frame_bytes)
        if not is_good.all():
            counters["other_traffic"] += int(np.count_nonzero(~is_ours))
            counters["length"] += int(np.count_nonzero(is_ours & ~is_good))
        count = int(np.count_nonzero(is_good))
        if count == len(frames):
            out[:count] = frames[:, LAYERS_BYTES : self.frame_bytes]
            checksums = frames[:, UDP_CHECKSUM]
        else:
            out[:count] = frames[is_good, LAYERS_BYTES : self.frame_bytes]
            checksums = frames[is_good, UDP_CHECKSUM]
        stated = np.ascontiguousarray(checksums).view(np.uint16)[:, 0]
        sums = out[:count].view(np.uint32).sum(axis=1, dtype=np.uint64) + self._pseudo_sum
        is_intact = (fold_checksum(sums + stated) == 0xFFFF) | (stated == 0)
        if is_intact.all():
            return count
        counters["checksum"] += int(np.count_nonzero(~is_intact))
        intact = np.flatnonzero(is_intact)
        out[: len(intact)] = out[intact]
        return len(intact)


def _layers(source: Endpoint, destination: Endpoint, datagram_bytes: int) -> NDArray[np.uint8]:
    """Return the 42 bytes in front of a datagram, UDP checksum zero."""
    layers = np.zeros(1, LAYERS_DTYPE)
    ethernet, ipv4, udp = layers["ethernet"], layers["ipv4"], layers["udp"]
    ethernet["destination"] = parse_mac(destination.mac)
    ethernet["source"] = parse_mac(source.mac)
    ethernet["ethertype"] = ETHERTYPE_IPV4
    ipv4["version_ihl"] = 0x45
    ipv4["tos"] = ECN_CAPABLE
    ipv4["total_length"] = IPV4_BYTES + UDP_BYTES + datagram_bytes
    ipv4["fragment"] = 0x4000  # don't fragment
    ipv4["ttl"] = TTL
    ipv4["protocol"] = PROTOCOL_UDP
    ipv4["source"] = parse_ipv4(source.address)
    ipv4["destination"] = parse_ipv4(destination.address)
    udp["source"] = source.udp_port
    udp["destination"] = destination.udp_port
    udp["length"] = UDP_BYTES + datagram_bytes
    flat = layers.view(np.uint8)
    ipv4["checksum"] = ipv4_checksum(flat[ETHERNET_BYTES : ETHERNET_BYTES + IPV4_BYTES])
    return flat


def _pseudo_header_sum(layers: NDArray[np.uint8]) -> np.uint64:
    """Return the sum of pseudo header and UDP header; the same for both directions."""
    addresses = layers[ETHERNET_BYTES + 12 : ETHERNET_BYTES + IPV4_BYTES].copy()
    udp = layers[ETHERNET_BYTES + IPV4_BYTES :].copy()
    protocol = np.array([0, PROTOCOL_UDP], np.uint8)
    length = udp[4:6]
    words = np.concatenate([addresses, protocol, length, udp]).view(np.uint16)
    return words.sum(dtype=np.uint64)


def _checked_bytes() -> NDArray[np.uint8]:
    """Return the mask of the layers' bytes that a result must have."""
    mask = np.zeros(1, LAYERS_DTYPE)
    mask["ethernet"]["ethertype"] = 0xFFFF
    for field in ("version_ihl", "protocol", "source", "destination"):
        mask["ipv4"][field] = 0xFF
    mask["ipv4"]["total_length"] = 0xFFFF
    mask["ipv4"]["fragment"] = 0x3FFF
    for field in ("source", "destination", "length"):
        mask["udp"][field] = 0xFFFF
    return mask.view(np.uint8)
