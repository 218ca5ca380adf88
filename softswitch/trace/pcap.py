# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames of a pcap file."""

import struct
from collections.abc import Iterator
from pathlib import Path

from ..errors import SoftswitchError


class PcapError(SoftswitchError):
    """The file is not a pcap file, or cuts its frames."""


def read_pcap(path: Path) -> Iterator[bytes]:
    """Yield the frames of a classic pcap file, either byte order, micro- or nanoseconds."""
    data = path.read_bytes()
    order = {b"\xa1\xb2\xc3\xd4": ">", b"\xa1\xb2\x3c\x4d": ">"}.get(data[:4])
    if order is None and data[:4][::-1] in {b"\xa1\xb2\xc3\xd4", b"\xa1\xb2\x3c\x4d"}:
        order = "<"
    if order is None or len(data) < 24:
        raise PcapError(f"{path}: not a pcap file (convert pcapng with 'editcap -F pcap')")
    at = 24
    while at + 16 <= len(data):
        captured, original = struct.unpack_from(f"{order}2I", data, at + 8)
        at += 16
        if captured != original or at + captured > len(data):
            raise PcapError(f"{path}: a frame at byte {at} is cut short")
        yield data[at : at + captured]
        at += captured
