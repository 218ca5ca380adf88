# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How many chunks are under way towards each root: `incast.h` of the C library."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_double, c_uint32, c_uint64
from typing import final

from native_recovery import Slot
from switchfold.hostlib.native.library import library


class _Sample(ctypes.Structure):
    """`incast_sample_t` of incast.h."""

    _fields_ = (("results", c_double), ("again", c_double), ("busy_s", c_double))


class _Incast(ctypes.Structure):
    """`incast_t` of incast.h."""

    _fields_ = (
        ("num_roots", c_uint32),
        ("limit", c_uint32),
        ("most", c_uint32),
        ("before", c_uint32),
        ("to_skip", c_uint32),
        ("num_results", c_uint64),
        ("cut_at", c_uint64),
        ("raise_at", c_uint64),
        ("cuts_failed", c_uint32),
        ("raises_failed", c_uint32),
        ("num_trials", c_uint64),
        ("usual", _Sample),
        ("trial", _Sample),
        ("result_s", c_double),
    )


_new = library.incast_new
_new.restype, _new.argtypes = _Incast, (c_uint32, c_uint32)
_window = library.incast_window
_window.restype, _window.argtypes = c_uint32, (POINTER(_Incast), c_uint32)
_on_results = library.incast_on_results
_on_results.restype = None
_on_results.argtypes = (
    POINTER(_Incast),
    POINTER(POINTER(Slot)),
    c_uint32,
    c_double,
    c_uint32,
    c_uint32,
)


@final
class IncastLimit:
    """The limit of one stream, whose results come one by one."""

    def __init__(self, *, slots: int, roots: int) -> None:
        """Spread `slots` over `roots` of a job."""
        self._state = _new(slots, roots)
        self._window = slots
        self._now_s = 0.0

    @property
    def window(self) -> int:
        """Most chunks that may be under way, if all slots are the only other limit."""
        return _window(ctypes.byref(self._state), self._window)

    def take(self, count: int, again: float, each_s: float, *, is_withheld: bool = False) -> None:
        """Have `count` results come, `each_s` apart, of which a share was sent `again`.

        Those are spread evenly, with a multiple of 1/16. With `is_withheld`, this worker did not
        contribute to any.
        """
        for i in range(count):
            is_again = (i * again) % 1 + again >= 1
            slot = Slot(is_again=is_again, is_withheld=is_withheld)
            self._now_s += each_s
            pointers = (POINTER(Slot) * 1)(ctypes.pointer(slot))
            state = ctypes.byref(self._state)
            _on_results(state, pointers, 1, self._now_s, self._window, self.window)
