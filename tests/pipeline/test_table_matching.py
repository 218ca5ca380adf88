# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Every match kind and mixture, compared with a search of all entries, under random changes."""

import ctypes
import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from pipeline_driver import PROGRAMS, Driver
from switchfold.softswitch import Switch, compile_program
from switchfold.softswitch.errors import BadArgumentError
from switchfold.softswitch.program.model import KeyField
from switchfold.softswitch.switch.pipeline import P_EXISTS, P_FULL, P_OK
from switchfold.softswitch.switch.table_entries import Match

Part = int | tuple[int, int]
KINDS = {
    "exact_small": 1,
    "exact_large": 2,
    "prefixes": 3,
    "masks": 4,
    "ranges": 5,
    "mixture": 6,
    "masked": 7,
    "no_key": 8,
    "initial": 9,
}


@dataclass(frozen=True)
class Query:
    kind: str
    a: int = 0
    b: int = 0
    c: int = 0
    d: int = 0
    e: int | None = None

    @property
    def frame(self) -> bytes:
        head = KINDS[self.kind].to_bytes(1, "big") + self.a.to_bytes(4, "big")
        head += self.b.to_bytes(2, "big") + (self.c << 7 | self.d).to_bytes(2, "big") + bytes(8)
        return head if self.e is None else head + self.e.to_bytes(2, "big")

    def value(self, name: str) -> int:
        if name.endswith("$valid$"):
            return int(self.d == 1)
        if name.startswith("hdr.query.a"):
            return self.a
        if name == "hdr.extra.e":
            return (self.e or 0) if self.d == 1 else 0
        return {"b": self.b, "c": self.c, "d": self.d}[name.rsplit(".", maxsplit=1)[-1]]


@pytest.fixture
def driver() -> Iterator[Driver]:
    held = Driver(PROGRAMS / "table_kinds.json")
    yield held
    held.close()


def ask(driver: Driver, query: Query) -> tuple[int, int]:
    frame = driver.process(query.frame).frame
    assert frame is not None
    return int.from_bytes(frame[9:13], "big"), int.from_bytes(frame[13:17], "big")


def covers(part: KeyField, want: Part, value: int) -> bool:
    if part.mask is not None:
        value &= part.mask
    match part.kind:
        case "lpm":
            assert isinstance(want, tuple)
            shift = part.width - want[1]
            return want[0] >> shift == value >> shift
        case "ternary" | "optional":
            assert isinstance(want, tuple)
            return want[0] & want[1] == value & want[1]
        case "range":
            assert isinstance(want, tuple)
            return want[0] <= value <= want[1]
        case _:
            return want == value


def random_part(part: KeyField, rng: random.Random) -> Part:
    ones = (1 << part.width) - 1
    value = rng.randrange(4 if part.width > 1 else 2) << max(part.width - 2, 0)
    value |= rng.randrange(2) if part.width > 1 else 0
    match part.kind:
        case "lpm":
            length = rng.choice((0, 1, 2, part.width - 1, part.width))
            return value & (ones << (part.width - length)) & ones, length
        case "ternary":
            mask = rng.choice((0, 1, ones, ones << (part.width - 2) & ones))
            return value & mask, mask
        case "range":
            low, high = sorted((rng.randrange(ones + 1), rng.randrange(ones + 1)))
            return rng.choice(((low, high), (0, ones), (low, low), (value, ones)))
        case _ if part.name == "hdr.query.d":  # optional
            return rng.choice(((0, 0), (value & ones, ones)))
        case _:
            return value


def random_query(table: str, rng: random.Random) -> Query:
    def value(width: int) -> int:
        edge = rng.randrange(4) << (width - 2) | rng.randrange(2)
        return rng.choice((edge, edge, rng.randrange(1 << width)))

    d = rng.choice((0, 1, 1 << 5, 2 << 5, 1 | 1 << 5, 2))
    return Query(table, value(32), value(16), value(9), d, value(16))


@pytest.mark.parametrize("table", ["exact_small", "prefixes", "masks", "ranges", "mixture"])
@pytest.mark.parametrize("seed", range(3))
def test_random_changes_agree_with_a_search_of_all_entries(
    driver: Driver, table: str, seed: int
) -> None:
    rng = random.Random(seed)
    model = driver.model.tables[driver.position(table)]
    is_lpm = model.kind == "lpm"
    held: dict[tuple[tuple[Part, ...], int], tuple[int, int]] = {}  # -> handle, number
    handle = ctypes.c_uint64()
    for number in range(1, 900):
        if held and rng.random() < 0.4:
            match, priority = rng.choice(list(held))
            entry = driver.entry(table, list(match), "answer", [0, 0], priority)
            assert driver.ops.table_delete(driver.state, model.position, entry) == P_OK
            del held[match, priority]
        else:
            match = tuple(random_part(part, rng) for part in model.key)
            priority = rng.randrange(1, 6) if model.has_priorities else 0
            entry = driver.entry(table, list(match), "answer", [number, number ^ 0xFFFF], priority)
            result = driver.ops.table_insert(driver.state, model.position, entry, handle)
            if (match, priority) in held:
                assert result == P_EXISTS
            else:
                assert result == P_OK
                held[match, priority] = (handle.value, number)
        if number % 3:
            continue
        query = random_query(table, rng)
        values = [query.value(part.name) for part in model.key]
        found: list[tuple[int, int, int]] = []
        for (match, priority), (index, answer) in held.items():
            zipped = zip(model.key, match, values, strict=True)
            if all(covers(part, want, value) for part, want, value in zipped):
                length = next((m[1] for m in match if isinstance(m, tuple)), 0)
                found.append((length if is_lpm else priority, -index, answer))
        wanted = max(found)[2] if found else 0
        assert ask(driver, query) == (wanted, wanted ^ 0xFFFF if found else 0), (query, found)
    assert driver.ops.table_size(driver.state, model.position) == len(held)


def test_equals_in_priority_are_won_by_the_lowest_handle(driver: Driver) -> None:
    for index in range(4):
        driver.insert("masks", [(0, 1 << index), (0, 0)], "answer", [index, 0], priority=5)
    assert ask(driver, Query("masks"))[0] == 0
    first = driver.entry("masks", [(0, 1), (0, 0)], "answer", [0, 0], 5)
    second = driver.entry("masks", [(0, 2), (0, 0)], "answer", [0, 0], 5)
    table = driver.position("masks")
    assert driver.ops.table_delete(driver.state, table, second) == P_OK
    assert driver.ops.table_delete(driver.state, table, first) == P_OK
    assert ask(driver, Query("masks"))[0] == 2
    # The lowest free handle comes first, so this entry is before all others again.
    assert driver.insert("masks", [(0, 16), (0, 0)], "answer", [9, 0], priority=5) == 0
    assert ask(driver, Query("masks"))[0] == 9


def test_key_mask_of_the_program_and_fields_of_absent_headers(driver: Driver) -> None:
    driver.insert("masked", [0x00123400, (0, 0xFFFF)], "answer", [1, 2], priority=1)
    assert ask(driver, Query("masked", a=0x99123477, d=1, e=5)) == (0, 0)
    assert ask(driver, Query("masked", a=0x99123477, d=1, e=0)) == (1, 2)
    assert ask(driver, Query("masked", a=0x99123477, d=3)) == (1, 2)
    # A header that was parsed and then removed counts as zeros, as on simple_switch.
    assert ask(driver, Query("masked", a=0x99123477, d=2, e=5)) == (1, 2)
    assert ask(driver, Query("masked", a=0x99123577, d=3)) == (0, 0)


def test_the_program_s_mask_applies_to_entries_too(driver: Driver) -> None:
    driver.insert("masked", [0x99123477, (0, 0)], "answer", [3, 4], priority=1)
    assert ask(driver, Query("masked", a=0x00123400)) == (3, 4)
    table = driver.position("masked")
    twin = driver.entry("masked", [0x55123466, (0, 0)], "answer", [5, 6], 1)
    handle = ctypes.c_uint64()
    assert driver.ops.table_insert(driver.state, table, twin, handle) == P_EXISTS
    assert driver.ops.table_delete(driver.state, table, twin) == P_OK
    assert ask(driver, Query("masked", a=0x00123400)) == (0, 0)


def test_table_without_key_runs_its_default(driver: Driver) -> None:
    assert ask(driver, Query("no_key")) == (11, 12)


def test_entries_of_the_program_in_their_order(driver: Driver) -> None:
    assert ask(driver, Query("initial", b=8, c=3)) == (1, 1)
    assert ask(driver, Query("initial", b=10, c=3)) == (2, 2)
    assert ask(driver, Query("initial", b=12, c=5)) == (3, 3)
    assert ask(driver, Query("initial", b=13, c=5)) == (7, 4)
    assert ask(driver, Query("initial", b=4, c=0)) == (7, 9)


def test_a_table_is_full_at_its_size(driver: Driver) -> None:
    for index in range(64):
        driver.insert("masked", [index << 8, (0, 0)], "answer", [1, 1], priority=1)
    entry = driver.entry("masked", [0xFFFF00, (0, 0)], "answer", [1, 1], 1)
    table = driver.position("masked")
    handle = ctypes.c_uint64()
    assert driver.ops.table_insert(driver.state, table, entry, handle) == P_FULL


def test_keys_of_the_wrong_size_are_refused() -> None:
    with Switch(compile_program(PROGRAMS / "table_kinds.json", cflags=("-Werror",))) as switch:
        for size in (0, 1, 5, 7, 512):
            for match in (Match(bytes(size), bytes(size)), Match(bytes(6), bytes(size))):
                if match == Match(bytes(6)):  # no mask: zeros
                    continue
                with pytest.raises(BadArgumentError):
                    switch.tables.insert(KINDS["masks"], match, 0, bytes(8))
                with pytest.raises(BadArgumentError):
                    switch.tables.find(KINDS["masks"], match)
