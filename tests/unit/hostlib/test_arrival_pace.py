# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How long a worker lets datagrams gather."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_bool, c_double, c_uint32

import pytest

from switchfold.hostlib.native.library import library

GATHERED_SHARE = 3


class _State(ctypes.Structure):
    """`pace_t` of pace.h."""

    _fields_ = (
        ("longest_s", c_double),
        ("datagrams", c_double),
        ("time_s", c_double),
        ("taken_s", c_double),
        ("may_pause", c_bool),
    )


class ArrivalPace:
    """The C library's pace; `pace.h` says what its calls mean."""

    def __init__(self, longest_s: float) -> None:
        library.pace_new.restype, library.pace_new.argtypes = _State, [c_double]
        library.pace_pause_s.restype = c_double
        library.pace_pause_s.argtypes = [POINTER(_State), c_uint32, c_double]
        library.pace_note.restype = library.pace_rest.restype = None
        library.pace_note.argtypes = [POINTER(_State), c_uint32, c_bool, c_double]
        library.pace_rest.argtypes = [POINTER(_State)]
        self._state = library.pace_new(longest_s)

    def pause_s(self, under_way: int, limit_s: float) -> float:
        return library.pace_pause_s(self._state, under_way, limit_s)

    def note(self, count: int, now_s: float, *, is_full: bool = False) -> None:
        library.pace_note(self._state, count, is_full, now_s)

    def rest(self) -> None:
        library.pace_rest(self._state)


def steady(pace: ArrivalPace, datagram_s: float, per_tick: int, ticks: int = 40) -> float:
    """Let ticks take datagrams that come evenly; return when the last tick was."""
    now_s = 10.0
    for _ in range(ticks):
        now_s += per_tick * datagram_s
        pace.note(per_tick, now_s)
    return now_s


def test_pause_is_the_time_of_a_share_of_the_expected_datagrams() -> None:
    pace = ArrivalPace(1.0)
    steady(pace, 0.000_12, 20)
    assert pace.pause_s(112, 1.0) == pytest.approx(112 / GATHERED_SHARE * 0.000_12, rel=0.01)
    assert pace.pause_s(112, 0.003) == 0.003


def test_bursts_count_with_the_silences_between_them() -> None:
    pace = ArrivalPace(1.0)
    now_s = 10.0
    for _ in range(40):
        pace.note(0, now_s + 0.008)
        assert pace.pause_s(100, 1.0) == 0.0, "the first datagram of the next burst is awaited"
        pace.note(20, now_s + 0.010)
        now_s += 0.010
    assert pace.pause_s(3 * GATHERED_SHARE, 1.0) == pytest.approx(3 * 0.010 / 20, rel=0.3)


def test_wait_for_the_first_of_a_tensor_does_not_count() -> None:
    pace = ArrivalPace(1.0)
    before_s = steady(pace, 0.000_1, 20)
    expected_s = pace.pause_s(90, 1.0)
    pace.rest()
    pace.note(0, before_s + 5.0)  # others are late
    assert pace.pause_s(90, 1.0) == 0.0
    pace.note(1, before_s + 9.0)
    assert pace.pause_s(90, 1.0) == expected_s


def test_pause_has_a_limit_and_is_nothing_without_a_measurement() -> None:
    pace = ArrivalPace(0.002)
    assert pace.pause_s(1000, 1.0) == 0.0
    steady(pace, 0.01, 1)
    assert pace.pause_s(1000, 1.0) == 0.002
    off = ArrivalPace(0.0)
    steady(off, 0.01, 1)
    assert off.pause_s(1000, 1.0) == 0.0


def test_pause_too_short_to_save_anything_is_left_out() -> None:
    pace = ArrivalPace(1.0)
    steady(pace, 0.000_001, 100)
    assert pace.pause_s(112, 1.0) == 0.0


def test_no_pause_while_datagrams_are_left() -> None:
    pace = ArrivalPace(1.0)
    last_s = steady(pace, 0.000_1, 32)
    assert pace.pause_s(400, 1.0) > 0
    pace.note(32, last_s + 0.003_2, is_full=True)
    assert pace.pause_s(400, 1.0) == 0.0
    pace.note(4, last_s + 0.003_3)
    assert pace.pause_s(400, 1.0) > 0
