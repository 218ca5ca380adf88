# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Bytes of TCP streams on an Ethernet link of MTU 1500."""

from __future__ import annotations

import math
from typing import Final

TCP_FRAME_BYTES: Final = 1514
TCP_PAYLOAD_BYTES: Final = 1448
"""MTU 1500 less IPv4, TCP and its timestamp option."""
TCP_ACK_BYTES: Final = TCP_FRAME_BYTES - TCP_PAYLOAD_BYTES
"""A segment without payload; the receiver sends one for every second segment."""

FIRST_SEGMENTS: Final = 10
"""Segments that a stream sends at once, also after it was idle (RFC 6928)."""
SHARED_USE: Final = 0.92
"""Measured share of a link's rate that long streams on it use until the last one has ended. The
streams share it unevenly, so other links are idle while the last stream still sends."""

RING_USE: Final = 0.95
"""Measured share of slow links that a ring uses: a step waits for that of the neighbour."""
FAST_BITS_PER_S: Final = 2e8
"""Rate from which frames arrive in bursts, so that fewer of them are acknowledged alone. Measured
were links of 40 and 100 Mbit/s, and of 250 Mbit/s to 1 Gbit/s; where the change lies between is not
known."""
BURST_ACKS: Final = 0.4
"""Measured share of acknowledgements that are left on such links."""


def ring_bytes(num_bytes: float, link_bits_per_s: float) -> float:
    """Return the frame bytes of each direction of a ring's links, by which its time is reckoned.

    Each host sends `num_bytes` to its neighbour, whose acknowledgements share the other direction
    with what that one receives.
    """
    there, back = stream_bytes(num_bytes)
    if link_bits_per_s >= FAST_BITS_PER_S:
        return there + BURST_ACKS * back
    return (there + back) / RING_USE


def contention(num_bytes: float, num_streams: int) -> float:
    """Return the factor by which streams that share a network card slow their messages down."""
    segments = num_bytes / TCP_PAYLOAD_BYTES
    if num_streams < 2 or segments <= FIRST_SEGMENTS:
        return 1.0
    return 1 + (1 - FIRST_SEGMENTS / segments) * (1 / SHARED_USE - 1)


def stream_bytes(num_bytes: float) -> tuple[float, float]:
    """Return the frame bytes of a message in its direction, and of its acknowledgements back.

    Every second segment is acknowledged. The acknowledgement of an odd last segment waits up to
    40 ms and travels with the next message in the other direction.
    """
    segments = math.ceil(num_bytes / TCP_PAYLOAD_BYTES)
    return (num_bytes + segments * TCP_ACK_BYTES, segments // 2 * TCP_ACK_BYTES)
