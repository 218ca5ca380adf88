# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames that packet tests send and expect, byte by byte, and the job they belong to."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchfold.hostlib.slots.wire import (
    HEADER_BYTES,
    IPV4_BYTES,
    UDP_BYTES,
    UDP_PORT,
    WIRE_VERSION,
    Operation,
    datagram_dtype,
)

SWITCH_MAC = 0x0200_0000_00FF
SWITCH_ADDRESS = 0x0A00_00FE
CPU_PORT = 255
ETHERTYPE_IPV4 = 0x0800
PROTOCOL_UDP = 17
DONT_FRAGMENT = 0x4000
MORE_FRAGMENTS = 0x2000
CONGESTION_EXPERIENCED = 3

Datagram = NDArray[np.void]
"""One datagram: scalar structured array of hostlib.slots.wire.datagram_dtype."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job as the tables hold it: worker w is at port w + 1."""

    job_id: int
    generation: int
    values_per_packet: int
    num_workers: int = 2
    slot_base: int = 8
    slot_count: int = 4
    allow_partial: bool = False
    max_priority: int = 0

    @property
    def multicast_group_id(self) -> int:
        """The job's own group."""
        return self.job_id

    def port(self, worker_id: int) -> int:
        """Return the switch port of a worker."""
        return worker_id + 1

    def mac(self, worker_id: int) -> int:
        """Return the MAC address of a worker."""
        return 0x0200_0000_0001 + worker_id

    def address(self, worker_id: int) -> int:
        """Return the IPv4 address of a worker."""
        return 0x0A00_0001 + worker_id

    def udp_port(self, worker_id: int) -> int:
        """Return the UDP port where a worker receives."""
        return 40001 + worker_id


def internet_checksum(data: bytes) -> int:
    """Return the ones' complement checksum of RFC 1071."""
    words = np.frombuffer(data + b"\0" * (len(data) % 2), ">u2")
    total = int(words.sum(dtype=np.uint64))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ethernet(dst: int, src: int, ethertype: int) -> bytes:
    """Return an Ethernet header."""
    return dst.to_bytes(6, "big") + src.to_bytes(6, "big") + ethertype.to_bytes(2, "big")


def ipv4(  # noqa: PLR0913 - the header's fields
    src: int,
    dst: int,
    payload: bytes,
    *,
    protocol: int = PROTOCOL_UDP,
    ttl: int = 17,
    tos: int = 0,
    identification: int = 0x1234,
    fragment: int = 0,
    options: bytes = b"",
    total_length: int | None = None,
    checksum_error: int = 0,
) -> bytes:
    """Return an IPv4 packet; `fragment` holds the flags and the offset."""
    if total_length is None:
        total_length = IPV4_BYTES + len(options) + len(payload)
    header = struct.pack(
        ">BBHHHBBHII",
        0x45 + len(options) // 4,
        tos,
        total_length,
        identification,
        fragment,
        ttl,
        protocol,
        0,
        src,
        dst,
    )
    checksum = internet_checksum(header + options) ^ checksum_error
    return header[:10] + checksum.to_bytes(2, "big") + header[12:] + options + payload


def udp(  # noqa: PLR0913 - the header's fields
    src: int,
    dst: int,
    src_port: int,
    dst_port: int,
    payload: bytes,
    *,
    length: int | None = None,
    checksum: int | None = None,
    checksum_error: int = 0,
) -> bytes:
    """Return a UDP datagram; the checksum is computed where none is given."""
    if length is None:
        length = UDP_BYTES + len(payload)
    head = struct.pack(">HHH", src_port, dst_port, length)
    if checksum is None:
        pseudo = struct.pack(">IIBBH", src, dst, 0, PROTOCOL_UDP, length)
        checksum = internet_checksum(pseudo + head + b"\0\0" + payload) ^ checksum_error
    return head + checksum.to_bytes(2, "big") + payload


def contribution(job: Job, worker_id: int, values: Any = 0, **fields: int) -> Datagram:
    """Return a worker's AGGREGATE_ADD of chunk 0 to slot 0 in round 1, changed by the fields."""
    datagram = np.zeros((), datagram_dtype(job.values_per_packet))
    header = datagram["header"]
    defaults = {
        "version": WIRE_VERSION,
        "operation": Operation.AGGREGATE_ADD,
        "job_id": job.job_id,
        "worker_id": worker_id,
        "generation": job.generation,
        "round": 1,
        "range_end": job.values_per_packet,
        "worker_bitmap": 1 << worker_id,
        "num_contributors": 1,
    }
    for name, value in (defaults | fields).items():
        header[name] = value
    datagram["values"] = values
    return datagram


def change(datagram: Datagram, values: Any = None, **fields: int) -> Datagram:
    """Return a copy of a datagram with other header fields or values."""
    changed = datagram.copy()
    for name, value in fields.items():
        changed["header"][name] = value
    if values is not None:
        changed["values"] = values
    return changed


def to_switch(
    job: Job,
    worker_id: int,
    datagram: Datagram | bytes,
    *,
    ip: dict[str, Any] | None = None,
    udp_fields: dict[str, Any] | None = None,
) -> bytes:
    """Return the frame in which a worker sends a datagram."""
    src = job.address(worker_id)
    payload = datagram if isinstance(datagram, bytes) else datagram.tobytes()
    segment = udp(
        src, SWITCH_ADDRESS, job.udp_port(worker_id), UDP_PORT, payload, **(udp_fields or {})
    )
    packet = ipv4(src, SWITCH_ADDRESS, segment, **(ip or {}))
    return ethernet(SWITCH_MAC, job.mac(worker_id), ETHERTYPE_IPV4) + packet


def to_worker(job: Job, worker_id: int, datagram: Datagram, *, tos: int = 0) -> bytes:
    """Return the frame in which the switch sends a datagram to a worker."""
    dst = job.address(worker_id)
    segment = udp(SWITCH_ADDRESS, dst, UDP_PORT, job.udp_port(worker_id), datagram.tobytes())
    packet = ipv4(
        SWITCH_ADDRESS, dst, segment, ttl=64, tos=tos, identification=0, fragment=DONT_FRAGMENT
    )
    return ethernet(job.mac(worker_id), SWITCH_MAC, ETHERTYPE_IPV4) + packet


def to_all_workers(job: Job, datagram: Datagram, *, tos: int = 0) -> list[tuple[int, bytes]]:
    """Return the frames of a multicast, as (port, frame)."""
    return [
        (job.port(worker_id), to_worker(job, worker_id, datagram, tos=tos))
        for worker_id in range(job.num_workers)
    ]


def describe(frame: bytes) -> str:
    """Return a frame's bytes, with the Switchfold header's fields where it has one."""
    start = 14 + IPV4_BYTES + UDP_BYTES
    text = frame[:start].hex(" ", 2)
    if len(frame) >= start + HEADER_BYTES and UDP_PORT.to_bytes(2, "big") in frame[34:38]:
        header = np.frombuffer(frame[start : start + HEADER_BYTES], datagram_dtype(0)["header"])[0]
        fields = ", ".join(f"{name}={header[name]}" for name in header.dtype.names)
        return f"{text} | {fields} | {frame[start + HEADER_BYTES :][:32].hex(' ', 4)}"
    return f"{text} {frame[start:][:64].hex(' ', 2)}"
