# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sums that may lack a share over one switch and lossy links, in simulated time: loss_network.h.

The workers are those of the host library that Python has loaded. Links, clock and switch are in C,
as a schedule has hundreds of packets. Each packet leaves a record, which others check.
"""

from __future__ import annotations

import ctypes
import functools
import subprocess
import tempfile
from collections.abc import Iterator
from ctypes import POINTER, c_char_p, c_double, c_uint8, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from loss_ledger import Packet
from switchfold.hostlib.native.library import library
from switchfold.hostlib.slots.wire import HEADER_BYTES
from switchfold.softswitch.compilation.compiler import find_compiler

NUM_VALUES: Final = 2
SENT, ARRIVED, ANSWERED_ONE, ANSWERED_ALL, GOT = range(5)
"""`record_kind_t`."""
KINDS: Final = ("all", "to the switch", "flushes", "results of one", "silence of one")
"""Of loss, in the order of `loss_kind_t`."""
_NATIVE: Final = Path(__file__).parents[2] / "hostlib" / "native"
_RECORD_BYTES: Final = 4 + HEADER_BYTES + 4 * NUM_VALUES
_FIELDS: Final = {  # place in the packet and type
    "operation": (1, "u1"),
    "slot": (12, ">u4"),
    "round": (16, ">u4"),
    "tensor": (20, ">u4"),
    "chunk": (24, ">u4"),
    "bitmap": (36, ">u4"),
    "contributors": (40, ">u2"),
    "expected": (43, "u1"),
    "first": (HEADER_BYTES, ">i4"),
    "second": (HEADER_BYTES + 4, ">i4"),
}
_RECORD: Final = np.dtype(
    {
        "names": ["kind", "worker", *_FIELDS],
        "formats": ["u2", "u2", *(kind for _, kind in _FIELDS.values())],
        "offsets": [0, 2, *(4 + place for place, _ in _FIELDS.values())],
        "itemsize": _RECORD_BYTES,
    }
)


class SettingsStruct(ctypes.Structure):
    """`settings_t`."""

    _fields_ = (
        ("seed", c_uint64),
        ("num_workers", c_uint32),
        ("exponent_slots", c_uint32),
        ("slot_count", c_uint32),
        ("kind", c_uint32),
        ("one", c_uint32),
        ("is_adaptive", c_uint32),
        ("loss", c_double),
        ("duplication", c_double),
        ("reordering", c_double),
        ("silence_s", c_double),
        ("delay_s", c_double),
        ("packet_s", c_double),
        ("pause_s", c_double),
    )


class _PartStruct(ctypes.Structure):
    """`part_t`."""

    _fields_ = (
        ("data", c_void_p),
        ("large", c_void_p),
        ("is_tolerant", c_uint32),
        ("left", c_uint32),
        ("limit", c_uint32),
        ("late_s", c_double),
        ("output", c_void_p),
        ("contributors", c_void_p),
        ("bitmaps", c_void_p),
        ("has_missed", c_uint32),
    )


@dataclass(kw_only=True)
class Part:
    """What one worker adds, and what it has got of the sum."""

    values: NDArray[np.int32]
    """Shape (chunks, NUM_VALUES)."""
    large: NDArray[np.uint8] | None
    budget: tuple[int, int] | None
    """None: nothing is tolerated."""
    late_s: float = 0.0

    def __post_init__(self) -> None:
        """Make room for what it gets."""
        num_chunks = len(self.values)
        self.output = np.zeros_like(self.values)
        self.contributors = np.zeros(num_chunks, np.uint16)
        self.bitmaps = np.zeros(num_chunks, np.uint32)
        self.has_missed = False


@functools.cache
def _load() -> Any:
    """Compile the network against the loaded library, and load it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "loss_network.so"
        flags = ["-std=c11", "-O2", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"]
        flags += ["-shared", "-fPIC", f"-I{_NATIVE}"]
        source = Path(__file__).with_suffix(".c")
        own = str(Path(library._name).resolve())
        subprocess.run([*find_compiler(), *flags, "-o", path, source, own, "-lm"], check=True)
        loaded = ctypes.CDLL(str(path))
    part, settings = POINTER(_PartStruct), POINTER(SettingsStruct)
    for name, result, arguments in (
        ("network_new", c_void_p, [settings]),
        ("network_free", None, [c_void_p]),
        ("network_sum", c_char_p, [c_void_p, c_uint32, c_uint32, part]),
        ("network_records", POINTER(c_uint8), [c_void_p, POINTER(c_uint32)]),
    ):
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def _address(array: NDArray[Any] | None) -> int | None:
    return None if array is None else array.ctypes.data


class LossNetwork:
    """Workers, links, a switch and a clock."""

    def __init__(self, settings: SettingsStruct) -> None:
        self._library = _load()
        self._handle = self._library.network_new(ctypes.byref(settings))
        self._num_tensors = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._library.network_free(self._handle)

    def sum(self, parts: list[Part]) -> None:
        """Let all workers sum the next tensor, whose ids count from 1; AssertionError if not."""
        self._num_tensors += 1
        structs = (_PartStruct * len(parts))()
        for part, struct in zip(parts, structs, strict=True):
            left, limit = part.budget or (0, 0)
            struct.data, struct.large = _address(part.values), _address(part.large)
            struct.is_tolerant, struct.left, struct.limit = part.budget is not None, left, limit
            struct.late_s, struct.output = part.late_s, _address(part.output)
            struct.contributors, struct.bitmaps = (
                _address(part.contributors),
                _address(part.bitmaps),
            )
        num_chunks = len(parts[0].values)
        problem = self._library.network_sum(self._handle, self._num_tensors, num_chunks, structs)
        assert problem is None, problem.decode()
        for part, struct in zip(parts, structs, strict=True):
            part.has_missed = bool(struct.has_missed)

    @property
    def raw_records(self) -> NDArray[np.uint8]:
        """The records of the last sum as bytes, one in a row."""
        count = c_uint32()
        first = self._library.network_records(self._handle, ctypes.byref(count))
        rows = np.ctypeslib.as_array(first, (count.value, _RECORD_BYTES))
        return rows.copy()

    @staticmethod
    def packets(records: NDArray[np.uint8]) -> Iterator[tuple[int, int, Packet]]:
        """Return kind, worker and packet of each record."""
        for kind, worker, *fields, first, second in records.view(_RECORD)[:, 0].tolist():
            yield kind, worker, Packet(*fields, (first, second))
