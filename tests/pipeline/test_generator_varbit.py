# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Fields of variable length: extracted, copied, compared, hashed, emitted, and too long ones."""

import zlib
from collections.abc import Iterator

import pytest

from pipeline_driver import PROGRAMS, Driver

NOTHING, COPY, CLEAR, POP, PUSH, COPY_FIELD, COPY_ITEM, DROP = range(8)
TOO_SHORT, TOO_LONG, STACK_FULL, BAD_LENGTH = 1, 2, 3, 4
END = b"\x00rest"


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    held = Driver(PROGRAMS / "varbit.json")
    yield held
    held.close()


def options(data: bytes, before: bytes = b"B") -> bytes:
    return before + data + b"AA"


def item(data: bytes, tail: int = 5) -> bytes:
    """Half a byte of length, data, half a byte: the data is not aligned to bytes."""
    count = len(data) + 1
    return ((count << 8 * len(data) + 4) | int.from_bytes(data, "big") << 4 | tail).to_bytes(
        count, "big"
    )


def ones_complement(data: bytes) -> int:
    padded = data + bytes(len(data) % 2)
    total = sum(int.from_bytes(padded[at : at + 2], "big") for at in range(0, len(padded), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def send(driver: Driver, kind: int, bits: int, rest: bytes) -> tuple[bytes, bytes]:
    """Return the report, and the bytes after the request."""
    request = bytes([kind]) + bits.to_bytes(2, "big")
    frame = driver.process(request + rest).frame
    assert frame is not None
    assert frame[8:11] == request
    return frame[:8], frame[11:]


@pytest.mark.parametrize("size", [0, 1, 5, 8])
def test_length_comes_from_the_packet(driver: Driver, size: int) -> None:
    data = bytes(range(1, size + 1))
    items = item(b"\xab\xcd")
    report, rest = send(driver, NOTHING, size * 8, options(data) + items + END)
    assert rest == options(data) + items + END
    assert report[:2] == bytes([0, 1 | 2])
    summed = ones_complement(bytes([NOTHING]) + options(data) + items)
    assert report[2:4] == summed.to_bytes(2, "big")
    assert report[4:] == zlib.crc32(data + report[2:4] + END).to_bytes(4, "big")


def test_errors_of_lengths_end_the_parser_before_the_header(driver: Driver) -> None:
    for bits, error in ((72, TOO_LONG), (12, BAD_LENGTH), (800, TOO_SHORT), (65532, BAD_LENGTH)):
        frame = options(bytes(20)) + END
        report, rest = send(driver, NOTHING, bits, frame)
        assert (report[0], report[1] & 7, rest) == (error, 0, frame)
    # Without the header its fields are left out: only kind is summed, and the CRC is not updated.
    assert report[2:] == ones_complement(bytes([NOTHING])).to_bytes(2, "big") + bytes(4)


def test_a_header_is_copied_with_its_length(driver: Driver) -> None:
    _, rest = send(driver, COPY, 24, options(b"xyz") + END)
    assert rest == options(b"xyz") + options(b"xyz", b"\x01") + END
    _, rest = send(driver, COPY_FIELD, 24, options(b"xyz") + END)
    assert rest == options(b"xyz") + b"\x00xyz\x00\x05" + END


def test_set_valid_keeps_the_length_and_clears_the_value(driver: Driver) -> None:
    _, rest = send(driver, CLEAR, 24, options(b"xyz") + END)
    assert rest == bytes(6) + END


def test_stacks_move_lengths_too(driver: Driver) -> None:
    first, second = item(b"\xf0\x0f"), item(b"\x12\x34\x56\x78\x9a", 3)
    head = options(b"")
    assert send(driver, NOTHING, 0, head + first + second + END)[1] == head + first + second + END
    assert send(driver, POP, 0, head + first + second + END)[1] == head + second + END
    assert send(driver, PUSH, 0, head + first + second + END)[1] == head + first + END
    assert send(driver, COPY_ITEM, 0, head + first + second + END)[1] == head + second * 2 + END
    report, rest = send(driver, NOTHING, 0, head + first * 3 + END)
    assert (report[0], rest) == (STACK_FULL, head + first * 3 + END)


def test_values_compare_as_numbers_and_headers_field_by_field(driver: Driver) -> None:
    def flags(first: bytes, second: bytes) -> int:
        return send(driver, NOTHING, 0, options(b"") + first + second + END)[0][1] & 24

    assert flags(item(b"\x12\x34"), item(b"\x12\x34")) == 24
    assert flags(item(b"\x12\x34"), item(b"\x12\x35")) == 0
    assert flags(item(b"\x34"), item(b"\x00\x34")) == 8
    assert flags(item(b"\x34", 1), item(b"\x34", 2)) == 8
