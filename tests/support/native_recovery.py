# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The C library's loss recovery alone: `recovery.h` says what its calls mean."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from ctypes import POINTER, c_bool, c_double, c_int64, c_uint16, c_uint32, c_void_p
from enum import IntEnum

from switchfold.hostlib.native.library import library
from switchfold.hostlib.native.structures import RttStruct


class Answer(IntEnum):
    """`answer_t` of trips.h: what a result answers."""

    NOTHING = 0
    ALL = 1
    AGAIN = 2


class Slot(ctypes.Structure):
    """`slot_t` of slot.h."""

    _fields_ = (
        ("tree_id", c_uint16),
        ("tree", c_uint16),
        ("local", c_uint32),
        ("source", c_void_p),
        ("chunk", c_uint32),
        ("round", c_uint32),
        ("is_busy", c_bool),
        ("is_withheld", c_bool),
        ("is_large", c_bool),
        ("is_ahead", c_bool),
        ("is_again", c_bool),
        ("number", c_int64),
        ("first", c_int64),
        ("sent_s", c_double),
        ("deadline_s", c_double),
        ("again_s", c_double),
        ("paid", c_uint32),
        ("signs", c_uint32),
        ("hold_s", c_double),
        ("begun_s", c_double),
        ("may_be_late", c_bool),
        ("has_lacked", c_bool),
        ("is_over", c_bool),
        ("is_set_aside", c_bool),
        ("aside_at", c_uint32),
        ("flush_s", c_double),
        ("pause_s", c_double),
        ("level", c_uint32),
    )


class _State(ctypes.Structure):
    """`recovery_t` of recovery.h."""

    _fields_ = (
        ("slots", POINTER(Slot)),
        ("slot_count", c_uint32),
        ("trees", c_void_p),
        ("trips", c_void_p),
        ("num_trees", c_uint32),
        ("rtt", POINTER(RttStruct)),
        ("next_number", c_int64),
        ("num_again", c_uint32),
        ("lenient_expiries", c_uint32),
        ("num_probes", c_uint32),
        ("expiry_s", c_double),
        ("probe_s", c_double),
        ("review_s", c_double),
        ("resumed_s", c_double),
        ("has_progress", c_bool),
        ("has_sample", c_bool),
        ("again_share", c_double),
    )


_SLOTS = POINTER(POINTER(Slot))
_PROTOTYPES = {
    "rtt_probe_s": (c_double, POINTER(RttStruct)),
    "rtt_timeout_s": (c_double, POINTER(RttStruct)),
    "recovery_init": (
        c_bool,
        POINTER(_State),
        POINTER(Slot),
        c_uint32,
        c_uint32,
        POINTER(RttStruct),
    ),
    "recovery_close": (None, POINTER(_State)),
    "recovery_next_s": (c_double, POINTER(_State)),
    "recovery_resume": (None, POINTER(_State), c_double),
    "recovery_start": (None, POINTER(_State), POINTER(Slot), c_double),
    "recovery_start_again": (None, POINTER(_State), POINTER(Slot), c_double, c_bool),
    "recovery_finish": (
        None,
        POINTER(_State),
        _SLOTS,
        POINTER(c_uint32),
        c_uint32,
        c_double,
        c_bool,
    ),
    "recovery_release": (None, POINTER(_State), POINTER(Slot)),
    "recovery_rest": (None, POINTER(_State)),
    "recovery_lost": (c_uint32, POINTER(_State), c_double, _SLOTS),
    "recovery_silent": (c_uint32, POINTER(_State), c_double, _SLOTS),
    "recovery_expired": (c_uint32, POINTER(_State), c_double, _SLOTS, POINTER(c_uint32)),
}


def _function(name: str) -> Callable[..., int | float]:
    function = library[name]
    function.restype, *function.argtypes = _PROTOTYPES[name]
    return function


class Recovery:
    """Loss recovery of some slots; a row is the number of a slot."""

    def __init__(self, trees: list[int], rtt: RttStruct) -> None:
        """`trees`: by row, the number of its tree."""
        self._slots = (Slot * len(trees))()
        for slot, tree in zip(self._slots, trees, strict=True):
            slot.tree = tree
        self._rtt = rtt
        self._state = _State()
        assert self._call(
            "recovery_init", self._slots, len(trees), max(trees) + 1, ctypes.byref(rtt)
        )

    def __del__(self) -> None:
        self._call("recovery_close")

    def _call(self, name: str, *arguments: object) -> float:
        return _function(name)(ctypes.byref(self._state), *arguments)

    def _slot(self, row: int) -> object:
        return ctypes.byref(self._slots[row])

    def _array(self, rows: Iterable[int]) -> ctypes.Array[ctypes._Pointer[Slot]]:  # pyright: ignore[reportPrivateUsage]
        pointers = [ctypes.pointer(self._slots[row]) for row in rows]
        return (POINTER(Slot) * len(pointers))(*pointers)

    def _rows(self, name: str, now_s: float, *arguments: object) -> list[int]:
        out = (POINTER(Slot) * len(self._slots))()
        count = int(self._call(name, now_s, out, *arguments))
        first = ctypes.addressof(self._slots)
        size = ctypes.sizeof(Slot)
        return [(ctypes.addressof(out[i].contents) - first) // size for i in range(count)]

    @property
    def next_s(self) -> float:
        return self._call("recovery_next_s")

    @property
    def timeout_s(self) -> float:
        """How long after a transmission the timer runs out."""
        return _function("rtt_timeout_s")(ctypes.byref(self._rtt))

    @property
    def probe_after_s(self) -> float:
        """How long after the last result a probe is due."""
        return _function("rtt_probe_s")(ctypes.byref(self._rtt))

    def mark_ahead(self, rows: Iterable[int]) -> None:
        """Have these chunks in a higher queue than the others."""
        for row in rows:
            self._slots[row].is_ahead = True

    def resume(self, now_s: float) -> None:
        self._call("recovery_resume", now_s)

    def start(self, rows: Iterable[int], now_s: float, withheld: Iterable[int] = ()) -> None:
        for row in rows:
            self._slots[row].is_withheld = row in withheld
            self._call("recovery_start", self._slot(row), now_s)

    def start_again(self, rows: Iterable[int], now_s: float, *, is_probe: bool = False) -> None:
        for row in rows:
            self._call("recovery_start_again", self._slot(row), now_s, is_probe)

    def finish(self, rows: list[int], now_s: float, answer: Answer = Answer.ALL) -> None:
        answers = (c_uint32 * len(rows))(*[answer] * len(rows))
        self._call("recovery_finish", self._array(rows), answers, len(rows), now_s, False)

    def abandon(self, rows: Iterable[int]) -> None:
        for row in rows:
            self._call("recovery_release", self._slot(row))
        self._call("recovery_rest")

    def lost(self, now_s: float) -> list[int]:
        return self._rows("recovery_lost", now_s)

    def silent(self, now_s: float) -> list[int]:
        return self._rows("recovery_silent", now_s)

    def expired(self, now_s: float) -> tuple[list[int], int]:
        """Return the rows to send again, and how many of those that expired have later results."""
        outrun = c_uint32()
        rows = self._rows("recovery_expired", now_s, ctypes.byref(outrun))
        return rows, outrun.value
