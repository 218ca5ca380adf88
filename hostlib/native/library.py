# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The C library of the data path; `*.h` in this folder say what its functions do.

Calls run without the interpreter lock.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import (
    POINTER,
    c_bool,
    c_double,
    c_int,
    c_int32,
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
from .structures import (
    RECEIVE_ROWS,
    SEND_ROWS,
    AllgatherStruct,
    ArrivalsStruct,
    BlockCountersStruct,
    ClosersStruct,
    CongestionStruct,
    EndpointStruct,
    FloatFormatStruct,
    FramesStruct,
    LimbsStruct,
    MembersStruct,
    MismatchStruct,
    PacketLinkStruct,
    RttStruct,
    SlotPlaceStruct,
    SocketCountersStruct,
    SourceStruct,
    StreamOptionsStruct,
    StreamStateStruct,
)

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
