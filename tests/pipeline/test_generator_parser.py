# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Parsers: lookahead, advance, select, value sets, verify, sub-parsers, loops, errors."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline_driver import PROGRAMS, Driver
from switchfold.softswitch.switch.pipeline import P_BAD_ARGUMENT, P_FULL, P_OK

LOOK, LOOK_WIDE, SKIP, SKIP_ARGUMENT, CHECK, CALL, COUNT, ENDLESS, CHOOSE, NOTHING = range(1, 11)
EXTRACT_LONG, CHANGE, PAIRS = 11, 12, 13
OK, TOO_SHORT, WRONG_ARGUMENT, EVEN_ARGUMENT, BAD_ADVANCE = range(5)
PAIR, COPY, LONG, EMPTY, REQUEST = 1, 2, 4, 8, 16
KINDS, KNOWN_PAIRS = 0, 1
"""Positions of the value sets."""


@dataclass
class Parsed:
    """What the report says about the parser, and the bytes after the report."""

    error: int
    path: int
    flags: int
    value: int
    wide: int
    rest: bytes


@pytest.fixture
def driver() -> Iterator[Driver]:
    held = Driver(PROGRAMS / "parser_paths.json")
    yield held
    held.close()


def parse(driver: Driver, frame: bytes) -> Parsed:
    out = driver.process(frame).frame
    assert out is not None
    value, wide = int.from_bytes(out[3:7], "big"), int.from_bytes(out[7:20], "big")
    return Parsed(out[0], out[1], out[2], value, wide, out[20:])


def write_set(driver: Driver, position: int, members: list[tuple[bytes, bytes]]) -> int:
    data = b"".join(value + mask for value, mask in members)
    return driver.ops.value_set_write(driver.state, position, data, len(data), len(members))


@pytest.mark.parametrize("size", [0, 1])
def test_a_frame_shorter_than_the_first_header_reaches_ingress(driver: Driver, size: int) -> None:
    assert parse(driver, bytes(size)) == Parsed(TOO_SHORT, 0, 0, 0, 0, bytes(size))


def test_select_without_a_match_accepts_without_an_error(driver: Driver) -> None:
    assert parse(driver, bytes([99, 1, 2])) == Parsed(OK, 0, REQUEST, 0, 0, bytes([99, 1, 2]))


def test_lookahead_reads_and_takes_nothing(driver: Driver) -> None:
    found = parse(driver, bytes([LOOK, 0]) + b"\x12\x34\x56\x78")
    assert (found.error, found.value) == (OK, 0x12345678)
    assert (found.path, found.flags) == (1 + 40, PAIR | COPY | REQUEST)
    # The header from the lookahead is emitted, too, after the extracted one.
    assert found.rest == bytes([LOOK, 0]) + b"\x12\x34\x12\x34\x56\x78"
    short = parse(driver, bytes([LOOK, 0]) + b"\x12\x34\x56")
    assert (short.error, short.flags) == (TOO_SHORT, REQUEST)


def test_lookahead_of_more_than_64_bits(driver: Driver) -> None:
    ahead = bytes(range(1, 18))
    found = parse(driver, bytes([LOOK_WIDE, 0]) + ahead)
    assert (found.wide, found.value) == (int.from_bytes(ahead[:13], "big"), 0x01020)
    assert found.flags == PAIR | REQUEST  # the select on 104 bits matched
    found = parse(driver, bytes([LOOK_WIDE, 0]) + bytes(17))
    assert (found.error, found.wide, found.flags) == (OK, 0, REQUEST)


def test_advance_by_a_constant_and_by_a_field(driver: Driver) -> None:
    found = parse(driver, bytes([SKIP, 0]) + b"abcde")
    assert (found.error, found.rest) == (OK, bytes([SKIP, 0]) + b"de")
    found = parse(driver, bytes([SKIP_ARGUMENT, 16]) + b"abcde")
    assert (found.error, found.rest) == (OK, bytes([SKIP_ARGUMENT, 16]) + b"cde")
    assert parse(driver, bytes([SKIP, 0]) + b"ab").error == TOO_SHORT
    assert parse(driver, bytes([SKIP_ARGUMENT, 48]) + b"abcde").error == TOO_SHORT
    assert parse(driver, bytes([SKIP_ARGUMENT, 12]) + b"abcde").error == BAD_ADVANCE


def test_verify_ends_the_parser_with_its_error(driver: Driver) -> None:
    found = parse(driver, bytes([CHECK, 99]) + b"ab")
    assert (found.error, found.path, found.flags) == (OK, 46, PAIR | REQUEST)
    found = parse(driver, bytes([CHECK, 100]) + b"ab")
    assert (found.error, found.path, found.flags) == (WRONG_ARGUMENT, 0, REQUEST)
    found = parse(driver, bytes([CHECK, 98]) + b"ab")
    assert (found.error, found.flags) == (EVEN_ARGUMENT, REQUEST)


def test_a_parser_calls_another(driver: Driver) -> None:
    found = parse(driver, bytes([CALL, 0]) + b"\x11\x22\x33\x44\x55")
    assert (found.error, found.path, found.flags) == (OK, 62, PAIR | COPY | REQUEST)
    found = parse(driver, bytes([CALL, 0]) + b"\x11\x22\x03\x44\x55")
    # The error comes before the call returns its header.
    assert (found.error, found.flags) == (WRONG_ARGUMENT, PAIR | REQUEST)


def test_loops_end_by_count_or_with_the_packet(driver: Driver) -> None:
    found = parse(driver, bytes([COUNT, 3]) + b"abcde")
    assert (found.error, found.path, found.rest) == (OK, 3, bytes([COUNT, 3]) + b"de")
    assert parse(driver, bytes([COUNT, 9]) + b"abcde").error == TOO_SHORT
    found = parse(driver, bytes([ENDLESS, 0]) + bytes(3000))
    assert (found.error, found.path, found.rest) == (TOO_SHORT, 3000 % 256, bytes([ENDLESS, 0]))


@pytest.mark.parametrize(
    ("argument", "pair", "path"),
    [
        (3, 0x1002, 91),
        (2, 0x1002, 0),
        (10, 0x4001, 92),
        (20, 0x7FFF, 92),
        (21, 0x7FFF, 0),
        (9, 0x4100, 93),
        (0, 0xF1AB, 93),
    ],
)
def test_select_on_several_keys_with_masks_and_ranges(
    driver: Driver, argument: int, pair: int, path: int
) -> None:
    found = parse(driver, bytes([CHOOSE, argument]) + pair.to_bytes(2, "big"))
    assert (found.error, found.path) == (OK, path)


def test_headers_of_no_bits_and_of_odd_wide_fields(driver: Driver) -> None:
    found = parse(driver, bytes([NOTHING, 0]))
    assert (found.error, found.flags, found.rest) == (OK, EMPTY | REQUEST, bytes([NOTHING, 0]))
    data = bytes(range(100, 115))
    found = parse(driver, bytes([EXTRACT_LONG, 0]) + data + b"x")
    assert (found.flags, found.rest) == (LONG | REQUEST, bytes([EXTRACT_LONG, 0]) + data + b"x")


def test_states_assign_fields_and_headers(driver: Driver) -> None:
    found = parse(driver, bytes([CHANGE, 41]) + b"x")
    assert (found.error, found.path, found.flags) == (OK, 12, PAIR | REQUEST)
    assert found.rest == bytes([CHANGE, 42]) + b"\x30\x07x"


def test_value_sets_are_empty_until_written(driver: Driver) -> None:
    assert parse(driver, bytes([50, 0])).path == 0
    assert write_set(driver, KINDS, [(b"\x32", b"\xff"), (b"\x81", b"\x81")]) == P_OK
    for kind, is_known in ((50, True), (51, False), (0x81, True), (0xFF, True), (0x80, False)):
        assert parse(driver, bytes([kind, 0])).path == (100 if is_known else 0)
    assert write_set(driver, KINDS, []) == P_OK
    assert parse(driver, bytes([50, 0])).path == 0


def test_value_set_over_several_fields(driver: Driver) -> None:
    frame = bytes([PAIRS, 7]) + b"\x51\x23"
    assert parse(driver, frame).path == 13 + 12
    assert write_set(driver, KNOWN_PAIRS, [(b"\x07\x01\x23", b"\xff\x0f\xff")]) == P_OK
    assert parse(driver, frame).path == 100
    assert parse(driver, bytes([PAIRS, 7]) + b"\x51\x24").path == 13 + 12


def test_value_set_refuses_what_does_not_fit(driver: Driver) -> None:
    pair = (b"\x07\x01\x23", b"\xff\x0f\xff")
    assert write_set(driver, KNOWN_PAIRS, [pair] * 3) == P_FULL
    assert write_set(driver, KNOWN_PAIRS, [(b"\x07", b"\xff")]) == P_BAD_ARGUMENT
    assert write_set(driver, 9, []) == P_BAD_ARGUMENT


def test_a_loop_that_takes_nothing_ends_with_a_timeout(tmp_path: Path) -> None:
    program = json.loads((PROGRAMS / "parser_paths.json").read_text())
    states = {state["name"]: state for state in program["parsers"][0]["parse_states"]}
    states["endless"]["parser_ops"] = []
    path = tmp_path / "stuck.json"
    path.write_text(json.dumps(program))
    stuck = Driver(path)
    try:
        found = parse(stuck, bytes([ENDLESS, 0]) + b"rest")
        assert (found.error, found.rest) == (255, bytes([ENDLESS, 0]) + b"rest")
    finally:
        stuck.close()
