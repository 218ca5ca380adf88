# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a TCP stream puts on an Ethernet link of MTU 1500."""

from __future__ import annotations

import math
from typing import Final

TCP_FRAME_BYTES: Final = 1514
TCP_PAYLOAD_BYTES: Final = 1448
"""MTU 1500 less IPv4, TCP and its timestamp option."""
TCP_ACK_BYTES: Final = TCP_FRAME_BYTES - TCP_PAYLOAD_BYTES
"""A segment without payload; one for every second segment, the other way."""

FIRST_SEGMENTS: Final = 10
"""What a stream sends at once, also after it was idle (RFC 6928)."""
SHARED_USE: Final = 0.92
"""Of a link's rate: what long streams that share it make of it until the last has ended; measured.
They share it unevenly, and who is last has waited for links that stood idle elsewhere."""


def contention(num_bytes: float, num_streams: int) -> float:
    """Return by how much longer messages in streams that share a card take than their bytes."""
    segments = num_bytes / TCP_PAYLOAD_BYTES
    if num_streams < 2 or segments <= FIRST_SEGMENTS:
        return 1.0
    return 1 + (1 - FIRST_SEGMENTS / segments) * (1 / SHARED_USE - 1)


def stream_bytes(num_bytes: float) -> tuple[float, float]:
    """Return the frames' bytes of a message in its direction, and of its acknowledgements back.

    A last segment without a partner waits up to 40 ms, and is acknowledged by what comes back.
    """
    segments = math.ceil(num_bytes / TCP_PAYLOAD_BYTES)
    return (num_bytes + segments * TCP_ACK_BYTES, segments // 2 * TCP_ACK_BYTES)
