# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Applied pushes against a plain set, their bytes, and two processes with one worker id."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchfold.hostlib.errors import PushWindowError, StaleIncarnationError, StorageDamagedError
from switchfold.hostlib.parameter_server.storage import AppliedPushes
from switchfold.hostlib.parameter_server.storage import applied_pushes as module

calls = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(0, 3),
        st.one_of(st.integers(1, 12), st.integers(1, 10_000)),
    ),
    max_size=120,
)


class PlainSets:
    """What AppliedPushes has to do, with sets that grow for ever."""

    def __init__(self) -> None:
        self.current: dict[int, int] = {}
        self.replaced: set[tuple[int, int]] = set()
        self.applied: defaultdict[tuple[int, int], set[int]] = defaultdict(set)

    def add(self, worker: int, incarnation: int, sequence: int) -> bool | type[Exception]:
        if (worker, incarnation) in self.replaced:
            return StaleIncarnationError
        applied = self.applied[worker, incarnation]
        if sequence in applied:
            return False
        gap = next(n for n in range(1, len(applied) + 2) if n not in applied)
        if sequence >= gap + module.WINDOW:
            return PushWindowError
        if self.current.setdefault(worker, incarnation) != incarnation:
            self.replaced.add((worker, self.current[worker]))
            self.current[worker] = incarnation
        applied.add(sequence)
        return True


def add(pushes: AppliedPushes, call: tuple[int, int, int]) -> bool | type[Exception]:
    try:
        was_applied = pushes.is_applied(*call)
    except (StaleIncarnationError, PushWindowError) as error:
        with pytest.raises(type(error)):
            pushes.add(*call)
        return type(error)
    is_new = pushes.add(*call)
    assert is_new is not was_applied
    assert pushes.is_applied(*call)
    return is_new


@given(calls)
def test_it_answers_as_plain_sets_do(all_calls: list[tuple[int, int, int]]) -> None:
    pushes, plain = AppliedPushes(), PlainSets()
    for call in all_calls:
        assert add(pushes, call) == plain.add(*call)
        stored = pushes.to_bytes()
        pushes = AppliedPushes.from_bytes(stored)  # as if the server had started again
        assert pushes.to_bytes() == stored


@given(st.permutations(range(1, 200)), st.integers(1, 199))
def test_pushes_in_any_order_leave_one_number(order: list[int], again: int) -> None:
    pushes = AppliedPushes()
    for sequence in order:
        assert pushes.add(7, 1, sequence)
    assert not pushes.add(7, 1, again)
    one_by_one = AppliedPushes()
    for sequence in range(1, 200):
        one_by_one.add(7, 1, sequence)
    assert pushes.to_bytes() == one_by_one.to_bytes()
    assert len(pushes.to_bytes()) == 16 + 28


def test_the_newer_of_two_processes_wins() -> None:
    pushes = AppliedPushes()
    assert pushes.add(3, 0xA, 1)
    assert not pushes.is_applied(3, 0xB, 1)  # to ask changes nothing
    assert pushes.add(3, 0xA, 2)
    assert pushes.add(3, 0xB, 1)
    with pytest.raises(StaleIncarnationError, match=r"worker 3: a newer process \(0x0*b\)"):
        pushes.add(3, 0xA, 3)
    with pytest.raises(StaleIncarnationError):  # not even what it had pushed
        pushes.is_applied(3, 0xA, 1)
    assert pushes.add(4, 0xA, 3)  # another worker


def test_replaced_incarnations_are_bounded() -> None:
    pushes = AppliedPushes()
    for incarnation in range(module.KEPT_INCARNATIONS + 2):
        pushes.add(0, incarnation, 1)
    with pytest.raises(StaleIncarnationError):
        pushes.add(0, 1, 2)
    assert not pushes.is_applied(0, 0, 2)
    assert AppliedPushes.from_bytes(pushes.to_bytes()).to_bytes() == pushes.to_bytes()


def test_the_window() -> None:
    pushes = AppliedPushes()
    with pytest.raises(PushWindowError, match=f"push {module.WINDOW + 1} comes before push 1"):
        pushes.add(0, 5, module.WINDOW + 1)
    assert pushes.to_bytes() == AppliedPushes().to_bytes()
    assert pushes.add(0, 5, module.WINDOW)
    assert pushes.add(0, 5, 1)
    assert pushes.add(0, 5, module.WINDOW + 1)


@pytest.mark.parametrize(
    "call", [(-1, 1, 1), (1 << 32, 1, 1), (0, -1, 1), (0, 1 << 64, 1), (0, 1, 0), (0, 1, 1 << 64)]
)
def test_numbers_out_of_range(call: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="give"):
        AppliedPushes().add(*call)


def some_pushes() -> AppliedPushes:
    pushes = AppliedPushes()
    for call in [(1, 7, 1), (1, 8, 1), (1, 9, 2), (1, 9, 4), (5, 6, 1), (5, 6, 3), (5, 6, 9)]:
        pushes.add(*call)
    return pushes


def test_bytes_of_another_length_are_refused() -> None:
    data = some_pushes().to_bytes()
    for size in range(len(data)):
        with pytest.raises(StorageDamagedError, match="applied pushes are damaged"):
            AppliedPushes.from_bytes(data[:size])
    with pytest.raises(StorageDamagedError, match="1 bytes too many"):
        AppliedPushes.from_bytes(data + b"\0")


def test_other_bytes_are_refused_or_are_another_state() -> None:
    data = some_pushes().to_bytes()
    num_refused = 0
    for place in range(len(data)):
        for mask in (0x01, 0x80):
            changed = bytearray(data)
            changed[place] ^= mask
            try:
                assert AppliedPushes.from_bytes(changed).to_bytes() == changed
            except StorageDamagedError:
                num_refused += 1
    assert num_refused > len(data)
