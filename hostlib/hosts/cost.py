# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The choice of an algorithm for a reduction, by costs that all members know.

With n members, S bytes, a latency L per step and a time B per byte:

    ring      2 (n - 1) (L + S B / n)       every link carries 2 (n - 1) / n of the bytes
    halving   2 k L + (2 (w - 1) + 2 (n - w)) / w S B    w = 2^k <= n; n not a power of two: one
                                            L more, and at least 2 S B
    doubling  r (L + S B)                   r = log2 n; n not a power of two: floor(log2 n) + 2

A step sends one segment or more, and each costs processor time M at its sender and its receiver.
The ring sends the most: its blocks have four segments unless they are small.

Latency and messages count for few bytes, bandwidth for many. The ring is taken unless another
algorithm is clearly cheaper: it loads each link of a fabric evenly, and adds while it receives.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from .values import SEGMENT_VALUES, cut

VALUE_BYTES = 4
CLEARLY: Final = 0.8
"""Largest share of the ring's cost at which another algorithm is taken."""


class Algorithm(enum.Enum):
    """Algorithms by which members reduce values among themselves."""

    RING = "ring"
    HALVING = "halving"
    DOUBLING = "doubling"


@dataclass(frozen=True)
class LinkCosts:
    """Cost of a step and of its messages, the same at all members.

    The defaults are for links of 1 Gbit/s. They are not measured: a measurement at the start of a
    view takes as long as a small tensor, and says little about the time after the start.
    """

    latency_ns: int = 200_000
    """From one worker to another, besides the time that the processor takes for the message."""
    message_ns: int = 100_000
    """Processor time for one segment at a member that sends one and receives one."""
    megabyte_us: int = 8_400
    """Time of 2^20 bytes."""

    def ring_s(self, num_members: int, num_values: int) -> float:
        """Return the seconds that the ring needs."""
        steps = 2 * (num_members - 1)
        messages = steps * len(cut(0, -(-num_values // num_members)))
        return self._time_s(steps, messages, steps / num_members, num_values)

    def halving_s(self, num_members: int, num_values: int) -> float:
        """Return the seconds that recursive halving and doubling need."""
        bits = num_members.bit_length() - 1
        width = 1 << bits
        outsiders = num_members - width
        times = 2 * (width - 1 + outsiders) / width
        messages = 2 * sum(-(-(num_values >> bit) // SEGMENT_VALUES) for bit in range(1, bits + 1))
        if outsiders:
            return self._time_s(2 * bits + 1, messages + 1, max(2.0, times), num_values)
        return self._time_s(2 * bits, messages, times, num_values)

    def doubling_s(self, num_members: int, num_values: int) -> float:
        """Return the seconds that recursive doubling needs."""
        steps = doubling_steps(num_members)
        return self._time_s(steps, steps * len(cut(0, num_values)), steps, num_values)

    def choose(self, num_members: int, num_values: int) -> Algorithm:
        """Return the cheapest algorithm, or the ring if it costs little more."""
        halving_s = self.halving_s(num_members, num_values)
        doubling_s = self.doubling_s(num_members, num_values)
        if min(halving_s, doubling_s) > CLEARLY * self.ring_s(num_members, num_values):
            return Algorithm.RING
        return Algorithm.DOUBLING if doubling_s <= halving_s else Algorithm.HALVING

    def _time_s(self, steps: int, messages: int, times: float, num_values: int) -> float:
        """Return the seconds of so many steps that together carry the values so many times."""
        megabytes = times * num_values * VALUE_BYTES / 2**20
        software_ns = steps * self.latency_ns + messages * self.message_ns
        return software_ns * 1e-9 + megabytes * self.megabyte_us * 1e-6


def doubling_steps(num_members: int) -> int:
    """Return the number of messages, one after the other, of recursive doubling."""
    steps = num_members.bit_length() - 1
    if num_members != 1 << steps:
        return steps + 2
    return steps
