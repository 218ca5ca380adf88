# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Functions and structures of a worker's hot rows; the headers in `hot_rows/` say what they mean.

Calls keep the interpreter lock: they take less time than another thread's turn would.
"""

from __future__ import annotations

import ctypes
import enum
from ctypes import (
    c_bool,
    c_double,
    c_int64,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..slots.wire import HEADER_BYTES
from .library import declare, library


class PlaceUse(enum.IntEnum):
    """`place_use_t` of hot_pushes.h."""

    FREE = 0
    SENT = enum.auto()
    QUIET = enum.auto()
    OVER = enum.auto()
    ABANDONED = enum.auto()


class RowMapStruct(ctypes.Structure):
    """`row_map_t` of row_map.h."""

    _fields_ = (
        ("size", c_uint32),
        ("num_lanes", c_uint32),
        ("first_number", c_uint32),
        ("span", c_uint32),
        ("index", c_void_p),
        ("numbers", c_void_p),
        ("epochs", c_void_p),
        ("scales", c_void_p),
    )


class HotCellsStruct(ctypes.Structure):
    """`hot_cells_t` of hot_cells.h."""

    _fields_ = (
        ("keys", c_void_p),
        ("slots", c_void_p),
        ("mask", c_uint32),
        ("num_cells", c_uint32),
        ("width", c_uint32),
        ("num_lanes", c_uint32),
        ("keys_per_unit", c_uint32),
        ("rows_per_unit", c_uint32),
        ("first_row", c_uint32),
    )


class HotPacketsStruct(ctypes.Structure):
    """`hot_packets_t` of hot_packets.h."""

    _fields_ = (
        ("head", c_uint8 * HEADER_BYTES),
        ("num_workers", c_uint32),
        ("capacity", c_uint32),
        ("count", c_uint32),
        ("packets", c_void_p),
    )


class OpenCallsStruct(ctypes.Structure):
    """`open_calls_t` of open_calls.h."""

    _fields_ = (
        ("head", c_void_p),
        ("call", c_void_p),
        ("older", c_void_p),
        ("free", c_void_p),
        ("parts", c_void_p),
        ("ended", c_void_p),
        ("num_free", c_int64),
        ("num_ended", c_int64),
    )


class PlaceListStruct(ctypes.Structure):
    """`place_list_t` of hot_pushes.h."""

    _fields_ = (("at", c_void_p), ("count", c_int64))


class HotPushesStruct(ctypes.Structure):
    """`hot_pushes_t` of hot_pushes.h."""

    _fields_ = (
        ("map", c_void_p),
        ("packets", c_void_p),
        ("calls", c_void_p),
        ("flush_s", c_double),
        ("next_s", c_double),
        ("bit", c_uint32),
        ("next", c_void_p),
        ("is_ahead", c_void_p),
        ("cold_until_s", c_void_p),
        ("stamps", c_void_p),
        ("targets", c_void_p),
        ("held", c_void_p),
        ("use", c_void_p),
        ("round", c_void_p),
        ("due_s", c_void_p),
        ("ticks", c_void_p),
        ("renames", c_void_p),
        ("unfit", PlaceListStruct),
        ("late", PlaceListStruct),
        ("asked", PlaceListStruct),
        ("cold", PlaceListStruct),
        ("touched", PlaceListStruct),
        ("stamp", c_uint64),
    )


class HotReadsStruct(ctypes.Structure):
    """`hot_reads_t` of hot_reads.h."""

    _fields_ = (
        ("map", c_void_p),
        ("packets", c_void_p),
        ("calls", c_void_p),
        ("try_s", c_double),
        ("next_s", c_double),
        ("newest", c_uint32),
        ("values", c_void_p),
        ("version", c_void_p),
        ("has_version", c_void_p),
        ("due_s", c_void_p),
        ("tries", c_void_p),
        ("stamps", c_void_p),
        ("fallen", PlaceListStruct),
        ("stamp", c_uint64),
    )


_PROTOTYPES: Final[dict[str, tuple[Any, ...]]] = {
    # name: result, arguments
    "row_map_find_all": (None, c_void_p, c_void_p, c_uint64, c_void_p),
    "open_calls_attach_all": (None, c_void_p, c_void_p, c_uint64, c_int64),
    "open_calls_move_all": (None, c_void_p, c_void_p, c_void_p, c_uint64),
    "open_calls_list": (c_uint64, c_void_p, c_void_p, c_uint64, c_bool, c_void_p),
    "hot_cells_index": (None, c_void_p),
    "hot_cells_split": (
        c_uint64,
        c_void_p,
        c_void_p,
        c_double,
        c_void_p,
        c_uint64,
        c_void_p,
        c_void_p,
        c_void_p,
    ),
    "hot_cells_touch": (None, c_void_p, c_void_p, c_uint64, c_void_p),
    "hot_cells_gather": (None, c_void_p, c_uint64, c_uint32, c_void_p, c_uint64, c_void_p),
    "hot_pushes_begin": (None, c_void_p),
    "hot_pushes_add": (
        None,
        c_void_p,
        c_void_p,
        c_void_p,
        c_void_p,
        c_uint64,
        c_void_p,
        c_int64,
        c_double,
    ),
    "hot_pushes_send": (None, c_void_p, c_void_p, c_uint64),
    "hot_pushes_decide": (c_bool, c_void_p, c_void_p, c_uint64, c_double),
    "hot_pushes_push_waiting": (None, c_void_p, c_void_p, c_uint64, c_double),
    "hot_pushes_settle": (None, c_void_p, c_void_p, c_uint64),
    "hot_pushes_rename": (None, c_void_p, c_void_p, c_uint64, c_double),
    "hot_pushes_tick": (None, c_void_p, c_double),
    "hot_reads_add": (None, c_void_p, c_void_p, c_void_p, c_uint64, c_int64, c_double),
    "hot_reads_give": (None, c_void_p, c_void_p, c_void_p, c_void_p, c_uint64, c_void_p),
    "hot_reads_tick": (None, c_void_p, c_double),
    "hot_rows_take": (None, c_void_p, c_void_p, c_void_p, c_uint64),
}

hot_library: Final = ctypes.PyDLL(library._name)
declare(_PROTOTYPES, hot_library)


def place_lists(count: int, capacity: int) -> tuple[NDArray[np.int64], list[PlaceListStruct]]:
    """Return memory for lists of places, one row each, and the empty lists; both stay together."""
    memory = np.empty((count, capacity), np.int64)
    first: int = memory.__array_interface__["data"][0]
    return memory, [PlaceListStruct(first + i * memory.strides[0], 0) for i in range(count)]
