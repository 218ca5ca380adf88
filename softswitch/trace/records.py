# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Splits the byte stream of runtime/program/trace.h into records."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

POINT: Final = 1
MEMORY: Final = 2
START: Final = 3
FRAME: Final = 4
INGRESS: Final = 5
COPY: Final = 6
EGRESS: Final = 7
SENT: Final = 8

_HEAD = struct.Struct("=4I")


@dataclass(frozen=True)
class TraceRecord:
    """One record; a point has values and a phv, the others have bytes only."""

    kind: int
    number: int
    """Of the point, or of the object that belongs to the point before."""
    values: tuple[int, ...]
    data: bytes


def read_records(stream: bytes) -> Iterator[TraceRecord]:
    """Yield the records of a stream, which must hold whole records."""
    at = 0
    while at < len(stream):
        size, kind, number, count = _HEAD.unpack_from(stream, at)
        body = stream[at + _HEAD.size : at + size]
        if kind == POINT:
            values = struct.unpack_from(f"={count}Q", body)
            yield TraceRecord(kind, number, values, body[8 * count :])
        else:
            yield TraceRecord(kind, number, (), body[:count])
        at += size
