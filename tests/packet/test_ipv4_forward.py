# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Ordinary IPv4 traffic on a switch that aggregates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from packet_frames import (
    ETHERTYPE_IPV4,
    MORE_FRAGMENTS,
    SWITCH_ADDRESS,
    SWITCH_MAC,
    Job,
    contribution,
    ethernet,
    ipv4,
    udp,
)
from packet_target import Entry, Target, check_frames
from switchfold.hostlib.slots.wire import UDP_PORT

NETWORK = 0xC0A8_0000
HOST = 0xC0A8_0102
SOURCE = 0xC0A8_0201
SOURCE_MAC = 0x0200_0000_0A01
HOST_MAC = 0x0200_0000_0A02
FORWARDED, NO_ROUTE, TTL_EXPIRED, BAD_IPV4, TRUNCATED, SPOOFED = 0, 1, 2, 3, 6, 7
TCP = 6


def route(address: int, prefix_len: int, port: int, mac: int) -> Entry:
    return Entry(
        table="ipv4_forward",
        match={"dst_address": (address, prefix_len)},
        action="forward",
        params={"port": port, "mac": mac},
    )


@pytest.fixture(autouse=True)
def routes(target: Target) -> Iterator[None]:
    entries = [route(NETWORK, 16, 2, 0x0B), route(HOST, 32, 3, HOST_MAC)]
    target.insert(*entries)
    yield
    target.delete(*entries)


def frame(payload: bytes, *, ttl: int, sent: bool, dst: int = HOST, **ip: Any) -> bytes:
    """Return the frame as a host sends it, or as the switch forwards it to HOST."""
    packet = ipv4(SOURCE, dst, payload, ttl=ttl, **ip)
    if sent:
        return ethernet(SWITCH_MAC, SOURCE_MAC, ETHERTYPE_IPV4) + packet
    return ethernet(HOST_MAC, SWITCH_MAC, ETHERTYPE_IPV4) + packet


def check(
    target: Target, sent: bytes, ordinary_outcome: int, expected: list[tuple[int, bytes]]
) -> None:
    before = target.counters("ordinary_outcomes")
    switchfold = target.counters("outcomes")
    check_frames(target.exchange(1, sent), expected)
    after = target.counters("ordinary_outcomes")
    assert after[ordinary_outcome] == before[ordinary_outcome] + 1
    assert sum(after) == sum(before) + 1
    assert target.counters("outcomes") == switchfold


@pytest.mark.parametrize("payload_bytes", [0, 1, 20, 333, 1480])
@pytest.mark.parametrize("protocol", [1, 6, 17, 89])
def test_ipv4_forward_any_protocol_and_length(
    target: Target, protocol: int, payload_bytes: int
) -> None:
    payload = bytes(index % 251 for index in range(payload_bytes))
    sent = frame(payload, ttl=64, sent=True, protocol=protocol)
    left = frame(payload, ttl=63, sent=False, protocol=protocol)
    check(target, sent, FORWARDED, [(3, left)])


@pytest.mark.parametrize("udp_port", [UDP_PORT - 1, UDP_PORT + 1, 53])
def test_ipv4_forward_other_udp_ports(target: Target, udp_port: int) -> None:
    payload = udp(SOURCE, HOST, 5, udp_port, b"a datagram")
    left = frame(payload, ttl=9, sent=False)
    check(target, frame(payload, ttl=10, sent=True), FORWARDED, [(3, left)])


def test_ipv4_forward_wrong_udp_checksum_is_the_hosts_business(target: Target) -> None:
    payload = udp(SOURCE, HOST, 5, 6, b"damaged", checksum_error=1)
    left = frame(payload, ttl=9, sent=False)
    check(target, frame(payload, ttl=10, sent=True), FORWARDED, [(3, left)])


@pytest.mark.parametrize("identification", [0, 0x1234, 0xFFFF])
@pytest.mark.parametrize("ttl", [2, 3, 128, 255])
def test_ipv4_forward_checksum_update(target: Target, ttl: int, identification: int) -> None:
    sent = frame(b"x", ttl=ttl, sent=True, identification=identification)
    left = frame(b"x", ttl=ttl - 1, sent=False, identification=identification)
    check(target, sent, FORWARDED, [(3, left)])


def test_ipv4_forward_checksum_update_with_every_carry(target: Target) -> None:
    # Identifications whose checksum's high byte is 0xfe or 0xff before the update.
    for identification in range(0, 0x10000, 0x100):
        sent = frame(b"x", ttl=64, sent=True, identification=identification)
        if sent[24] >= 0xFE:
            left = frame(b"x", ttl=63, sent=False, identification=identification)
            check(target, sent, FORWARDED, [(3, left)])


@pytest.mark.parametrize("options", [b"\x01" * 4, b"\x94\x04\0\0" + b"\x01" * 36])
def test_ipv4_forward_options(target: Target, options: bytes) -> None:
    payload, fields = b"with options", {"options": options, "protocol": TCP}
    left = frame(payload, ttl=63, sent=False, **fields)
    check(target, frame(payload, ttl=64, sent=True, **fields), FORWARDED, [(3, left)])


@pytest.mark.parametrize("fragment", [0, MORE_FRAGMENTS])
def test_ipv4_forward_refuses_what_looks_like_a_result(target: Target, fragment: int) -> None:
    payload = udp(SOURCE, HOST, UDP_PORT, 40000, b"spoofed")
    check(target, frame(payload, ttl=64, sent=True, fragment=fragment), SPOOFED, [])


@pytest.mark.parametrize("udp_port", [53, UDP_PORT])
def test_ipv4_forward_refuses_ports_behind_options(target: Target, udp_port: int) -> None:
    payload = udp(SOURCE, HOST, udp_port, 40000, b"with options")
    check(target, frame(payload, ttl=64, sent=True, options=b"\x01" * 4), SPOOFED, [])


@pytest.mark.parametrize("fragment", [MORE_FRAGMENTS | 100, 100, 0x1FFF])
def test_ipv4_forward_later_fragments(target: Target, fragment: int) -> None:
    job = Job(job_id=1, generation=1, values_per_packet=target.values_per_packet)
    payload = udp(SOURCE, HOST, 7, UDP_PORT, contribution(job, 0).tobytes())
    left = frame(payload, ttl=63, sent=False, fragment=fragment)
    sent = frame(payload, ttl=64, sent=True, fragment=fragment)
    check(target, sent, FORWARDED, [(3, left)])


def test_ipv4_forward_longest_prefix(target: Target) -> None:
    sent = frame(b"x", ttl=64, sent=True, dst=HOST + 1)
    left = ethernet(0x0B, SWITCH_MAC, ETHERTYPE_IPV4) + ipv4(SOURCE, HOST + 1, b"x", ttl=63)
    check(target, sent, FORWARDED, [(2, left)])


@pytest.mark.parametrize("ttl", [0, 1])
def test_ipv4_forward_expired_ttl(target: Target, ttl: int) -> None:
    check(target, frame(b"x", ttl=ttl, sent=True), TTL_EXPIRED, [])


def test_ipv4_forward_no_route(target: Target) -> None:
    check(target, frame(b"x", ttl=64, sent=True, dst=SWITCH_ADDRESS), NO_ROUTE, [])


def test_ipv4_forward_wrong_header_checksum(target: Target) -> None:
    check(target, frame(b"x", ttl=64, sent=True, checksum_error=1), BAD_IPV4, [])


@pytest.mark.parametrize("first_byte", [0x44, 0x55, 0x00])
def test_ipv4_forward_not_an_ipv4_header(target: Target, first_byte: int) -> None:
    sent = bytearray(frame(b"x" * 20, ttl=64, sent=True))
    sent[14] = first_byte
    check(target, bytes(sent), BAD_IPV4, [])


def test_ipv4_forward_header_cut(target: Target) -> None:
    check(target, frame(b"", ttl=64, sent=True)[:-1], TRUNCATED, [])
