# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Idle entries and meters through the Switch: notices from its own thread, on its own clock."""

import queue
from collections.abc import Iterator

import pytest

from pipeline_driver import PROGRAMS
from switchfold.softswitch import Match, Switch, compile_program
from switchfold.softswitch.errors import (
    BadArgumentError,
    EntryNotFoundError,
    UnsupportedControlError,
)
from switchfold.softswitch.switch.arrays import MeterRates

WAIT_S = 60.0


@pytest.fixture
def switch() -> Iterator[Switch]:
    program = compile_program(PROGRAMS / "meters.json", cflags=("-Werror",))
    with Switch(program) as held:
        held.ports.add(1, "mem")
        yield held


def position(switch: Switch, name: str) -> int:
    tables = compile_program(PROGRAMS / "meters.json", cflags=("-Werror",)).model.tables
    return next(t.position for t in tables if t.name.endswith(f".{name}"))


def action(name: str) -> int:
    actions = compile_program(PROGRAMS / "meters.json", cflags=("-Werror",)).model.actions
    return next(a.position for a in actions if a.name.endswith(f".{name}"))


def test_expired_entries_are_told_once_until_hit(switch: Switch) -> None:
    table = position(switch, "metered_bytes")
    told: queue.Queue[tuple[int, Match]] = queue.Queue()
    switch.set_idle(lambda number, match: told.put((number, match)))
    first, second = Match(b"\1", b"\xff", 0, 3), Match(b"\2", b"\xf0", 0, 1)
    switch.tables.insert(table, first, action("mark_bytes"), idle_timeout_ns=1_000_000)
    switch.tables.insert(table, second, action("mark_bytes"))
    assert told.get(timeout=WAIT_S) == (table, first)
    # Reported once: the next notice is of another entry, not of the first one again.
    third = Match(b"\3", b"\xff", 0, 3)
    switch.tables.insert(table, third, action("mark_bytes"), idle_timeout_ns=1_000_000)
    assert told.get(timeout=WAIT_S) == (table, third)
    switch.process(1, bytes((1,)) + bytes(8))
    assert told.get(timeout=WAIT_S) == (table, first)
    switch.tables.modify(table, second, action("mark_bytes"), idle_timeout_ns=5_000_000)
    assert told.get(timeout=WAIT_S) == (table, Match(b"\0", b"\xf0", 0, 1))
    assert switch.tables.idle_ns(table, second) >= 5_000_000
    switch.set_idle(None)
    switch.tables.delete(table, first)
    with pytest.raises(EntryNotFoundError):
        switch.tables.idle_ns(table, first)
    metered = position(switch, "metered")
    switch.tables.insert(metered, Match(b"\1"), action("mark"))
    with pytest.raises(UnsupportedControlError):
        switch.tables.idle_ns(metered, Match(b"\1"))


def test_a_callback_may_use_the_switch_and_end_the_notices(switch: Switch) -> None:
    table = position(switch, "metered_bytes")
    done: queue.Queue[int] = queue.Queue()

    def remove(number: int, match: Match) -> None:
        switch.tables.delete(number, match)
        switch.set_idle(None)
        done.put(switch.tables.size(number))

    switch.set_idle(remove)
    match = Match(b"\1", b"\xff", 0, 3)
    switch.tables.insert(table, match, action("mark_bytes"), idle_timeout_ns=1)
    assert done.get(timeout=WAIT_S) == 0


def test_meters_are_configured_and_read(switch: Switch) -> None:
    rates = MeterRates(100, 200, 300, 400)
    assert switch.arrays.read_meter(1, 7) is None
    switch.arrays.write_meter(1, 7, rates)
    assert switch.arrays.read_meter(1, 7) == rates
    switch.arrays.write_meter(1, 7, None)
    assert switch.arrays.read_meter(1, 7) is None
    with pytest.raises(BadArgumentError):
        switch.arrays.write_meter(1, 7, MeterRates(3, 1, 2, 1))
    table, match = position(switch, "metered"), Match(b"\1")
    switch.tables.insert(table, match, action("mark"))
    switch.tables.write_meter(table, match, rates)
    assert switch.tables.read_meter(table, match) == rates
    with pytest.raises(EntryNotFoundError):
        switch.tables.read_meter(table, Match(b"\2"))
