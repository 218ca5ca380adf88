# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which algorithm a reduction takes: a pure function of what all members know.

With n members, S bytes, a latency L per message and a time B per byte, both agreed by all members
when the layout starts (the largest that any of them measured):

    ring      2 (n - 1) (L + S B / n)       every link carries 2 (n - 1) / n of the bytes
    doubling  r (L + S B)                   r = log2 n; n not a power of two: floor(log2 n) + 2

Few bytes are a matter of latency, many of bandwidth. The lower cost wins, doubling at a tie.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

LANE_BYTES = 4


class Algorithm(enum.Enum):
    """How members reduce lanes among themselves."""

    RING = "ring"
    DOUBLING = "doubling"


@dataclass(frozen=True)
class LinkCosts:
    """What a message costs, agreed by all members of a layout."""

    latency_ns: int
    """From one worker to another, software included."""
    megabyte_us: int
    """Time of 2^20 bytes."""

    def ring_s(self, num_members: int, num_lanes: int) -> float:
        """Return the seconds that the ring needs."""
        share = num_lanes * LANE_BYTES / num_members
        return 2 * (num_members - 1) * self._message_s(share)

    def doubling_s(self, num_members: int, num_lanes: int) -> float:
        """Return the seconds that recursive doubling needs."""
        return doubling_steps(num_members) * self._message_s(num_lanes * LANE_BYTES)

    def choose(self, num_members: int, num_lanes: int) -> Algorithm:
        """Return the faster algorithm."""
        if self.doubling_s(num_members, num_lanes) <= self.ring_s(num_members, num_lanes):
            return Algorithm.DOUBLING
        return Algorithm.RING

    def _message_s(self, num_bytes: float) -> float:
        return self.latency_ns * 1e-9 + num_bytes / 2**20 * self.megabyte_us * 1e-6


def doubling_steps(num_members: int) -> int:
    """Return the messages, one after the other, of recursive doubling."""
    steps = num_members.bit_length() - 1
    if num_members != 1 << steps:
        return steps + 2
    return steps


def round_up(value: float) -> int:
    """Round up to a power of two, at least 1: measurements that differ little become equal."""
    return 1 << (math.ceil(max(1.0, value)) - 1).bit_length()
