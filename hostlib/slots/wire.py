# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers of the wire format, and its header as a numpy dtype (big-endian on the wire)."""

from __future__ import annotations

import enum
from typing import Final

import numpy as np
from numpy.typing import NDArray

WIRE_VERSION: Final = 2
"""First byte of every Switchfold header; a switch drops and counts any other."""
UDP_PORT: Final = 21318
"""UDP destination port of contributions ("SF"); results come from this port."""

VALUES_PER_PACKET_NARROW: Final = 32
VALUES_PER_PACKET_WIDE: Final = 352
MAX_WORKERS: Final = 32
"""Width of the worker bitmap."""
MAX_PRIORITY: Final = 7
"""Of a packet, `priority_t` of constants.p4: the highest number of a port's queues, which leaves
first."""
NUM_SLOTS: Final = 1024
"""Slots of one switch; each has two physical copies, chosen by the round's parity."""

ETHERNET_BYTES: Final = 14
IPV4_BYTES: Final = 20
UDP_BYTES: Final = 8
HEADER_BYTES: Final = 44
"""The Switchfold header, directly behind UDP."""
VALUE_BYTES: Final = 4

EXPONENT_BIAS: Final = 128
"""The header carries a block exponent e as e + 128: an unsigned maximum orders exponents."""


class Operation(enum.IntEnum):
    """What a packet asks the switch to do, or what the switch answers."""

    AGGREGATE_ADD = 1
    """Contribution: the lanes are added, saturating."""
    AGGREGATE_MAX = 2
    """Contribution: the lanes keep the signed maximum."""
    FLUSH = 3
    """Close the slot's round with the contributors it has; lanes are ignored."""
    PROBE = 4
    """Ask for the state of a slot copy; answered with a NOTICE; lanes are ignored."""
    RESULT = 5
    """Down the tree: the lanes of a closed round with its bitmap and count."""
    NOTICE = 6
    """Down the tree: round, bitmap and count that the slot copy holds; lanes mean nothing."""
    MULTICAST = 7
    """Uses no slot: the switch multicasts the packet with its lanes to the other workers."""
    READ = 8
    """Ask for the values of a hot row; the answer, with values and version, is a READ too."""
    WRITE = 9
    """Values of a hot row from its server; the receipt is a WRITE too."""


class Flag(enum.IntFlag):
    """Bits of the 16-bit flags field."""

    PARTIAL = 1 << 0
    """At least one worker is missing from the result."""
    FLUSHED = 1 << 1
    """The round was closed by a flush."""
    ECN_ECHO = 1 << 2
    """A contribution of this round met congestion."""
    OVERFLOW = 1 << 3
    """At least one lane saturated while this round was added up."""
    LAST = 1 << 4
    """Last chunk of its tensor."""
    REPLAY = 1 << 5
    """Unicast repeat of a stored result, for a retransmission."""
    REPORT = 1 << 6
    """Of a MULTICAST: its lanes list what its sender has received."""
    TO_SERVER = 1 << 7
    """About a hot row: `slot_index` is the row's number, and sums go to the row's server."""
    COLD = 1 << 8
    """Of a NOTICE: the switch does not have the hot row, or not the version that was asked for."""


class Outcome(enum.IntEnum):
    """What the switch did with a Switchfold packet: each has exactly one, each is counted."""

    NONE = 0
    ABSORBED = 1
    """Added (or overwrote a stale copy); the round is still open."""
    COMPLETED = 2
    """Added at the root as the last contribution; the result was multicast."""
    REPLAYED = 3
    """Retransmission or late contribution for a closed round; the stored result went back."""
    DUPLICATE = 4
    """Retransmission while the round is open: dropped."""
    STALE = 5
    """Older generation or round than the copy's: dropped."""
    NOTIFIED = 6
    """Stale in a job with partial results, or a probe: answered with a notice."""
    FLUSHED = 7
    """A flush ended the round; the partial result was multicast, or went to the parent as a sum."""
    FLUSH_IGNORED = 8
    """A flush for a round without contributors, or with fewer than the flush expects: dropped."""
    BAD_LENGTH = 9
    """Not the variant's one datagram size, or the IPv4 and UDP lengths disagree."""
    BAD_CHECKSUM = 10
    """UDP checksum present and wrong."""
    BAD_VERSION = 11
    BAD_OPERATION = 12
    """Unknown operation, or a flush in a job without partial results."""
    BAD_RANGE = 13
    """Start not below end, or more elements than lanes."""
    OFF_GRID = 14
    """Start is not chunk_index times values per packet."""
    FOREIGN_JOB = 15
    """No such job on this switch."""
    FOREIGN_WORKER = 16
    """Worker id, ingress port and source address do not belong together in this job."""
    BAD_GENERATION = 17
    """Not the job's current generation."""
    BAD_SLOT = 18
    """Slot outside the job's range."""
    BAD_CONTRIBUTION = 19
    """Names no worker, one that is not behind this child, or more than there are; or expects a
    number of workers though rounds end only with all of them."""
    MISMATCH = 20
    """Tensor, range or operation differs from what the open round holds."""
    FOREIGN_RESULT = 21
    """A result or notice that does not come from this switch's parent: spoofed."""
    SENT_UP = 22
    """Added as the last contribution below a root; the sum went to the parent."""
    RESENT = 23
    """Retransmission while the parent's result is awaited; the sum went to the parent again."""
    RESULT_STORED = 24
    """The parent's result, which the slot keeps; it was multicast."""
    RESULT_IGNORED = 25
    """The parent's result of a round that has it already, or that was not sent up."""
    RELAYED = 26
    """Passed on: a flush or probe to the parent, the parent's notice to the children."""
    MULTICAST = 27
    """Sent to all children but its sender."""
    MULTICAST_REFUSED = 28
    """A MULTICAST in a tree of more than one switch: dropped."""
    COLD = 29
    """About a row that table `hot_row` does not name, or of another epoch: answered with COLD."""
    VALUES_READ = 30
    """The values of a hot row went to the asker."""
    VALUES_WRITTEN = 31
    """The server's newer values of a hot row, which the switch keeps and passes on."""
    VALUES_KEPT = 32
    """A WRITE of the version that the switch holds: the kept values were passed on again."""
    WRITE_REFUSED = 33
    """A WRITE that does not come from a server: dropped."""


HEADER_DTYPE: Final = np.dtype(
    [
        ("version", "u1"),
        ("operation", "u1"),
        ("flags", ">u2"),
        ("job_id", ">u2"),
        ("worker_id", "u1"),
        ("priority", "u1"),
        ("generation", ">u4"),
        ("slot_index", ">u4"),
        ("round", ">u4"),
        ("tensor_id", ">u4"),
        ("chunk_index", ">u4"),
        ("range_start", ">u4"),
        ("range_end", ">u4"),
        ("worker_bitmap", ">u4"),
        ("num_contributors", ">u2"),
        ("exponent", "u1"),
        ("expected", "u1"),
    ]
)
"""Switchfold header, 44 bytes."""
assert HEADER_DTYPE.itemsize == HEADER_BYTES


def datagram_dtype(values_per_packet: int) -> np.dtype[np.void]:
    """Return the dtype of one datagram: the header and big-endian int32 lanes."""
    return np.dtype([("header", HEADER_DTYPE), ("values", ">i4", (values_per_packet,))])


def datagram_bytes(values_per_packet: int) -> int:
    """Return the size of every Switchfold datagram (UDP payload) of a variant, in bytes."""
    return HEADER_BYTES + VALUE_BYTES * values_per_packet


def frame_bytes(values_per_packet: int) -> int:
    """Return the size of the Ethernet frame without its check sequence, in bytes."""
    return ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES + datagram_bytes(values_per_packet)


def view_datagrams(buffer: NDArray[np.uint8], values_per_packet: int) -> NDArray[np.void]:
    """View a (count, datagram_bytes) uint8 array as (count,) datagrams without a copy."""
    return buffer.view(datagram_dtype(values_per_packet))[..., 0]
