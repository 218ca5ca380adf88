# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Match kinds, constant entries, priorities, direct counters, wide keys, checksums."""

import ctypes
from collections.abc import Iterator

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

from pipeline_driver import PROGRAMS, Driver
from switchfold.softswitch.switch.pipeline import (
    P_BAD_ARGUMENT,
    P_EXISTS,
    P_FULL,
    P_NOT_FOUND,
    P_OK,
    P_UNSUPPORTED,
)

MAC = 0x0A0000000001


@pytest.fixture
def driver() -> Iterator[Driver]:
    held = Driver(PROGRAMS / "tables.json")
    yield held
    held.close()


def address(text: str) -> int:
    return int.from_bytes(bytes(int(part) for part in text.split(".")), "big")


def udp(dst: str = "10.1.2.3", src: str = "10.9.9.9", dport: int = 53, tos: int = 0) -> bytes:
    packet = Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02")
    return bytes(packet / IP(src=src, dst=dst, tos=tos, ttl=9) / UDP(sport=7, dport=dport) / b"abc")


def parsed(frame: bytes | None) -> Packet:
    assert frame is not None
    return Ether(frame)


def test_route_takes_the_longest_prefix(driver: Driver) -> None:
    driver.insert("route", [(0, 0)], "forward", [1, MAC])
    driver.insert("route", [(address("10.0.0.0"), 8)], "forward", [2, MAC])
    driver.insert("route", [(address("10.1.2.0"), 24)], "forward", [3, MAC])
    driver.insert("route", [(address("10.1.2.3"), 32)], "drop_packet", [])
    assert driver.process(udp("11.0.0.1")).out.egress_spec == 1
    assert driver.process(udp("10.2.0.1")).out.egress_spec == 2
    assert driver.process(udp("10.1.2.4")).out.egress_spec == 3
    assert driver.process(udp("10.1.2.3")).frame is None


def test_forward_rewrites_and_updates_the_checksum(driver: Driver) -> None:
    driver.insert("route", [(address("10.0.0.0"), 8)], "forward", [2, MAC])
    packet = parsed(driver.process(udp()).frame)
    assert (packet.src, packet.dst) == ("02:00:00:00:00:01", "0a:00:00:00:00:01")
    assert packet[IP].ttl == 8
    stated = packet[IP].chksum
    del packet[IP].chksum
    assert stated == Ether(bytes(packet))[IP].chksum
    assert bytes(packet[Raw]) == b"abc"


def test_wrong_checksum_is_seen(driver: Driver) -> None:
    driver.insert("route", [(0, 0)], "forward", [1, MAC])
    frame = bytearray(udp())
    frame[24] ^= 1
    assert driver.process(bytes(frame)).frame is None


def test_default_drops_and_direct_counters_count(driver: Driver) -> None:
    handle = driver.insert("route", [(address("10.0.0.0"), 8)], "forward", [2, MAC])
    frame = udp()
    for _ in range(3):
        driver.process(frame)
    driver.process(udp("11.0.0.1"))
    assert driver.direct_counter("route", handle) == (3, 3 * len(frame))
    assert driver.direct_counter("route") == (1, len(frame))


def test_drop_in_egress(driver: Driver) -> None:
    driver.insert("route", [(0, 0)], "forward", [13, MAC])
    assert driver.process(udp()).frame is None


def test_filter_by_priority_ternary_and_range(driver: Driver) -> None:
    driver.insert("route", [(0, 0)], "forward", [1, MAC])
    net, mask = address("10.9.0.0"), 0xFFFF0000
    driver.insert("filter", [(net, mask), (0, 1023), 1], "drop_packet", [], priority=10)
    driver.insert("filter", [(net, mask), (50, 60), 1], "replicate", [77], priority=20)
    assert driver.process(udp(dport=80)).frame is None
    assert driver.ingress(udp(dport=53)).mcast_grp == 77
    assert driver.ingress(udp(dport=60)).mcast_grp == 77
    assert driver.process(udp(dport=61)).frame is None
    assert driver.process(udp(dport=1024)).frame is not None
    assert driver.process(udp(dport=80, src="10.8.0.1")).frame is not None


def test_action_run_switch(driver: Driver) -> None:
    driver.insert("route", [(0, 0)], "forward", [1, MAC])
    driver.insert("classify", [(0x10, 0xF0), (0, 0)], "set_mark", [0x2C], priority=1)
    driver.insert("classify", [(0, 0), (6, 255)], "NoAction", [], priority=2)
    assert parsed(driver.process(udp(tos=0x14)).frame)[IP].tos == 0x2C
    assert parsed(driver.process(udp(tos=0x24)).frame)[IP].tos == 0x24
    tcp = bytes(Ether() / IP(src="1.2.3.4", dst="5.6.7.8", tos=0x10) / TCP())
    assert parsed(driver.process(tcp).frame)[IP].tos == 0x10


def test_constant_entries_in_order(driver: Driver) -> None:
    for ethertype, mark in ((0x0806, 6), (0x0842, 4), (0x1234, 9)):
        frame = bytes(Ether(src="02:00:00:00:00:02", type=ethertype) / Raw(bytes(ARP())))
        packet = parsed(driver.process(frame).frame)
        assert packet.src == f"02:00:00:00:00:{mark:02x}"
    table = driver.position("fixed")
    entry = driver.entry("fixed", [(1, 0xFFFF)], "set_mark", [1], 9)
    assert driver.ops.table_insert(driver.state, table, entry, ctypes.c_uint64()) == P_UNSUPPORTED
    assert driver.ops.table_clear(driver.state, table) == P_UNSUPPORTED
    assert driver.ops.table_set_default(driver.state, table, entry) == P_UNSUPPORTED


def test_keys_of_128_bits(driver: Driver) -> None:
    base = 0x20010DB8 << 96
    driver.insert("route6", [(base, 32)], "forward6", [4, base | 0xABCD])
    driver.insert("route6", [(base | 1 << 60, 68)], "forward6", [5, base | 0xABCE])
    driver.insert("exact6", [base | 0x77, 64], "forward6", [6, 1])

    def send(dst: str, src: str = "2001:db8::1") -> Packet:
        outcome = driver.process(bytes(Ether() / IPv6(src=src, dst=dst) / b"xyz"))
        packet = parsed(outcome.frame)
        packet.port = outcome.out.egress_spec
        return packet

    first = send("2001:db8::5")
    assert (first.port, first[IPv6].src) == (4, "2001:db8::abcd")
    assert send("2001:db8:0:0:1000::5").port == 5
    assert send("2001:db8:0:0:2000::5").port == 4
    assert send("::9", src="2001:db8::77").port == 6
    assert driver.process(bytes(Ether() / IPv6(dst="2002::1"))).frame is None


def test_control_operations_and_their_errors(driver: Driver) -> None:
    ops, state, table = driver.ops, driver.state, driver.position("route")
    handle = ctypes.c_uint64()
    one = driver.entry("route", [(address("10.0.0.0"), 8)], "forward", [1, MAC])
    assert ops.table_modify(state, table, one) == P_NOT_FOUND
    assert ops.table_delete(state, table, one) == P_NOT_FOUND
    assert ops.table_insert(state, table, one, handle) == P_OK
    assert ops.table_insert(state, table, one, handle) == P_EXISTS
    two = driver.entry("route", [(address("10.0.0.0"), 8)], "forward", [2, MAC])
    assert ops.table_modify(state, table, two) == P_OK
    assert driver.ingress(udp()).egress_spec == 2
    assert ops.table_size(state, table) == 1
    two.prefix_len = 33
    assert ops.table_insert(state, table, two, handle) == P_BAD_ARGUMENT
    two.prefix_len = 9
    two.params_bytes = 1
    assert ops.table_insert(state, table, two, handle) == P_BAD_ARGUMENT
    two.params_bytes = one.params_bytes
    two.action_id = 9999
    assert ops.table_insert(state, table, two, handle) == P_BAD_ARGUMENT
    assert ops.table_insert(state, 9999, one, handle) == P_BAD_ARGUMENT
    assert ops.table_delete(state, table, one) == P_OK
    assert driver.process(udp()).frame is None
    ternary = driver.position("filter")
    upside_down = driver.entry("filter", [(0, 0), (9, 8), 1], "NoAction", [], 1)
    assert ops.table_insert(state, ternary, upside_down, handle) == P_BAD_ARGUMENT
    for index in range(64):
        driver.insert("exact6", [index, 1], "NoAction", [])
    extra = driver.entry("exact6", [64, 1], "NoAction", [])
    assert ops.table_insert(state, driver.position("exact6"), extra, handle) == P_FULL
    assert ops.table_clear(state, driver.position("exact6")) == P_OK
    assert ops.table_insert(state, driver.position("exact6"), extra, handle) == P_OK


def test_set_default(driver: Driver) -> None:
    table = driver.position("route")
    entry = driver.entry("route", [(0, 0)], "forward", [6, MAC])
    result = driver.ops.table_set_default(driver.state, table, entry)
    assert result == P_OK
    assert driver.ingress(udp()).egress_spec == 6


def test_many_inserts_and_deletes_agree_with_a_dict(driver: Driver) -> None:
    ops, state, table = driver.ops, driver.state, driver.position("route")
    held: dict[tuple[int, int], int] = {}
    handle = ctypes.c_uint64()
    seed = 1
    for _ in range(4000):
        seed = (seed * 6364136223846793005 + 1442695040888963407) & (1 << 64) - 1
        length = 24 + (seed >> 60) % 9
        value = (10 << 24 | (seed >> 33) & 0x1FF) & ((1 << 32) - (1 << 32 - length))
        port = (seed >> 20) % 500
        entry = driver.entry("route", [(value, length)], "forward", [port, MAC])
        if (value, length) in held:
            assert ops.table_delete(state, table, entry) == P_OK
            del held[value, length]
        else:
            assert ops.table_insert(state, table, entry, handle) == P_OK
            held[value, length] = port
    assert ops.table_size(state, table) == len(held)
    for last in range(0, 512, 7):
        dst = 10 << 24 | last
        matches = [(n, port) for (v, n), port in held.items() if v >> 32 - n == dst >> 32 - n]
        wanted = max(matches)[1] if matches else driver.ops.drop_port
        text = ".".join(str(byte) for byte in dst.to_bytes(4, "big"))
        assert driver.ingress(udp(text)).egress_spec == wanted
