# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The seam of runtime/pipeline.h as ctypes structures, member by member.

Strings of bytes that cross the seam are big-endian, `(width + 7) // 8` bytes per field, in the
order of the JSON. Nothing here locks: the owner of a pipeline serialises every call on it.
"""

import ctypes
from ctypes import (
    CFUNCTYPE,
    POINTER,
    c_char_p,
    c_int,
    c_int32,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)
from pathlib import Path

ABI_VERSION = 5
PHV_ALIGNMENT = 64
"""Bytes that a phv must be aligned to."""
DEFAULT_ENTRY_HANDLE = 0xFFFF_FFFF_FFFF_FFFF
"""Handle of a table's default entry in the calls for direct counters."""

P_OK = 0
P_NOT_FOUND = -1
P_EXISTS = -2
P_FULL = -3
P_BAD_ARGUMENT = -4
P_UNSUPPORTED = -5
P_IN_USE = -6

EXTRA_COUNTS = 1
EXTRA_IDLE = 2
"""In TableLayout: what a record holds besides match and action."""

INDIRECT_NONE = 0
INDIRECT_MEMBER = 1
INDIRECT_GROUP = 2

NONE = 0xFFFF_FFFF
"""In IntrinsicT: the program did not ask for it."""


class IntrinsicT(ctypes.Structure):
    """`intrinsic_t`: what the replication engine acts on after ingress or egress."""

    _fields_ = [
        ("egress_spec", c_uint32),
        ("mcast_grp", c_uint32),
        ("clone_session", c_uint32),
        ("clone_fields", c_uint32),
        ("resubmit_fields", c_uint32),
        ("recirculate_fields", c_uint32),
        ("digest_list", c_uint32),
        ("truncate_bytes", c_uint32),
        ("priority", c_uint32),
    ]


class PacketInfo(ctypes.Structure):
    """`packet_info_t`: standard metadata that the caller knows; times in microseconds."""

    _fields_ = [
        ("ingress_port", c_uint32),
        ("packet_length", c_uint32),
        ("instance_type", c_uint32),
        ("egress_port", c_uint32),
        ("egress_rid", c_uint32),
        ("ingress_global_timestamp", c_uint64),
        ("egress_global_timestamp", c_uint64),
        ("enq_timestamp", c_uint32),
        ("enq_qdepth", c_uint32),
        ("deq_timedelta", c_uint32),
        ("deq_qdepth", c_uint32),
    ]


class TableEntry(ctypes.Structure):
    """`table_entry_t`: one table entry as the control plane sees it.

    Set the three pointers from bytes and do not read them back: ctypes stops at the first zero.
    """

    _fields_ = [
        ("key", c_char_p),
        ("mask", c_char_p),
        ("prefix_len", c_int32),
        ("priority", c_int32),
        ("action_id", c_uint32),
        ("params", c_char_p),
        ("params_bytes", c_uint32),
        ("indirect_kind", c_uint32),
        ("indirect_id", c_uint32),
        ("idle_timeout_ns", c_uint64),
        ("now_us", c_uint64),
        ("key_bytes", c_uint32),
    ]


class TableLayout(ctypes.Structure):
    """`table_layout_t`: how the records of a table's entries are laid out."""

    _fields_ = [
        ("key_bytes", c_uint32),
        ("params_bytes", c_uint32),
        ("extras", c_uint32),
        ("record_bytes", c_uint32),
    ]


class GroupMember(ctypes.Structure):
    """`group_member_t`: a member of a group and its weight."""

    _fields_ = [("member", c_uint32), ("weight", c_uint32)]


class MeterRatesT(ctypes.Structure):
    """`meter_rates_t`: rates per second and bursts; 0 in the last member: not configured."""

    _fields_ = [
        ("cir", c_uint64),
        ("cburst", c_uint64),
        ("pir", c_uint64),
        ("pburst", c_uint64),
        ("is_configured", c_uint64),
    ]


_PIPELINE = c_void_p
_PHV = c_void_p
LogFunction = CFUNCTYPE(None, c_void_p, c_void_p, c_uint32)
"""`pipeline_log_t`: context, text and its bytes; the text is not terminated."""


class PipelineOps(ctypes.Structure):
    """`pipeline_ops_t`: the table of functions that a generated library exports."""

    _fields_ = [
        ("abi_version", c_uint32),
        ("phv_bytes", c_uint32),
        ("drop_port", c_uint32),
        ("program_name", c_char_p),
        ("create", CFUNCTYPE(_PIPELINE)),
        ("destroy", CFUNCTYPE(None, _PIPELINE)),
        ("set_drop_port", CFUNCTYPE(None, _PIPELINE, c_uint32)),
        ("set_log", CFUNCTYPE(None, _PIPELINE, LogFunction, c_void_p)),
        (
            "start",
            CFUNCTYPE(None, _PIPELINE, _PHV, c_void_p, c_uint32, POINTER(PacketInfo)),
        ),
        ("parse", CFUNCTYPE(c_int, _PIPELINE, _PHV)),
        ("ingress", CFUNCTYPE(c_int, _PIPELINE, _PHV, POINTER(IntrinsicT))),
        (
            "egress",
            CFUNCTYPE(c_int, _PIPELINE, _PHV, POINTER(PacketInfo), POINTER(IntrinsicT)),
        ),
        ("deparse", CFUNCTYPE(c_int, _PIPELINE, _PHV, c_void_p, c_uint32)),
        ("copy_phv", CFUNCTYPE(None, _PHV, _PHV)),
        ("copy_fields", CFUNCTYPE(c_int, _PIPELINE, _PHV, _PHV, c_uint32)),
        ("save_fields", CFUNCTYPE(c_int, _PIPELINE, _PHV, c_uint32, c_void_p, c_uint32)),
        ("load_fields", CFUNCTYPE(c_int, _PIPELINE, _PHV, c_uint32, c_void_p, c_uint32)),
        ("digest", CFUNCTYPE(c_int, _PIPELINE, _PHV, c_uint32, c_void_p, c_uint32)),
        (
            "table_insert",
            CFUNCTYPE(c_int, _PIPELINE, c_uint32, POINTER(TableEntry), POINTER(c_uint64)),
        ),
        ("table_modify", CFUNCTYPE(c_int, _PIPELINE, c_uint32, POINTER(TableEntry))),
        ("table_delete", CFUNCTYPE(c_int, _PIPELINE, c_uint32, POINTER(TableEntry))),
        (
            "table_find",
            CFUNCTYPE(c_int, _PIPELINE, c_uint32, POINTER(TableEntry), POINTER(c_uint64)),
        ),
        ("table_set_default", CFUNCTYPE(c_int, _PIPELINE, c_uint32, POINTER(TableEntry))),
        ("table_size", CFUNCTYPE(c_uint32, _PIPELINE, c_uint32)),
        ("table_clear", CFUNCTYPE(c_int, _PIPELINE, c_uint32)),
        (
            "direct_counter",
            CFUNCTYPE(c_int, _PIPELINE, c_uint32, c_uint64, POINTER(c_uint64), POINTER(c_uint64)),
        ),
        (
            "direct_counter_write",
            CFUNCTYPE(c_int, _PIPELINE, c_uint32, c_uint64, c_uint64, c_uint64),
        ),
        (
            "direct_meter",
            CFUNCTYPE(c_int, _PIPELINE, c_uint32, c_uint64, POINTER(MeterRatesT)),
        ),
        (
            "direct_meter_write",
            CFUNCTYPE(c_int, _PIPELINE, c_uint32, c_uint64, POINTER(MeterRatesT)),
        ),
        (
            "table_idle",
            CFUNCTYPE(c_int, _PIPELINE, c_uint32, c_uint64, c_uint64, POINTER(c_uint64)),
        ),
        (
            "table_expired",
            CFUNCTYPE(
                c_int,
                _PIPELINE,
                c_uint32,
                c_uint64,
                POINTER(c_uint32),
                c_uint32,
                POINTER(c_uint64),
            ),
        ),
        (
            "table_match",
            CFUNCTYPE(
                c_int,
                _PIPELINE,
                c_uint32,
                c_uint64,
                c_void_p,
                c_void_p,
                POINTER(c_int32),
                POINTER(c_int32),
            ),
        ),
        ("table_layout", CFUNCTYPE(c_int, _PIPELINE, c_uint32, POINTER(TableLayout))),
        (
            "table_dump",
            CFUNCTYPE(
                c_int,
                _PIPELINE,
                c_uint32,
                c_uint64,
                POINTER(c_uint32),
                c_uint32,
                c_void_p,
            ),
        ),
        ("table_open", CFUNCTYPE(c_int, _PIPELINE, c_uint32)),
        (
            "profile_add_member",
            CFUNCTYPE(c_int, _PIPELINE, c_uint32, c_uint32, POINTER(TableEntry)),
        ),
        (
            "profile_modify_member",
            CFUNCTYPE(c_int, _PIPELINE, c_uint32, c_uint32, POINTER(TableEntry)),
        ),
        ("profile_delete_member", CFUNCTYPE(c_int, _PIPELINE, c_uint32, c_uint32)),
        (
            "profile_set_group",
            CFUNCTYPE(c_int, _PIPELINE, c_uint32, c_uint32, POINTER(GroupMember), c_uint32),
        ),
        ("profile_delete_group", CFUNCTYPE(c_int, _PIPELINE, c_uint32, c_uint32)),
        ("meter_read", CFUNCTYPE(c_int, _PIPELINE, c_uint32, c_uint32, POINTER(MeterRatesT))),
        ("meter_write", CFUNCTYPE(c_int, _PIPELINE, c_uint32, c_uint32, POINTER(MeterRatesT))),
        (
            "counter_read",
            CFUNCTYPE(c_int, _PIPELINE, c_uint32, c_uint32, POINTER(c_uint64), POINTER(c_uint64)),
        ),
        (
            "counter_write",
            CFUNCTYPE(c_int, _PIPELINE, c_uint32, c_uint32, c_uint64, c_uint64),
        ),
        (
            "register_read",
            CFUNCTYPE(c_int, _PIPELINE, c_uint32, c_uint32, POINTER(c_uint8), c_uint32),
        ),
        (
            "register_write",
            CFUNCTYPE(c_int, _PIPELINE, c_uint32, c_uint32, c_char_p, c_uint32),
        ),
        (
            "value_set_write",
            CFUNCTYPE(c_int, _PIPELINE, c_uint32, c_char_p, c_uint32, c_uint32),
        ),
    ]


def open_pipeline(library: Path) -> tuple[ctypes.CDLL, PipelineOps]:
    """Load a generated library; keep the result as long as a pipeline of it exists.

    Raises OSError if the file cannot be loaded, ValueError if it was built for another seam.
    """
    handle = ctypes.CDLL(str(library))
    entry = handle.p4_pipeline
    entry.argtypes = []
    entry.restype = POINTER(PipelineOps)
    ops: PipelineOps = entry().contents
    if ops.abi_version != ABI_VERSION:
        raise ValueError(
            f"{library}: built for pipeline seam {ops.abi_version}, this package has "
            f"{ABI_VERSION}; compile the program again"
        )
    return handle, ops
