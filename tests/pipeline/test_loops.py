# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Loops, break, continue, return and exit in actions; messages, claims and random numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from pipeline_driver import PROGRAMS
from switchfold.softswitch import Switch, compile_program

SUM, PRODUCT, ENDLESS, CHOICE, DRAW, DRAW_NOTHING, DRAW_ALL, SAY, CLAIM, DRAW_LONG = range(1, 11)


@pytest.fixture
def switch() -> Iterator[Switch]:
    program = compile_program(PROGRAMS / "loops.json", cflags=("-Werror",))
    with Switch(program) as held:
        held.ports.add(1, "mem")
        held.ports.add(2, "mem")
        yield held


def run(switch: Switch, command: int, count: int = 0, small: int = 0, rest: bytes = b"") -> bytes:
    """Send one frame; return the frame that leaves, or nothing."""
    body = bytes([command, count]) + bytes(6) + (small & 0xFF).to_bytes(1, "big")
    sent = switch.process(1, body + rest.ljust(18, b"\0"))
    return sent[0][1] if sent else b""


def total(frame: bytes) -> int:
    return int.from_bytes(frame[2:4], "big")


def drawn(frame: bytes) -> int:
    return int.from_bytes(frame[4:8], "big")


@pytest.mark.parametrize("count", [0, 1, 2, 9, 199, 200, 255])
def test_loop_with_break_and_continue(switch: Switch, count: int) -> None:
    expected = sum(number for number in range(min(count, 200)) if number % 2)
    assert total(run(switch, SUM, count)) == expected


@pytest.mark.parametrize("count", [0, 1, 13, 255])
def test_nested_loops(switch: Switch, count: int) -> None:
    assert total(run(switch, PRODUCT, count)) == count * count


def test_loop_without_end_drops_the_packet_and_says_so(switch: Switch) -> None:
    messages: list[str] = []
    switch.set_log(messages.append)
    assert run(switch, ENDLESS) == b""
    assert switch.ports.statistics(1)["dropped_by_program"] == 1
    assert len(messages) == 1
    assert "loop without end" in messages[0]
    assert total(run(switch, PRODUCT, 3)) == 9


def test_return_ends_the_action_and_exit_the_control(switch: Switch) -> None:
    seen = [(total(frame), drawn(frame)) for frame in (run(switch, CHOICE, n) for n in (1, 2, 3))]
    assert seen == [(1, 1), (2, 0), (3, 1)]


def test_random_numbers(switch: Switch) -> None:
    counts = Counter(drawn(run(switch, DRAW)) for _ in range(600))
    assert set(counts) == {10, 11, 12}
    assert min(counts.values()) > 120, counts
    assert drawn(run(switch, DRAW_NOTHING)) == 0
    assert run(switch, DRAW_LONG)[9:18] == (5).to_bytes(9, "big")
    large = {drawn(run(switch, DRAW_ALL)) for _ in range(100)}
    assert len(large) > 95
    assert max(large) > 1 << 31 > min(large)


def test_messages(switch: Switch) -> None:
    messages: list[str] = []
    assert run(switch, SAY, 7)
    switch.set_log(messages.append)
    number = bytes(range(240, 249))
    assert run(switch, SAY, 7, -56, number + number)
    expected = f"7 and -56, {{not}} {int.from_bytes(number, 'big')}."
    negative = str(int.from_bytes(number, "big", signed=True))
    assert messages == [expected, "no value", negative]
    run(switch, SAY)
    assert messages[3:] == ["0 and 0, {not} 0.", "no value", "0"]
    switch.set_log(None)
    run(switch, SAY)
    assert len(messages) == 6


def test_messages_that_nobody_takes_are_counted(switch: Switch) -> None:
    def take(_message: str) -> None:
        if switch.lost_log_messages == 0:
            for _ in range(40000):
                switch.packet_out(bytes([SAY]) + bytes(26))

    switch.set_log(take)
    run(switch, SAY)
    assert switch.lost_log_messages > 0


def test_claims(switch: Switch) -> None:
    messages: list[str] = []
    switch.set_log(messages.append)
    assert run(switch, CLAIM, 1)
    assert messages == []
    assert run(switch, CLAIM, 2) == b""
    assert len(messages) == 1
    assert "assert failed" in messages[0]


def test_messages_survive_a_new_program(switch: Switch) -> None:
    messages: list[str] = []
    switch.set_log(messages.append)
    switch.load(compile_program(PROGRAMS / "loops.json", cflags=("-Werror",)))
    run(switch, SAY)
    assert len(messages) == 3
