# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Meters at times that the test sets, direct counters by type, idle entries."""

import ctypes
from collections.abc import Iterator
from fractions import Fraction

import pytest

from pipeline_driver import PROGRAMS, Driver
from switchfold.softswitch.switch.pipeline import (
    P_BAD_ARGUMENT,
    P_NOT_FOUND,
    P_OK,
    P_UNSUPPORTED,
    MeterRatesT,
    TableEntry,
)

GREEN, YELLOW, RED = range(3)
BY_PACKETS, BY_BYTES = "by_packets", "by_bytes"


@pytest.fixture
def driver() -> Iterator[Driver]:
    held = Driver(PROGRAMS / "meters.json")
    yield held
    held.close()


def send(driver: Driver, now_us: int, key: int = 0, at: int = 0, size: int = 9) -> bytes:
    """Return the colours: of packets, of bytes, of the entry, of the second table's entry."""
    frame = (bytes((key,)) + at.to_bytes(4, "big")).ljust(size, b"\0")
    driver.ingress(frame, ingress_global_timestamp=now_us)
    return driver.deparse()[5:9]


def array(driver: Driver, name: str) -> int:
    return next(m.position for m in driver.model.meters if m.name.endswith(f".{name}"))


def configure(driver: Driver, name: str, index: int, rates: tuple[int, int, int, int]) -> int:
    return driver.ops.meter_write(driver.state, array(driver, name), index, MeterRatesT(*rates, 1))


class Reference:
    """RFC 2698, colour-blind, in exact fractions."""

    def __init__(self, cir: int, cburst: int, pir: int, pburst: int) -> None:
        self.rates, self.bursts = (pir, cir), (pburst, cburst)
        self.tokens = [Fraction(pburst), Fraction(cburst)]
        self.totals = [0, 0]

    def execute(self, now_us: int, units: int) -> int:
        for index, colour in ((0, RED), (1, YELLOW)):
            total = now_us * self.rates[index] // 1_000_000
            fresh = total - self.totals[index]
            self.tokens[index] = min(self.tokens[index] + fresh, Fraction(self.bursts[index]))
            self.totals[index] = total
            if self.tokens[index] < units:
                return colour
            self.tokens[index] -= units
        return GREEN


def test_unconfigured_meters_are_green(driver: Driver) -> None:
    for _ in range(50):
        assert send(driver, 0)[:2] == bytes((GREEN, GREEN))


def test_index_out_of_range_changes_nothing(driver: Driver) -> None:
    assert configure(driver, BY_PACKETS, 15, (0, 0, 0, 0)) == P_OK
    assert send(driver, 0, at=15)[0] == RED
    assert send(driver, 0, at=16)[:2] == bytes((0, GREEN))
    assert send(driver, 0, at=1_000_000)[:2] == bytes((0, 0))
    assert configure(driver, BY_PACKETS, 16, (1, 1, 1, 1)) == P_NOT_FOUND
    assert configure(driver, BY_BYTES, 999_999, (1, 1, 1, 1)) == P_OK


def test_packets_by_rate(driver: Driver) -> None:
    assert configure(driver, BY_PACKETS, 3, (10, 2, 20, 4)) == P_OK
    colours = [send(driver, 0, at=3)[0] for _ in range(6)]
    assert colours == [GREEN, GREEN, YELLOW, YELLOW, RED, RED]
    # After 100 ms: one committed token, two at the peak rate.
    colours = [send(driver, 100_000, at=3)[0] for _ in range(3)]
    assert colours == [GREEN, YELLOW, RED]
    assert send(driver, 0, at=4)[0] == GREEN
    assert driver.ops.meter_write(driver.state, array(driver, BY_PACKETS), 3, None) == P_OK
    assert send(driver, 100_000, at=3)[0] == GREEN


@pytest.mark.parametrize("seed", range(4))
def test_bytes_by_rate_agree_with_exact_arithmetic(driver: Driver, seed: int) -> None:
    state = seed * 977 + 1
    rates = [(1000, 200, 3000, 500), (7, 64, 8, 100), (1234, 1500, 2987, 3000)][seed % 3]
    assert configure(driver, BY_BYTES, 5, rates) == P_OK
    reference = Reference(*rates)
    now = 1_000_000
    seen: set[int] = set()
    for _ in range(500):
        state = (state * 6364136223846793005 + 1442695040888963407) & (1 << 64) - 1
        now += (state >> 33) % 40_000
        size = 9 + (state >> 20) % 120
        colour = send(driver, now, at=5, size=size)[1]
        assert colour == reference.execute(now, size)
        seen.add(colour)
    assert len(seen) >= 2


def test_a_packet_older_than_the_last_adds_no_tokens(driver: Driver) -> None:
    assert configure(driver, BY_PACKETS, 0, (1, 1, 1, 1)) == P_OK
    assert send(driver, 5_000_000)[0] == GREEN
    assert send(driver, 1_000_000)[0] == RED
    assert send(driver, 5_999_999)[0] == RED
    assert send(driver, 6_000_000)[0] == GREEN


def test_committed_rate_must_not_exceed_the_peak(driver: Driver) -> None:
    assert configure(driver, BY_PACKETS, 0, (2, 1, 1, 1)) == P_BAD_ARGUMENT
    held = MeterRatesT()
    assert driver.ops.meter_read(driver.state, array(driver, BY_PACKETS), 0, held) == P_OK
    assert held.is_configured == 0
    assert configure(driver, BY_PACKETS, 0, (1, 2, 3, 4)) == P_OK
    assert driver.ops.meter_read(driver.state, array(driver, BY_PACKETS), 0, held) == P_OK
    assert (held.cir, held.cburst, held.pir, held.pburst, held.is_configured) == (1, 2, 3, 4, 1)
    direct = array(driver, "per_entry")
    assert driver.ops.meter_read(driver.state, direct, 0, held) == P_BAD_ARGUMENT


def test_direct_meters_colour_hits_only(driver: Driver) -> None:
    ops, state, table = driver.ops, driver.state, driver.position("metered")
    handle = driver.insert("metered", [1], "mark", [])
    driver.insert("metered", [2], "mark", [])
    assert send(driver, 0, key=1)[2] == GREEN
    assert send(driver, 0, key=9)[2] == 3  # a miss leaves the field alone
    assert ops.direct_meter_write(state, table, handle, MeterRatesT(1, 1, 1, 2, 1)) == P_OK
    assert [send(driver, 0, key=1)[2] for _ in range(3)] == [GREEN, YELLOW, RED]
    assert send(driver, 0, key=2)[2] == GREEN
    held = MeterRatesT()
    assert ops.direct_meter(state, table, handle, held) == P_OK
    assert (held.cir, held.pburst) == (1, 2)
    assert ops.direct_meter(state, table, 1 << 40, held) == P_NOT_FOUND
    assert ops.table_idle(state, table, (1 << 64) - 1, 0, ctypes.c_uint64()) == P_UNSUPPORTED
    # A new entry in the same place starts unconfigured.
    entry = driver.entry("metered", [1], "mark", [])
    assert ops.table_delete(state, table, entry) == P_OK
    assert driver.insert("metered", [1], "mark", []) == handle
    assert [send(driver, 0, key=1)[2] for _ in range(3)] == [GREEN] * 3


def test_the_meter_of_the_default_entry_colours_misses(driver: Driver) -> None:
    ops, state, table = driver.ops, driver.state, driver.position("metered")
    default = (1 << 64) - 1
    driver.insert("metered", [1], "mark", [])
    assert ops.direct_meter_write(state, table, default, MeterRatesT(1, 1, 1, 2, 1)) == P_OK
    assert [send(driver, 0, key=9)[2] for _ in range(3)] == [GREEN, YELLOW, RED]
    assert send(driver, 0, key=1)[2] == GREEN
    held = MeterRatesT()
    assert ops.direct_meter(state, table, default, held) == P_OK
    assert (held.cburst, held.pburst) == (1, 2)
    assert ops.direct_meter_write(state, table, default, MeterRatesT()) == P_OK
    assert send(driver, 0, key=9)[2] == 3


def test_direct_meters_of_bytes_and_counters(driver: Driver) -> None:
    ops, state, table = driver.ops, driver.state, driver.position("metered_bytes")
    handle = driver.insert("metered_bytes", [(4, 0xFF)], "mark_bytes", [], priority=1)
    assert ops.direct_meter_write(state, table, handle, MeterRatesT(1, 30, 1, 60, 1)) == P_OK
    assert [send(driver, 0, key=4, size=20)[3] for _ in range(4)] == [GREEN, YELLOW, YELLOW, RED]
    assert driver.direct_counter("metered_bytes", handle) == (4, 80)
    send(driver, 0, key=5)
    assert driver.direct_counter("metered_bytes") == (1, 9)
    assert driver.counter("colours", GREEN) == (5, 89)


def test_idle_time_of_entries(driver: Driver) -> None:
    ops, state, table = driver.ops, driver.state, driver.position("metered_bytes")

    def timed(key: int, timeout_ns: int, now_us: int) -> TableEntry:
        entry = driver.entry("metered_bytes", [(key, 0xFF)], "mark_bytes", [], 1)
        entry.idle_timeout_ns, entry.now_us = timeout_ns, now_us
        return entry

    def expired(now_us: int, step: int = 100) -> list[int]:
        start, handles = ctypes.c_uint32(0), (ctypes.c_uint64 * step)()
        found: list[int] = []
        while True:
            count = ops.table_expired(state, table, now_us, start, step, handles)
            assert count >= 0
            found += handles[:count]
            if start.value == 0:
                return found

    handle, idle = ctypes.c_uint64(), ctypes.c_uint64()
    first, second, third = timed(1, 5_000_000, 1000), timed(2, 9_000_001, 1000), timed(3, 0, 1000)
    for entry in (first, second, third):
        assert ops.table_insert(state, table, entry, handle) == P_OK
    assert expired(5999) == []
    assert expired(6000) == [0]
    assert expired(7000) == []  # reported once
    assert expired(10_000, step=1) == []
    assert expired(10_001, step=1) == [1]
    send(driver, 20_000, key=1)
    assert ops.table_idle(state, table, 0, 21_500, idle) == P_OK
    assert idle.value == 1500
    assert expired(24_999) == []
    assert expired(25_000) == [0]
    assert ops.table_modify(state, table, timed(1, 1_000_000, 30_000)) == P_OK
    assert expired(30_999) == []
    assert expired(31_000) == [0]
    assert expired(10**9) == []
    plain = driver.position("metered")
    assert ops.table_idle(state, plain, 0, 0, idle) == P_UNSUPPORTED


def test_match_of_a_handle(driver: Driver) -> None:
    key, mask = ctypes.create_string_buffer(8), ctypes.create_string_buffer(8)
    prefix_len, priority = ctypes.c_int32(), ctypes.c_int32()
    handle = driver.insert("metered_bytes", [(4, 0xF4)], "mark_bytes", [], priority=77)
    table = driver.position("metered_bytes")
    assert driver.ops.table_match(driver.state, table, handle, key, mask, prefix_len, priority) == 1
    assert (key.raw[:1], mask.raw[:1], priority.value) == (b"\4", b"\xf4", 77)
    handle = driver.insert("metered", [5], "mark", [])
    table = driver.position("metered")
    assert driver.ops.table_match(driver.state, table, handle, key, mask, prefix_len, priority) == 1
    assert (key.raw[:1], prefix_len.value) == (b"\5", -1)
