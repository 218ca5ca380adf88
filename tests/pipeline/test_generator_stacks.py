# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Header stacks: the parser's next and last, shifts, indices at run time, assignment, validity."""

from collections.abc import Iterator

import pytest

from pipeline_driver import PROGRAMS, Driver

A, B, C, D = (bytes([5 << 1, 7]), bytes([6 << 1, 8]), bytes([7 << 1, 9]), bytes([8 << 1, 10]))
PUSH, POP, POP_TWO, DECREMENT, REMOVE, SAVE, COPY, COMPARE, PUSH_ALL, POP_ALL = range(1, 11)
PUSHED_TAG = 33


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    held = Driver(PROGRAMS / "header_stacks.json")
    yield held
    held.close()


def bottom(label: bytes) -> bytes:
    return bytes([label[0] | 1, label[1]])


def run(driver: Driver, kind: int, argument: int, labels: list[bytes]) -> tuple[bytes, bytes]:
    """Return the report, and the bytes after the request."""
    request = bytes([kind, argument])
    result = driver.process(request + b"".join(labels) + b"rest").frame
    assert result is not None
    assert result[5:7] == request
    return result[:5], result[7:]


def test_parser_stops_at_the_bottom(driver: Driver) -> None:
    for count in (1, 2, 3):
        labels = [A, B, C][:count]
        labels[-1] = bottom(labels[-1])
        report, rest = run(driver, 99, 0, labels)
        flags = (1 << count) - 1
        assert report == bytes([0, count - 1, labels[-1][1], 50, flags])
        assert rest == b"".join(labels) + b"rest"


def test_a_full_stack_ends_the_parser_with_an_error(driver: Driver) -> None:
    report, rest = run(driver, 99, 0, [A, B, C, bottom(D)])
    assert report == bytes([1, 0, 0, 50, 7])
    assert rest == A + B + C + bottom(D) + b"rest"


def test_push_front_moves_up_and_drops_what_falls_off(driver: Driver) -> None:
    report, rest = run(driver, PUSH, 5, [A, B, bottom(C)])
    assert report[4] == 7
    assert rest == bytes([PUSHED_TAG << 1, 5]) + A + B + b"rest"
    report, rest = run(driver, PUSH, 5, [bottom(A)])
    assert report[4] == 3
    assert rest == bytes([PUSHED_TAG << 1, 5]) + bottom(A) + b"rest"
    report, rest = run(driver, PUSH_ALL, 0, [A, bottom(B)])
    assert (report[4], rest) == (0, b"rest")


def test_pop_front_moves_down_and_invalidates_the_end(driver: Driver) -> None:
    report, rest = run(driver, POP, 0, [A, B, bottom(C)])
    assert (report[4], rest) == (3, B + bottom(C) + b"rest")
    report, rest = run(driver, POP_TWO, 0, [A, B, bottom(C)])
    assert (report[4], rest) == (2, bottom(C) + b"rest")  # popped by two, then pushed by one
    report, rest = run(driver, POP_ALL, 0, [A, B, bottom(C)])
    assert (report[4], rest) == (0, b"rest")


@pytest.mark.parametrize("at", [0, 1, 2])
def test_elements_are_reached_by_an_index_of_the_packet(driver: Driver, at: int) -> None:
    labels = [A, B, bottom(C)]
    report, rest = run(driver, DECREMENT, at, labels)
    changed = labels[at][0], labels[at][1] - 1
    assert report[3] == changed[1]
    expected = [bytes(changed) if index == at else label for index, label in enumerate(labels)]
    assert rest == b"".join(expected) + b"rest"
    report, rest = run(driver, REMOVE, at, labels)
    assert report[4] == 7 & ~(1 << at)
    assert rest == b"".join(x for i, x in enumerate(labels) if i != at) + b"rest"
    assert run(driver, COPY, at, labels)[1] == A + B + labels[at] + b"rest"


def test_copy_of_an_invalid_element_invalidates(driver: Driver) -> None:
    report, rest = run(driver, COPY, 1, [bottom(A)])
    assert (report[4], rest) == (1, bottom(A) + b"rest")


def test_an_index_out_of_range_touches_no_element(driver: Driver) -> None:
    for at in (3, 200, 255):
        report, rest = run(driver, DECREMENT, at, [A, bottom(B)])
        assert (report[4], rest) == (3, A + bottom(B) + b"rest")
        assert run(driver, REMOVE, at, [A, bottom(B)])[1] == A + bottom(B) + b"rest"


def test_a_stack_is_assigned_as_a_whole(driver: Driver) -> None:
    _, rest = run(driver, SAVE, 0, [A, bottom(B)])
    assert rest == A + bytes([bottom(B)[0], 77]) + A + bottom(B) + b"rest"


def test_headers_compare_by_validity_and_fields(driver: Driver) -> None:
    assert run(driver, COMPARE, 0, [A, A, bottom(C)])[0][3] == 1
    assert run(driver, COMPARE, 0, [A, bottom(B)])[0][3] == 2
    assert run(driver, COMPARE, 0, [bottom(A)])[0][3] == 2
    assert driver.process(bytes([COMPARE])).frame is not None


def test_keys_see_elements_and_their_validity(driver: Driver) -> None:
    assert run(driver, 0, 0, [])[0][3] == 99
    assert run(driver, 99, 0, [bottom(A)])[0][3] == 50
    assert run(driver, 99, 0, [B, B, bytes([1, 9])])[0][3] == 90
