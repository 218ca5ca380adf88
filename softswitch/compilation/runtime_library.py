# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The C runtime as a shared library, compiled once; runtime/switch/switch.h for ctypes."""

from __future__ import annotations

import ctypes
import functools
import hashlib
from collections.abc import Sequence
from ctypes import (
    POINTER,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from pathlib import Path
from typing import Final, Self

from ..errors import CompileError
from ..switch.impairments import MAX_INTERVALS, Impairments
from ..switch.pipeline import (
    GroupMember,
    MeterRatesT,
    PipelineOps,
    TableEntry,
    TableLayout,
)
from .build_folder import build_folder, cache_errors
from .compiler import (
    INCLUDES,
    RUNTIME,
    default_cache_dir,
    environment_flags,
    find_compiler,
    processor_features,
    run_compiler,
)
from .hardening import HARDENING, LINKING

SOURCES: Final = tuple(sorted([*RUNTIME.glob("ports/*.c"), *RUNTIME.glob("switch/*.c")]))
FLAGS: Final = (
    *("-std=c11", "-O3", "-march=native", "-Wall", "-Wextra", "-pthread"),
    *HARDENING,
    *LINKING,
    *INCLUDES,
)
FRAME_BYTES_MAX: Final = 9232
"""Of runtime/ports/packets.h: the longest frame that the switch carries."""
NO_PROGRAM: Final = -1000
CAPTURE_FAILED: Final = -2000
"""Of runtime/switch/switch.h: minus the errno of opening the capture file."""


class LossIntervalT(ctypes.Structure):
    """`loss_interval_t` of runtime/ports/impairments.h."""

    _fields_ = [("packets", c_uint64), ("ns", c_uint64), ("loss", c_double)]


class ImpairmentsT(ctypes.Structure):
    """`impairments_t` of runtime/ports/impairments.h."""

    _fields_ = [
        ("loss", c_double),
        ("duplication", c_double),
        ("corruption", c_double),
        ("reordering", c_double),
        ("reordering_delay_ns", c_uint64),
        ("reordering_packets", c_uint64),
        ("delay_ns", c_uint64),
        ("rate_bits_per_s", c_double),
        ("queue_packets", c_uint64),
        ("seed", c_uint64),
        ("burst_start", c_double),
        ("burst_end", c_double),
        ("burst_loss", c_double),
        ("interval_count", c_uint32),
        ("script_repeats", c_uint32),
        ("intervals", LossIntervalT * MAX_INTERVALS),
    ]

    @classmethod
    def of(cls, impairments: Impairments) -> Self:
        """Return the settings as the runtime takes them."""
        script = [
            LossIntervalT(each.packets, round(each.seconds * 1e9), each.loss)
            for each in impairments.script
        ]
        return cls(
            loss=impairments.loss,
            duplication=impairments.duplication,
            corruption=impairments.corruption,
            reordering=impairments.reordering,
            reordering_delay_ns=round(impairments.reordering_delay_s * 1e9),
            reordering_packets=impairments.reordering_packets,
            delay_ns=round(impairments.delay_s * 1e9),
            rate_bits_per_s=impairments.rate_bits_per_s,
            queue_packets=impairments.queue_packets,
            seed=impairments.seed,
            burst_start=impairments.burst_start,
            burst_end=impairments.burst_end,
            burst_loss=impairments.burst_loss,
            interval_count=len(script),
            script_repeats=impairments.script_repeats,
            intervals=(LossIntervalT * MAX_INTERVALS)(*script),
        )


class ReplicaT(ctypes.Structure):
    """`replica_t` of runtime/switch/switch.h."""

    _fields_ = [("port", c_uint32), ("replica_id", c_uint32)]


_S = c_void_p
_U = c_uint32
_ENTRY = POINTER(TableEntry)
_OUT64 = POINTER(c_uint64)
_MEM = [_S, _U, c_void_p, c_void_p, _U, c_size_t]

_ARGUMENTS: Final[dict[str, Sequence[object]]] = {
    "switch_close": [_S],
    "switch_lock": [_S],
    "switch_unlock": [_S],
    "switch_destroy": [_S],
    "switch_load": [_S, POINTER(PipelineOps)],
    "switch_start": [_S],
    "switch_stop": [_S],
    "switch_is_running": [_S],
    "switch_add_mem_port": [_S, _U, c_char_p],
    "switch_add_veth_port": [_S, _U, c_char_p, c_int, c_char_p],
    "switch_add_udp_port": [_S, _U, *[c_char_p] * 4, c_int, c_char_p],
    "switch_remove_port": [_S, _U],
    "switch_reopen_port": [_S, _U],
    "switch_udp_number": [_S, _U],
    "switch_port_super_frames": [_S, _U],
    "switch_set_impairments": [_S, _U, c_int, POINTER(ImpairmentsT)],
    "switch_port_statistics": [_S, _U, _OUT64],
    "switch_mem_send": _MEM,
    "switch_mem_receive": [*_MEM, c_int64],
    "switch_process": [_S, _U, c_char_p, _U, c_int, POINTER(c_void_p), POINTER(c_size_t)],
    "switch_set_multicast_group": [_S, _U, POINTER(ReplicaT), _U],
    "switch_delete_multicast_group": [_S, _U],
    "switch_set_clone_session": [_S, _U, POINTER(ReplicaT), _U, _U],
    "switch_delete_clone_session": [_S, _U],
    "switch_open_reports": [_S, c_int, _U],
    "switch_close_reports": [_S, c_int],
    "switch_wait_report": [_S, c_int, c_int64],
    "switch_take_report": [_S, c_int, POINTER(c_uint32), c_void_p, _U],
    "switch_table_insert": [_S, _U, _ENTRY, _OUT64],
    "switch_table_modify": [_S, _U, _ENTRY],
    "switch_table_delete": [_S, _U, _ENTRY],
    "switch_table_find": [_S, _U, _ENTRY, _OUT64],
    "switch_table_set_default": [_S, _U, _ENTRY],
    "switch_table_idle": [_S, _U, _ENTRY, _OUT64],
    "switch_table_expired": [_S, *[POINTER(c_uint32)] * 2, _U, _OUT64],
    "switch_table_match": [_S, _U, c_uint64, c_void_p, c_void_p, *[POINTER(c_int32)] * 2],
    "switch_table_layout": [_S, _U, POINTER(TableLayout)],
    "switch_table_dump": [_S, _U, POINTER(c_uint32), _U, c_void_p],
    "switch_table_get": [_S, _U, _ENTRY, c_void_p],
    "switch_table_open": [_S, _U],
    "switch_table_insert_many": [_S, _U, _U, c_char_p, _U, c_int, POINTER(c_int32)],
    "switch_direct_meter_read": [_S, _U, _ENTRY, POINTER(MeterRatesT)],
    "switch_direct_meter_write": [_S, _U, _ENTRY, POINTER(MeterRatesT)],
    "switch_meter_read": [_S, _U, _U, POINTER(MeterRatesT)],
    "switch_meter_write": [_S, _U, _U, POINTER(MeterRatesT)],
    "switch_profile_add_member": [_S, _U, _U, _ENTRY],
    "switch_profile_modify_member": [_S, _U, _U, _ENTRY],
    "switch_profile_delete_member": [_S, _U, _U],
    "switch_profile_set_group": [_S, _U, _U, POINTER(GroupMember), _U],
    "switch_profile_delete_group": [_S, _U, _U],
    "switch_table_size": [_S, _U, POINTER(c_uint32)],
    "switch_table_clear": [_S, _U],
    "switch_direct_counter_read": [_S, _U, _ENTRY, _OUT64, _OUT64],
    "switch_direct_counter_write": [_S, _U, _ENTRY, c_uint64, c_uint64],
    "switch_counter_read": [_S, _U, _U, _OUT64, _OUT64],
    "switch_counter_write": [_S, _U, _U, c_uint64, c_uint64],
    "switch_register_read": [_S, _U, _U, c_void_p, _U],
    "switch_register_write": [_S, _U, _U, c_char_p, _U],
    "switch_value_set_write": [_S, _U, c_char_p, _U, _U],
    "relay_set": [_S, POINTER(ImpairmentsT), c_uint64],
    "relay_run": [_S],
    "relay_stop": [_S],
    "relay_counters": [_S, _OUT64],
    "relay_destroy": [_S],
    "relay_program": [_U, _U],
}
_WITHOUT_RESULT: Final = (
    *("switch_close", "switch_destroy", "switch_lock", "switch_unlock"),
    *("relay_set", "relay_stop", "relay_counters", "relay_destroy"),
)


def _compile_runtime(library: Path, compiler: tuple[str, ...]) -> None:
    with build_folder(library.parent) as folder:
        built = folder / "runtime.so"
        command = [*compiler, "-shared", "-fPIC", "-o", str(built)]
        command += [str(source) for source in SOURCES]
        done = run_compiler(command, folder)
        if done.returncode:
            raise CompileError(
                f"the switch runtime does not compile: {' '.join(command)}\n{done.stderr}"
            )
        built.rename(library)


def build_runtime(cache_dir: Path | None = None) -> Path:
    """Compile the runtime, or take it from the cache.

    Raises CompilerNotFoundError, CompileError with the compiler's output, or CacheError.
    """
    compiler = (*find_compiler(), *FLAGS, *environment_flags())
    digest = hashlib.sha256(repr((compiler, processor_features())).encode())
    for path in (*SOURCES, *sorted(RUNTIME.rglob("*.h"))):
        digest.update(path.read_bytes())
    library = (cache_dir or default_cache_dir()) / f"runtime-{digest.hexdigest()[:20]}.so"
    with cache_errors(library.parent):
        if not library.exists():
            _compile_runtime(library, compiler)
    return library


class SwitchHandle:
    """A switch of the runtime, as an argument of its functions.

    Each call holds the handle, so the memory is freed only when the switch is closed and the last
    call has returned.
    """

    def __init__(self, library: ctypes.CDLL, address: int) -> None:
        self._library = library
        self._as_parameter_ = c_void_p(address)
        self._is_closed = False

    def close(self) -> None:
        """Close the switch; calls of other threads that are under way end with an error."""
        self._library.switch_close(self)
        self._is_closed = True

    def __del__(self) -> None:
        if self._is_closed:
            self._library.switch_destroy(self)


@functools.cache
def runtime_library(cache_dir: Path | None = None) -> ctypes.CDLL:
    """Load the runtime, and compile it first if the cache does not have it.

    Raises the errors of build_runtime.
    """
    library = ctypes.CDLL(str(build_runtime(cache_dir)))
    library.switch_create.argtypes = [_U, _U, _U, _U]
    library.switch_create.restype = _S
    library.relay_create.argtypes = [c_int, c_int]
    library.relay_create.restype = _S
    library.switch_statistics_count.argtypes = []
    library.switch_statistics_count.restype = _U
    library.switch_statistic_name.argtypes = [_U]
    library.switch_statistic_name.restype = c_char_p
    library.switch_lost_reports.argtypes = [_S, c_int]
    library.switch_lost_reports.restype = c_uint64
    for name, arguments in _ARGUMENTS.items():
        function = getattr(library, name)
        function.argtypes = arguments
        function.restype = None if name in _WITHOUT_RESULT else c_int
    return library
