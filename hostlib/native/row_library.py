# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Functions of the C library for sparse tables; the headers in `rows/` say what they mean."""

from __future__ import annotations

import ctypes
import enum
from ctypes import (
    POINTER,
    c_bool,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any, Final

from .library import declare

MOST_WIDTH: Final = 1 << 20
"""Most values of a row; as in row_table.h."""
MOST_ROWS: Final = 1 << 31
"""Most rows of a table; as in row_table.h."""
MOST_POSITIONS: Final = 1 << 30
"""Most keys in one call; as in key_batch.h."""
OPTIMISER_NUMBERS: Final = 4
"""Most numbers that an optimiser has; as in optimisers.h."""


class RowStatus(enum.IntEnum):
    """`row_status_t` of row_status.h."""

    DONE = 0
    NO_MEMORY = enum.auto()
    FULL = enum.auto()
    NOT_FINITE = enum.auto()
    SUM_NOT_FINITE = enum.auto()
    LSN = enum.auto()
    FORMAT = enum.auto()


class InitialKind(enum.IntEnum):
    """`initial_kind_t` of initial.h."""

    ZEROS = 0
    UNIFORM = enum.auto()
    NORMAL = enum.auto()


class InitialStruct(ctypes.Structure):
    """`initial_t` of initial.h."""

    _fields_ = (
        ("seed", c_uint64),
        ("kind", c_uint32),
        ("low", c_float),
        ("high", c_float),
        ("deviation", c_float),
    )


class RowTableOptionsStruct(ctypes.Structure):
    """`row_table_options_t` of row_table.h."""

    _fields_ = (
        ("width", c_uint32),
        ("max_rows", c_uint32),
        ("numbers", c_double * OPTIMISER_NUMBERS),
        ("initial", InitialStruct),
    )


class RowPushStruct(ctypes.Structure):
    """`row_push_t` of row_table.h."""

    _fields_ = (
        ("lsn", c_uint64),
        ("is_replay", c_bool),
        ("is_start", c_bool),
        ("is_check", c_bool),
    )


_PROTOTYPES: Final[dict[str, tuple[Any, ...]]] = {
    # name: result, arguments
    "optimiser_find": (c_void_p, c_char_p),
    "optimiser_states": (c_uint32, c_void_p),
    "optimiser_apply": (
        None,
        c_void_p,
        POINTER(c_double),
        c_void_p,
        c_void_p,
        c_void_p,
        c_uint64,
        c_uint64,
    ),
    "placement_shards": (None, c_void_p, c_uint64, c_uint32, c_void_p),
    "placement_order": (None, c_void_p, c_uint64, c_uint32, c_void_p, c_void_p),
    "row_order": (c_int, c_void_p, c_void_p, c_uint32, c_uint32, c_uint32, c_void_p),
    "row_table_new": (c_void_p, c_void_p, POINTER(RowTableOptionsStruct)),
    "row_table_free": (None, c_void_p),
    "row_table_rows": (c_uint32, c_void_p),
    "row_table_lsn": (c_uint64, c_void_p),
    "row_table_pull": (
        c_int,
        c_void_p,
        c_void_p,
        c_uint32,
        c_void_p,
        c_void_p,
        POINTER(c_uint32),
    ),
    "row_table_push": (
        c_int,
        c_void_p,
        POINTER(RowPushStruct),
        c_void_p,
        c_void_p,
        c_uint32,
        POINTER(c_uint32),
    ),
    "row_chunk_bytes": (c_uint64, c_void_p, c_uint32),
    "row_table_export": (c_uint32, c_void_p, c_uint32, c_uint32, c_void_p),
    "row_table_import": (c_int, c_void_p, c_void_p, c_uint64, POINTER(c_uint32)),
}

declare(_PROTOTYPES)
