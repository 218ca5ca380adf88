# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Parser errors, registers, hashes, exit."""

import ctypes
import struct
import zlib
from collections.abc import Iterator

import pytest

from pipeline_driver import PROGRAMS, Driver

REPLY = struct.Struct(">IHIHHIB")


@pytest.fixture
def driver() -> Iterator[Driver]:
    held = Driver(PROGRAMS / "externs.json")
    yield held
    held.close()


def frame(command: int, index: int = 1, value: int = 7, magic: int = 0xA5) -> bytes:
    return struct.pack(">BBHI", magic, command, index, value)


def crc16(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
    return crc


def csum16(data: bytes) -> int:
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def reply(driver: Driver, data: bytes, headers: int = 8) -> tuple[int, ...]:
    outcome = driver.process(data, port=9)
    assert outcome.frame is not None
    assert outcome.out.egress_spec == 3
    return REPLY.unpack_from(outcome.frame, headers)


def test_hashes_registers_and_lookahead(driver: Driver) -> None:
    data = frame(0)
    error, crc, crc32, total, port, held, seen = reply(driver, data)
    assert (error, port, held, seen) == (0, 9, 7, 0xA5)
    assert (crc, crc32, total) == (crc16(data), zlib.crc32(data), csum16(data))
    assert reply(driver, frame(0, value=5))[5] == 12
    assert driver.register("total", 1) == 12
    assert driver.register("odd", 1) == 5


def test_register_index_out_of_range_changes_nothing(driver: Driver) -> None:
    assert reply(driver, frame(0, index=16, value=3))[5] == 3
    assert [driver.register("total", index) for index in range(16)] == [0] * 16


def test_register_and_counter_writes(driver: Driver) -> None:
    ops, state = driver.ops, driver.state
    assert ops.register_write(state, 0, 3, b"\0\0\1\0", 4) == 0
    assert driver.register("total", 3) == 256
    assert ops.register_write(state, 1, 0, b"\x1f\0\0", 3) < 0
    assert ops.register_write(state, 0, 16, b"\0\0\1\0", 4) < 0
    assert ops.counter_write(state, 0, 1, 5, 6) == 0
    assert driver.counter("commands", 1) == (5, 6)


def test_counter_counts_bytes_received(driver: Driver) -> None:
    driver.process(frame(0))
    driver.process(frame(0) + b"12345")
    assert driver.counter("commands", 0) == (2, 21)


def test_parser_errors_reach_ingress(driver: Driver) -> None:
    # Short packet: the value is missing, parsed headers stay, and the rest is payload.
    outcome = driver.process(frame(0)[:6], port=9)
    assert outcome.frame is not None
    assert outcome.frame[:4] == bytes([0x5A, 0, 0, 1])
    assert REPLY.unpack_from(outcome.frame, 4)[0] == 1
    assert outcome.frame[4 + REPLY.size :] == frame(0)[4:6]
    assert reply(driver, frame(0, magic=1), headers=4)[0] == 2
    assert driver.ingress(b"").egress_spec == 3


def test_select_on_masks_and_advance(driver: Driver) -> None:
    data = bytes([0xA5, 0x10, 0, 1, 0xEE, 0xEE, 0, 0, 0, 9]) + b"tail"
    outcome = driver.process(data)
    assert outcome.frame is not None
    assert outcome.frame[4:8] == bytes([0, 0, 0, 9])
    assert outcome.frame.endswith(b"tail")
    # (1, 7) accepts without the value.
    assert reply(driver, frame(1, index=7), headers=4)[5] == 0


def test_exit_ends_the_control(driver: Driver) -> None:
    driver.ingress(frame(5))
    assert driver.deparse()[0] == 0xA5
    assert driver.process(frame(6)).frame is None


def test_deparse_into_too_little_room(driver: Driver) -> None:
    driver.ingress(frame(0))
    buffer = ctypes.create_string_buffer(64)
    for room in range(8 + REPLY.size):
        assert driver.ops.deparse(driver.state, driver.phv, ctypes.addressof(buffer), room) < 0
