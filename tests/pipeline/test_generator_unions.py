# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Header unions and stacks of them: one header valid at a time, extracted, assigned, emitted."""

from collections.abc import Iterator

import pytest

from pipeline_driver import PROGRAMS, Driver

NOTHING, SET_SHORT, SET_LONG, DROP_SHORT, COPY_OPTION, SET_BIG, COPY_TINY = range(7)
NO_ADDRESS, SHORT, LONG = b"\x00", b"\x01\x21", b"\x02\x12\x34\x56"
TINY, BIG = b"\x01", b"\x07\xaa\xbb"


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    held = Driver(PROGRAMS / "header_unions.json")
    yield held
    held.close()


def run(driver: Driver, kind: int, address: bytes, options: bytes = b"") -> tuple[int, int, bytes]:
    """Return flags, number and the bytes after the request's kind."""
    frame = driver.process(bytes([kind]) + address + options + b"\x00rest").frame
    assert frame is not None
    assert frame[4] == kind
    return frame[1], int.from_bytes(frame[2:4], "big"), frame[5:]


@pytest.mark.parametrize(
    ("address", "flags", "number"), [(NO_ADDRESS, 0, 0), (SHORT, 3, 0x21), (LONG, 5, 0x1234)]
)
def test_the_extracted_header_is_the_valid_one(
    driver: Driver, address: bytes, flags: int, number: int
) -> None:
    assert run(driver, NOTHING, address) == (flags, number, address + b"\x00rest")


def test_set_valid_invalidates_the_others(driver: Driver) -> None:
    assert run(driver, SET_SHORT, LONG) == (3, 17, b"\x02\x11\x00rest")
    assert run(driver, SET_LONG, SHORT) == (5, 0, b"\x01\x00\x00\x00\x00rest")
    assert run(driver, SET_LONG, LONG) == (5, 0x1234, LONG + b"\x00rest")


def test_set_invalid_of_another_header_keeps_the_valid_one(driver: Driver) -> None:
    assert run(driver, DROP_SHORT, LONG)[0] == 5
    assert run(driver, DROP_SHORT, SHORT) == (0, 0, b"\x01\x00rest")


def test_a_stack_of_unions_is_extracted_in_order(driver: Driver) -> None:
    flags, _, rest = run(driver, NOTHING, NO_ADDRESS, TINY + BIG + BIG)
    assert (flags, rest) == (8 | 64 | 128, b"\x00" + TINY + BIG + BIG + b"\x00rest")
    frame = driver.process(bytes([NOTHING]) + NO_ADDRESS + TINY * 4 + b"\x00").frame
    assert frame is not None
    assert frame[0] == 1  # the fourth is one too many
    assert frame[5:] == NO_ADDRESS + TINY * 4 + b"\x00"


def test_a_union_is_assigned_as_a_whole(driver: Driver) -> None:
    flags, _, rest = run(driver, COPY_OPTION, NO_ADDRESS, TINY + BIG)
    assert (flags, rest) == (16 | 64, b"\x00" + BIG + BIG + b"\x00rest")
    flags, _, rest = run(driver, COPY_OPTION, NO_ADDRESS, BIG)
    assert (flags, rest) == (0, b"\x00\x00rest")


def test_headers_of_unions_in_a_stack_exclude_each_other(driver: Driver) -> None:
    flags, _, rest = run(driver, SET_BIG, NO_ADDRESS, TINY + TINY)
    assert (flags, rest) == (8 | 64, b"\x00" + TINY + b"\x09\x00\x00\x00rest")
    flags, _, rest = run(driver, COPY_TINY, NO_ADDRESS, BIG + TINY)
    assert (flags, rest) == (8 | 32, b"\x00" + TINY + TINY + b"\x00rest")
