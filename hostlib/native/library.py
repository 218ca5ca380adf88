# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The C library of the data path, and its structures; `*.h` in this folder say what they mean.

Calls run without the interpreter lock.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
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
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from ..errors import TransportError

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

_PROTOTYPES: Final[dict[str, tuple[Any, ...]]] = {
    # name: result, arguments
    "frames_new": (FramesStruct, POINTER(EndpointStruct), POINTER(EndpointStruct), c_uint32),
    "frame_bytes": (c_uint32, POINTER(FramesStruct)),
    "frames_wrap_rows": (None, POINTER(FramesStruct), c_void_p, c_uint32, c_void_p),
    "frames_unwrap_rows": (
        c_uint32,
        POINTER(FramesStruct),
        c_void_p,
        c_uint32,
        c_void_p,
        c_uint32,
        c_void_p,
        POINTER(c_uint64),
    ),
    "socket_transport_new": (c_void_p, c_int, c_int),
    "socket_transport_free": (None, c_void_p),
    "socket_transport_route": (
        c_bool,
        c_void_p,
        POINTER(c_int),
        c_uint32,
        POINTER(c_uint16),
        POINTER(c_uint8),
        c_uint32,
    ),
    "socket_transport_open": (None, c_void_p, c_uint32, POINTER(FramesStruct)),
    "socket_transport_open_packets": (
        None,
        c_void_p,
        POINTER(FramesStruct),
        POINTER(PacketLinkStruct),
    ),
    "socket_transport_close": (None, c_void_p),
    "socket_transport_base": (c_void_p, c_void_p),
    "socket_transport_counters": (POINTER(SocketCountersStruct), c_void_p),
    "socket_transport_segments": (c_uint32, c_void_p),
    "socket_transport_most_segments": (c_uint32, c_void_p),
    "socket_transport_joins": (c_bool, c_void_p),
    "transport_send_rows": (c_int, c_void_p, c_void_p, c_uint32, c_uint32),
    "transport_receive_rows": (c_int, c_void_p, c_void_p, c_uint32, c_uint32, c_double),
    "callback_transport_new": (c_void_p, SEND_ROWS, RECEIVE_ROWS, c_uint32),
    "callback_transport_free": (None, c_void_p),
    "float16_exponents": (None, c_void_p, c_uint32, c_uint32, c_void_p),
    "float32_exponents": (None, c_void_p, c_uint32, c_uint32, c_void_p),
    "float64_exponents": (None, c_void_p, c_uint32, c_uint32, c_void_p),
    "limbs_ranges": (
        None,
        c_void_p,
        POINTER(FloatFormatStruct),
        c_uint32,
        c_uint32,
        c_void_p,
    ),
    "exact_layout": (
        c_uint64,
        c_void_p,
        POINTER(LimbsStruct),
        c_uint32,
        c_uint32,
        c_uint32,
        c_void_p,
    ),
    "float32_factors": (None, c_void_p, c_uint32, c_int32, c_void_p, c_void_p, c_void_p),
    "float64_factors": (None, c_void_p, c_uint32, c_int32, c_void_p, c_void_p, c_void_p),
    "rtt_new": (RttStruct, c_double, c_double, c_double),
    "rtt_queueing_s": (c_double, POINTER(RttStruct)),
    "rtt_steady_s": (c_double, POINTER(RttStruct)),
    "rtt_timeout_s": (c_double, POINTER(RttStruct)),
    "rtt_add_sample": (None, POINTER(RttStruct), c_double),
    "rtt_back_off": (None, POINTER(RttStruct)),
    "congestion_tolerated": (c_double, c_uint32),
    "congestion_new": (CongestionStruct, c_uint32, c_uint32, c_uint32, c_uint32, c_double),
    "congestion_limit": (c_uint32, POINTER(CongestionStruct)),
    "congestion_on_results": (None, POINTER(CongestionStruct), c_uint32, c_uint32, c_uint32),
    "congestion_on_loss": (None, POINTER(CongestionStruct), c_uint32, c_uint32),
    "reducer_new": (
        c_void_p,
        c_void_p,
        POINTER(StreamOptionsStruct),
        POINTER(c_uint16),
        POINTER(c_uint32),
        POINTER(ClosersStruct),
        POINTER(SlotPlaceStruct),
        c_uint32,
        c_uint32,
        POINTER(MembersStruct),
    ),
    "reducer_free": (None, c_void_p),
    "reducer_stream": (c_void_p, c_void_p, c_uint32),
    "reducer_blocks": (c_void_p, c_void_p),
    "reducer_refused": (POINTER(c_uint64), c_void_p),
    "reducer_poll": (c_int, c_void_p, c_double, POINTER(ArrivalsStruct)),
    "reducer_interrupt": (None, c_void_p),
    "reducer_send": (c_int, c_void_p, c_double),
    "reducer_take": (
        c_int,
        c_void_p,
        POINTER(c_void_p),
        c_uint32,
        c_double,
        POINTER(ArrivalsStruct),
    ),
    "reducer_keep_time": (c_int, c_void_p, c_double),
    "reducer_next_s": (c_double, c_void_p),
    "stream_enqueue": (None, c_void_p, POINTER(SourceStruct)),
    "stream_abandon": (None, c_void_p, POINTER(SourceStruct)),
    "stream_is_hungry": (c_bool, c_void_p),
    "stream_outstanding": (c_uint32, c_void_p),
    "stream_oldest": (c_void_p, c_void_p),
    "stream_state": (StreamStateStruct, c_void_p),
    "block_exchange_enqueue": (c_int, c_void_p, POINTER(AllgatherStruct), c_double),
    "block_exchange_next_s": (c_double, c_void_p),
    "block_exchange_mismatch": (POINTER(MismatchStruct), c_void_p),
    "block_exchange_lagging": (c_uint32, c_void_p),
    "block_exchange_is_owing": (c_bool, c_void_p),
    "block_exchange_counters": (BlockCountersStruct, c_void_p),
    "block_sender_largest_window": (c_uint32, c_uint32, c_uint32),
    "source_fill_rows": (None, POINTER(SourceStruct), c_uint32, c_uint32, c_void_p, c_uint32),
    "source_take_rows": (None, POINTER(SourceStruct), c_uint32, c_uint32, c_void_p, c_uint32),
    "add_values": (c_bool, c_void_p, c_void_p, c_uint64),
    "hadamard_forward": (None, c_void_p, c_uint64, c_uint32, c_uint64, c_void_p),
    "hadamard_inverse": (None, c_void_p, c_uint64, c_uint32, c_uint64, c_void_p),
}


def address(array: NDArray[Any]) -> int:
    """Return where an array's memory begins."""
    place: int = array.__array_interface__["data"][0]  # sooner there than `array.ctypes.data`
    return place


def declare(prototypes: Mapping[str, tuple[Any, ...]], loaded: ctypes.CDLL | None = None) -> None:
    """Set result and arguments of functions; `prototypes` has them by name, the result first.

    `loaded` is the library as it was loaded for calls of another kind. Raises TransportError if the
    library does not have one of the functions.
    """
    try:
        for name, (result, *arguments) in prototypes.items():
            function = getattr(library if loaded is None else loaded, name)
            function.restype, function.argtypes = result, arguments
    except AttributeError as exc:
        raise _missing(exc) from exc


def _missing(cause: Exception) -> TransportError:
    return TransportError(
        f"the C library of the data path is missing or older than this code: {cause}. Install"
        " switchfold again with pip, which compiles it; that needs a C compiler (on Debian or"
        " Ubuntu: apt-get install gcc libc6-dev)"
    )


def _load() -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(Path(__file__).with_name("_native.abi3.so")))
    except OSError as exc:
        raise _missing(exc) from exc


library: Final = _load()
declare(_PROTOTYPES)
