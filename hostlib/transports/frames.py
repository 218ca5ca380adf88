# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whole Ethernet frames around datagrams, which the C library builds and checks."""

from __future__ import annotations

import ctypes
import socket
from collections import Counter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..control.view import Endpoint
from ..errors import AddressUnreachableError
from ..native import structures as native
from ..native.library import library
from .base import Datagrams

MAC_BYTES: Final = 6
ECN_CAPABLE = 2
"""ECT(0) of RFC 3168: switches may mark these packets."""
_CAUSES: Final = ("good", "other_traffic", "length", "checksum")
"""In the order of `frame_check_t`."""

FrameRows = NDArray[np.uint8]
"""Frames without check sequence, one per row, rows without gaps."""


def parse_mac(mac: str) -> bytes:
    """Return the six bytes of "02:00:00:00:00:01"; raises AddressUnreachableError."""
    try:
        parsed = bytes(int(part, 16) for part in mac.split(":"))
    except ValueError:
        parsed = b""
    if len(parsed) == MAC_BYTES:
        return parsed
    raise AddressUnreachableError(f"{mac!r} is no MAC address; write six hexadecimal bytes")


def parse_ipv4(address: str) -> bytes:
    """Return the four bytes of a dotted IPv4 address; raises AddressUnreachableError."""
    try:
        return socket.inet_pton(socket.AF_INET, address)
    except OSError:
        raise AddressUnreachableError(
            f"{address!r} is no IPv4 address; write it with dots, names are not looked up"
        ) from None


def frames_between(local: Endpoint, remote: Endpoint, datagram_bytes: int) -> native.FramesStruct:
    """Return the layers of frames to `remote`, and of those that come back.

    Raises AddressUnreachableError for an address that is none.
    """
    ends = [
        native.EndpointStruct(
            mac=(ctypes.c_uint8 * MAC_BYTES)(*parse_mac(end.mac)),
            address=(ctypes.c_uint8 * 4)(*parse_ipv4(end.address)),
            udp_port=end.udp_port,
        )
        for end in (local, remote)
    ]
    return library.frames_new(ctypes.byref(ends[0]), ctypes.byref(ends[1]), datagram_bytes)


class FrameCodec:
    """Builds frames from `local` to `remote`, and takes datagrams out of frames that come back."""

    def __init__(self, local: Endpoint, remote: Endpoint, datagram_bytes: int) -> None:
        self._frames = frames_between(local, remote, datagram_bytes)
        self.frame_bytes: int = library.frame_bytes(ctypes.byref(self._frames))

    def wrap(self, datagrams: Datagrams, frames: FrameRows) -> None:
        """Write (count, frame_bytes) frames around the datagrams."""
        rows = np.ascontiguousarray(datagrams)
        library.frames_wrap_rows(
            ctypes.byref(self._frames), rows.ctypes.data, len(rows), frames.ctypes.data
        )

    def unwrap(
        self,
        frames: FrameRows,
        lengths: NDArray[np.int32],
        out: Datagrams,
        counters: Counter[str],
    ) -> int:
        """Copy the datagrams of good frames to `out`; return how many.

        Frames of other traffic, of a wrong length or with a wrong checksum are counted.
        """
        rows = np.ascontiguousarray(frames)
        counts = (ctypes.c_uint64 * len(_CAUSES))()
        good: int = library.frames_unwrap_rows(
            ctypes.byref(self._frames),
            rows.ctypes.data,
            rows.shape[1],
            lengths.ctypes.data,
            len(frames),
            out.ctypes.data,
            counts,
        )
        for cause, count in zip(_CAUSES[1:], counts[1:], strict=True):
            if count:
                counters[cause] += count
        return good
