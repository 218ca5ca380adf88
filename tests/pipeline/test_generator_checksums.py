# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Checksums against a model that lays out bits one by one: algorithms, payload, invalid headers."""

import zlib
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline_driver import PROGRAMS, Driver

ODD, WIDE, ONE_LABEL, TWO_LABELS = 1, 2, 4, 8
VERIFY_CRC, VERIFY_PAYLOAD, VERIFY = 0x20, 0x40, 0x80
CONSTANT = 21


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    held = Driver(PROGRAMS / "checksums.json")
    yield held
    held.close()


def bits_of(data: bytes) -> str:
    return "".join(f"{byte:08b}" for byte in data)


def pack(bits: str) -> bytes:
    padded = bits + "0" * (-len(bits) % 8)
    return bytes(int(padded[at : at + 8], 2) for at in range(0, len(padded), 8))


def csum16(data: bytes) -> int:
    padded = data + bytes(len(data) % 2)
    total = sum(int.from_bytes(padded[at : at + 2], "big") for at in range(0, len(padded), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def crc16(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
    return crc


def xor16(data: bytes) -> int:
    result = 0
    for at, byte in enumerate(data):
        result ^= byte << (0 if at % 2 else 8)
    return result


class Frame:
    """A parsed frame: the bits of each header, empty for an invalid one."""

    def __init__(self, frame: bytes) -> None:
        flags = frame[0]
        self.flags, self.request = bits_of(frame[:1]), bits_of(frame[:3])
        self.checksum = int.from_bytes(frame[1:3], "big")
        labels = {0: 0, ONE_LABEL: 1, TWO_LABELS: 2}[flags & 12]
        sizes = [3 if flags & ODD else 0, 13 if flags & WIDE else 0]
        sizes += [3 if labels > index else 0 for index in (0, 1)]
        parts: list[str] = []
        at = 3
        for size in sizes:
            parts.append(bits_of(frame[at : at + size]))
            at += size
        self.odd, self.wide, self.first, self.second = parts
        self.payload = bits_of(frame[at:])
        self.rest = frame

    def expected(self) -> bytes:
        """Return the bytes that the program puts before the frame."""
        labels = self.first + self.second
        error = 0
        flags = self.rest[0]
        if flags & VERIFY:
            error |= csum16(pack(self.flags + self.odd + labels)) != self.checksum
        if flags & VERIFY_PAYLOAD:
            error |= csum16(pack(self.flags + self.payload)) != self.checksum
        if flags & VERIFY_CRC:
            error |= zlib.crc32(pack(self.flags + self.wide)) != self.checksum
        total = csum16(pack(self.request + self.odd + self.wide + f"{0x123456:024b}" + labels))
        payload_sum = csum16(pack(self.flags + self.first) + pack(self.payload))
        crc = crc16(pack(self.odd[16:] + self.odd[:16] + f"{CONSTANT:05b}"))
        crc32 = zlib.crc32(pack(self.flags + self.wide[4:] + self.wide[:4] + labels))
        payload_crc = zlib.crc32(pack(self.flags + self.odd[:3]) + pack(self.payload))
        mixed = xor16(pack(self.flags + self.second) + pack(self.payload))
        first_eight = (pack(self.flags + self.odd[16:] + self.wide[:4]) + pack(self.payload))[:8]
        custom = crc16(pack(labels + self.flags))
        both = bool(self.odd and self.wide)
        skipped = csum16(pack(self.flags)) if both else 0xABCD
        sums = b"".join(value.to_bytes(2, "big") for value in (total, crc, skipped))
        text = self.odd[:3] + self.wide[4:] + self.odd[3:16] + f"{CONSTANT:05b}"
        in_control = crc16(pack(text)) if both else 0
        fields = [(error, 1), (total, 2), (payload_sum, 2), (crc, 2), (crc32, 4), (payload_crc, 4)]
        fields += [(mixed, 2), (int.from_bytes(first_eight, "big"), 8), (custom, 2), (skipped, 2)]
        fields += [(zlib.crc32(sums), 4), (in_control, 2)]
        return b"".join(int(value).to_bytes(size, "big") for value, size in fields)


@settings(max_examples=400, deadline=None)
@given(flags=st.integers(0, 255).filter(lambda x: x & 12 != 12), data=st.binary(max_size=40))
def test_checksums_equal_the_model(driver: Driver, flags: int, data: bytes) -> None:
    frame = bytes([flags]) + data + bytes(24)
    result = driver.process(frame).frame
    assert result is not None
    assert result == Frame(frame).expected() + frame


@pytest.mark.parametrize("kind", [VERIFY, VERIFY_PAYLOAD])
def test_a_right_checksum_raises_no_error(driver: Driver, kind: int) -> None:
    frame = bytes([kind | ODD | ONE_LABEL]) + bytes(2) + b"\x12\x34\x56abcpayload"
    parts = Frame(frame)
    covered = parts.flags + (parts.odd + parts.first if kind == VERIFY else parts.payload)
    good = csum16(pack(covered)).to_bytes(2, "big")
    for checksum, error in ((good, 0), (bytes([good[0], good[1] ^ 1]), 1)):
        result = driver.process(frame[:1] + checksum + frame[3:]).frame
        assert result is not None
        assert result[0] == error


def test_a_checksum_wider_than_its_field_never_verifies(driver: Driver) -> None:
    frame = bytes([VERIFY_CRC])
    low = zlib.crc32(frame) & 0xFFFF
    result = driver.process(frame + low.to_bytes(2, "big")).frame
    assert result is not None
    assert result[0] == 1
