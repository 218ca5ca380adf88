# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Every operator against Python's unlimited integers."""

import struct
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline_driver import PROGRAMS, Driver

OPERANDS = {
    "a": 32,
    "b": 32,
    "c": 64,
    "d": 64,
    "e": 7,
    "f": 13,
    "g": 4,
    "h": 32,
    "i": 32,
    "j": 12,
    "k": 12,
}
SIGNED = {"h", "i", "j", "k"}


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    held = Driver(PROGRAMS / "operators.json")
    yield held
    held.close()


def number(bits: int) -> st.SearchStrategy[int]:
    top = (1 << bits) - 1
    edges = [0, 1, top, top >> 1, (top >> 1) + 1, 31 & top, 32 & top, 63 & top]
    return st.one_of(st.sampled_from(edges), st.integers(0, top))


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def clamp(value: int, low: int, high: int) -> int:
    return max(low, min(high, value))


def saturate(value: int, bits: int, is_signed: bool) -> int:
    if is_signed:
        return clamp(value, -(1 << bits - 1), (1 << bits - 1) - 1)
    return clamp(value, 0, (1 << bits) - 1)


def expected(raw: dict[str, int]) -> list[tuple[int, int]]:
    """Return the results of the program with their widths, in the order of the fields."""
    x = {n: signed(v, OPERANDS[n]) if n in SIGNED else v for n, v in raw.items()}
    a, b, c, d, e, f, h, i, j, k = (x[n] for n in "abcdefhijk")
    flags = [a == b, a < b, h < i, j >= k, c > d, a != b and h <= i, a <= b or e == 3, x["g"] == 15]
    return [
        (a + b, 32), (a - b, 32), (a * b, 32), (saturate(a + b, 32, False), 32),
        (saturate(a - b, 32, False), 32), (h + i, 32), (h - i, 32),
        (saturate(h + i, 32, True), 32), (saturate(h - i, 32, True), 32),
        (c + d, 64), (c * d, 64), (saturate(c + d, 64, False), 64),
        (saturate(c - d, 64, False), 64), (a << e, 32), (a >> e, 32), (h >> e, 32), (c << e, 64),
        (c >> e, 64), (a & b, 32), (a | b, 32), (a ^ b, 32), (~a, 32), (e << 13 | f, 20),
        (a >> 10, 12), (saturate(j + k, 12, True), 12), (-j, 12),
        (int("".join(str(int(flag)) for flag in flags), 2), 8), (max(h, i), 32), (f + a, 64),
        (j, 64),
    ]  # fmt: skip


def pack(values: list[tuple[int, int]]) -> bytes:
    total, bits = 0, 0
    for value, width in values:
        total = total << width | value & (1 << width) - 1
        bits += width
    assert bits % 8 == 0
    return total.to_bytes(bits // 8, "big")


@settings(max_examples=1500, deadline=None)
@given(values=st.fixed_dictionaries({name: number(bits) for name, bits in OPERANDS.items()}))
def test_operators_equal_unlimited_integers(driver: Driver, values: dict[str, Any]) -> None:
    frame = pack([(values[name], bits) for name, bits in OPERANDS.items()])
    result = driver.process(frame + b"rest")
    assert result.frame is not None
    assert result.frame == pack(expected(values)) + b"rest"


def test_operands_are_packed_as_the_program_declares() -> None:
    assert struct.calcsize(">IIQQ") * 8 + 7 + 13 + 4 + 64 + 24 == sum(OPERANDS.values())
