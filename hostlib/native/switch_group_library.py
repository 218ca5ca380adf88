# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Functions and structures of switch groups; the headers in `switch_groups/` say what they mean.

Calls run without the interpreter lock.
"""

from __future__ import annotations

import ctypes
import enum
from ctypes import c_bool, c_double, c_uint8, c_uint32, c_uint64, c_void_p
from typing import Any, Final

from ..slots.wire import HEADER_BYTES
from .library import declare, library
from .structures import CongestionStruct, RttStruct


class GroupChunkState(enum.IntEnum):
    """`group_chunk_state_t` of group_member.h."""

    UNSENT = 0
    SENT = enum.auto()
    KEPT = enum.auto()
    DONE = enum.auto()


class GroupStreamStruct(ctypes.Structure):
    """`group_stream_t` of group_stream.h."""

    _fields_ = (
        ("head", c_uint8 * HEADER_BYTES),
        ("num_lanes", c_uint32),
        ("first_row", c_uint32),
        ("num_rows", c_uint32),
        ("epoch", c_uint32),
        ("first_round", c_uint32),
        ("num_chunks", c_uint32),
        ("num_values", c_uint32),
        ("num_members", c_uint32),
        ("first", c_uint64),
    )


class GroupMemberStruct(ctypes.Structure):
    """`group_member_t` of group_member.h."""

    _fields_ = (
        ("stream", GroupStreamStruct),
        ("bit", c_uint32),
        ("values", c_void_p),
        ("scales", c_void_p),
        ("exponents", c_void_p),
        ("states", c_void_p),
        ("tries", c_void_p),
        ("sent_s", c_void_p),
        ("done", c_uint32),
        ("next", c_uint32),
        ("end", c_uint32),
        ("under_way", c_uint32),
        ("num_resent", c_uint32),
        ("heard_s", c_double),
        ("rtt", RttStruct),
        ("window", CongestionStruct),
    )


class GroupSumStruct(ctypes.Structure):
    """`group_sum_t` of group_sum.h."""

    _fields_ = (
        ("stream", GroupStreamStruct),
        ("members", c_uint32),
        ("scales", c_void_p),
        ("values", c_void_p),
        ("has", c_void_p),
        ("asked_s", c_void_p),
        ("done", c_uint32),
        ("end", c_uint32),
        ("num_marked", c_uint32),
        ("num_repeated", c_uint32),
        ("num_foreign", c_uint32),
        ("num_overflowed", c_uint32),
    )


_PROTOTYPES: Final[dict[str, tuple[Any, ...]]] = {
    # name: result, arguments
    "group_member_begin": (None, c_void_p, c_double),
    "group_member_note": (None, c_void_p, c_uint32, c_void_p, c_uint32, c_uint32, c_double),
    "group_member_take": (None, c_void_p, c_void_p, c_uint32, c_double),
    "group_member_fill": (c_uint32, c_void_p, c_void_p, c_uint32, c_double),
    "group_member_due_s": (c_double, c_void_p),
    "group_sum_begin": (None, c_void_p),
    "group_sum_take": (c_uint32, c_void_p, c_void_p, c_uint32),
    "group_sum_ask": (c_uint32, c_void_p, c_bool, c_double, c_void_p, c_uint32, c_double),
}
declare(_PROTOTYPES, library)
