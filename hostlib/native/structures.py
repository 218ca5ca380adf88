# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Structures, callbacks and numbers of the C library; `*.h` in this folder say what they mean."""

from __future__ import annotations

import ctypes
from ctypes import (
    POINTER,
    c_bool,
    c_char,
    c_double,
    c_int,
    c_int32,
    c_uint,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Final

BATCH: Final = 256
"""Most datagrams sent or taken in one call."""
MAX_MEMBERS: Final = 32
"""Most members of a view with allgathers, and bits of a bitmap; as in allgather.h, tolerance.h."""
MAX_SOCKETS: Final = 32
"""Most switches that a UDP transport reaches; as in socket_transport.h."""
LAYERS_BYTES: Final = 42
"""Of Ethernet, IPv4 and UDP, in front of a datagram in a frame; as in frames.h."""


class EndpointStruct(ctypes.Structure):
    """`endpoint_t` of frames.h."""

    _fields_ = (("mac", c_uint8 * 6), ("address", c_uint8 * 4), ("udp_port", c_uint16))


class FramesStruct(ctypes.Structure):
    """`frames_t` of frames.h."""

    _fields_ = (
        ("datagram_bytes", c_uint32),
        ("layers", c_uint8 * LAYERS_BYTES),
        ("expected", c_uint8 * LAYERS_BYTES),
        ("fixed_sum", c_uint64),
    )


class PacketLinkStruct(ctypes.Structure):
    """`packet_link_t` of socket_transport.h."""

    _fields_ = (("interface", c_char * 16), ("has_offload_header", c_bool), ("join", c_uint32))


class SocketCountersStruct(ctypes.Structure):
    """`socket_counters_t` of socket_transport.h."""

    _fields_ = (
        ("network_error", c_uint64),
        ("path_mtu_ignored", c_uint64),
        ("send_busy", c_uint64),
        ("length", c_uint64),
        ("other_traffic", c_uint64),
        ("checksum", c_uint64),
        ("too_long_in_a_row", c_uint64),
    )


class RttStruct(ctypes.Structure):
    """`rtt_t` of rtt.h."""

    _fields_ = (
        ("minimum_s", c_double),
        ("maximum_s", c_double),
        ("base_s", c_double),
        ("smoothed_s", c_double),
        ("prompt_s", c_double),
        ("variation_s", c_double),
        ("least_s", c_double),
        ("backoff", c_uint),
        ("has_sample", c_bool),
    )


class CongestionStruct(ctypes.Structure):
    """`congestion_t` of congestion.h."""

    _fields_ = (
        ("chunks", c_double),
        ("minimum", c_double),
        ("maximum", c_double),
        ("floor", c_double),
        ("tolerated", c_double),
        ("blind", c_double),
        ("is_slow_start", c_bool),
        ("deaf_for", c_uint32),
        ("recent_results", c_double),
        ("recent_losses", c_double),
    )


class FloatFormatStruct(ctypes.Structure):
    """`float_format_t` of limbs.h."""

    _fields_ = (
        ("bytes", c_uint32),
        ("unused_bits", c_uint32),
        ("significand_bits", c_uint32),
        ("lowest_bit", c_int32),
        ("high", c_int32),
    )


class LimbsStruct(ctypes.Structure):
    """`limbs_t` of limbs.h."""

    _fields_ = (("bits", c_uint32), ("count", c_uint32), ("low", c_int32), ("has_specials", c_bool))


class SpanStruct(ctypes.Structure):
    """`span_t` of limb_sums.h."""

    _fields_ = (("first", c_uint32), ("end", c_uint32))


class LimbGroupStruct(ctypes.Structure):
    """`limb_group_t` of exact.h."""

    _fields_ = (
        ("limbs", LimbsStruct),
        ("width", c_uint32),
        ("unit_chunks", c_uint32),
        ("first_chunk", c_uint64),
    )


class ExactStruct(ctypes.Structure):
    """`exact_t` of exact.h."""

    _fields_ = (
        ("groups", c_void_p),
        ("num_groups", c_uint32),
        ("numbers_per_group", c_uint32),
        ("num_numbers", c_uint32),
        ("lanes_per_chunk", c_uint32),
        ("dtype", FloatFormatStruct),
        ("round_to", FloatFormatStruct),
        ("numbers", c_void_p),
        ("sums", c_void_p),
        ("contributors", c_void_p),
        ("specials", SpanStruct),
        ("num_taken", c_uint32),
        ("is_mean", c_bool),
    )


class ToleranceStruct(ctypes.Structure):
    """`tolerance_t` of tolerance.h."""

    _fields_ = (
        ("left", c_uint32),
        ("limit", c_uint32),
        ("open", c_uint32),
        ("missing", c_uint32 * MAX_MEMBERS),
    )


class ClosersStruct(ctypes.Structure):
    """`closers_t` of tolerance.h."""

    _fields_ = (
        ("count", c_uint32),
        ("own", c_uint32),
        ("members", c_uint32),
        ("level", c_uint32),
        ("is_root", c_uint32),
    )


class SourceStruct(ctypes.Structure):
    """`source_t` of source.h."""

    _fields_ = (
        ("next", c_void_p),
        ("start", c_uint64),
        ("tensor_id", c_uint32),
        ("num_chunks", c_uint32),
        ("num_values", c_uint64),
        ("values", c_uint32),
        ("num_ready", c_uint32),
        ("data", c_void_p),
        ("forward", c_void_p),
        ("backward", c_void_p),
        ("exponents", c_void_p),
        ("withheld", c_void_p),
        ("large", c_void_p),
        ("output", c_void_p),
        ("results", c_void_p),
        ("exact", c_void_p),
        ("contributors", c_void_p),
        ("bitmaps", c_void_p),
        ("tolerance", POINTER(ToleranceStruct)),
        ("stale_left", c_uint32),
        ("is_mean", c_bool),
        ("has_saturated", c_bool),
        ("is_abandoned", c_bool),
        ("is_finished", c_bool),
        ("may_be_stale", c_bool),
        ("has_missed", c_bool),
        ("is_maximum", c_bool),
        ("priority", c_uint8),
        ("large_priority", c_uint8),
        ("num_done", c_uint32),
        ("since_s", c_double),
        ("first_sent_s", c_double),
        ("last_result_s", c_double),
    )


class StreamOptionsStruct(ctypes.Structure):
    """`stream_options_t` of stream.h."""

    _fields_ = (
        ("generation", c_uint32),
        ("worker_bitmap", c_uint32),
        ("child_id", c_uint32),
        ("num_workers", c_uint32),
        ("values_per_packet", c_uint32),
        ("num_trees", c_uint32),
        ("straggler_s", c_double),
        ("initial_rto_s", c_double),
        ("minimum_rto_s", c_double),
        ("maximum_rto_s", c_double),
        ("window", c_uint32),
        ("batch", c_uint32),
        ("coalesce_s", c_double),
        ("control_priority", c_uint32),
        ("has_adaptive_wait", c_bool),
        ("has_statements", c_bool),
        ("has_dynamic_incast", c_bool),
    )


class StreamCountersStruct(ctypes.Structure):
    """`stream_counters_t` of stream.h, in packets."""

    _fields_ = tuple(
        (name, c_uint64)
        for name in (
            "sent",
            "retransmitted",
            "fast_retransmitted",
            "probe_retransmitted",
            "received",
            "replayed",
            "flushed",
            "marked",
            "kept",
        )
    )


class StreamStateStruct(ctypes.Structure):
    """`stream_state_t` of stream.h."""

    _fields_ = (
        ("counters", StreamCountersStruct),
        ("round_trip_s", c_double),
        ("outstanding", c_uint32),
        ("window", c_uint32),
        ("incast_trials", c_uint64),
    )


class SlotPlaceStruct(ctypes.Structure):
    """`slot_place_t` of reducer.h."""

    _fields_ = (("tree", c_uint32), ("local", c_uint32))


class EventStruct(ctypes.Structure):
    """`event_t` of reducer.h."""

    _fields_ = (("kind", c_uint32), ("tensor_id", c_uint32), ("bitmap", c_uint32))


class ArrivalsStruct(ctypes.Structure):
    """`arrivals_t` of reducer.h."""

    _fields_ = (
        ("num_results", c_uint32),
        ("num_blocks", c_uint32),
        ("num_events", c_uint32),
        ("has_multicasts", c_bool),
        ("result_s", c_double),
        ("events", EventStruct * BATCH),
    )


class MembersStruct(ctypes.Structure):
    """`members_t` of allgather.h."""

    _fields_ = (("num_members", c_uint32), ("own", c_uint32), ("ids", c_uint8 * MAX_MEMBERS))


class AllgatherStruct(ctypes.Structure):
    """`allgather_t` of allgather.h."""

    _fields_ = (
        ("tensor_id", c_uint32),
        ("num_chunks", c_uint32),
        ("num_words", c_uint32),
        ("signature", c_uint32),
        ("blocks", c_void_p),
        ("start", c_uint64),
        ("to_send", c_void_p),
        ("to_take", c_void_p),
        ("left", c_uint32 * (MAX_MEMBERS - 1)),
        ("num_incomplete", c_uint32),
        ("is_sent", c_bool),
        ("is_complete", c_bool),
        ("first_sent_s", c_double),
        ("last_result_s", c_double),
    )


class MismatchStruct(ctypes.Structure):
    """`mismatch_t` of block_receiver.h."""

    _fields_ = (
        ("is_there", c_bool),
        ("worker_id", c_uint32),
        ("tensor_id", c_uint32),
        ("other_tensor_id", c_uint32),
    )


class BlockCountersStruct(ctypes.Structure):
    """`block_counters_t` of block_exchange.h, in packets."""

    _fields_ = tuple(
        (name, c_uint64) for name in ("sent", "retransmitted", "received", "marked", "reported")
    )


SEND_ROWS = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint32)
RECEIVE_ROWS = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint32, c_double)
