# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How many bytes of a granted update or model may leave by when: a token bucket over its spans."""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, final

from ...control.stations.station import GrantedSpan, TransferGranted
from ...peers.frames import PIECE_BYTES
from ...peers.pacing import PacedLink

DEPTH_S: Final = 0.1
"""What a span allows and was not used is kept for so long. It bounds what leaves late, too."""
TICK_S: Final = 0.005
"""Pause between two portions of a paced transfer."""
MEASURE_S: Final = 0.002
"""Pause between two looks whether the other kernel has all of a transfer."""
LEAST_PORTION_BYTES: Final = 4096
"""Smaller portions are collected, unless it is the last one."""
MOST_PORTION_BYTES: Final = 8 << 20
"""Most bytes of a transfer without a grant that wait for the kernel."""
KERNEL_MARGIN: Final = 1.25
"""The kernel's limit as a multiple of the granted rate: it smooths what the bucket lets pass."""
BACKLOG_DEPTHS: Final = 2
"""A slow link gets no more while this multiple of the token bucket is not acknowledged."""


@final
class GrantedRate:
    """Bytes at the rate of each span within it, none between, and the last rate after the last.

    Times are those of one clock, in seconds; it must not go back. `start_s`: when the grant came.
    """

    def __init__(self, spans: Sequence[GrantedSpan], start_s: float) -> None:
        self._spans = [
            (start_s + span.start_s, start_s + span.end_s, span.rate_bits_per_s / 8)
            for span in spans
        ]
        first, last = self._spans[0], self._spans[-1]
        self._spans.append((last[1], math.inf, last[2]))
        self._now_s = first[0]
        self._allowed = 0.0

    @property
    def bytes_per_s(self) -> float:
        """The present span's rate, or the next one's."""
        return self._spans[0][2]

    @property
    def depth_bytes(self) -> float:
        """Most bytes that may leave at once."""
        return self.bytes_per_s * DEPTH_S

    def allowed(self, now_s: float) -> int:
        """Return how many bytes may leave now."""
        while now_s >= self._spans[0][1]:
            end_s = self._spans[0][1]
            self._allowed, self._now_s = self._at(end_s), max(end_s, self._spans[1][0])
            del self._spans[0]
            if self._now_s > end_s:
                self._allowed = 0.0  # what a span leaves unused is lost
        if now_s < self._spans[0][0]:
            return 0
        self._allowed, self._now_s = self._at(now_s), max(now_s, self._now_s)
        return int(self._allowed)

    def spend(self, num_bytes: int) -> None:
        """Note that so many of the allowed bytes leave."""
        self._allowed -= num_bytes

    def wait_s(self, now_s: float) -> float:
        """Return how long nothing may leave from now on: until a span begins."""
        return max(0.0, self._spans[0][0] - now_s)

    def _at(self, now_s: float) -> float:
        grown = self._allowed + max(0.0, now_s - self._now_s) * self.bytes_per_s
        return min(grown, max(self.depth_bytes, 1.0))


@dataclass(eq=False, kw_only=True)
class PacedBytes(abc.ABC):
    """A transfer under way: its grant, what has left, and what the network keeps back."""

    transfer_id: int = 0
    """At the scheduler; 0: it does not know of it."""
    grant: TransferGranted | None = None
    rate: GrantedRate | None = None
    """None: it may leave at once."""
    sent_bytes: int = 0
    """Over the present connection."""
    is_begun: bool = False
    """Whether its head has left over the present connection."""
    first_s: float = 0.0
    """When its first bytes left."""
    last_s: float = 0.0
    """When its last bytes left; 0: they have not."""
    held_since_s: float | None = None
    """Since when the network takes less than the grant allows; None: it does not."""
    network_wait_s: float = 0.0
    """How long it has done so before."""
    is_measured: bool = False
    """Whether its rate has been reported, or cannot be told."""

    @property
    @abc.abstractmethod
    def left_bytes(self) -> int:
        """How many bytes have not left."""

    def forget_grant(self) -> None:
        """Forget the grant, and what has left by it: another one is asked for."""
        self.transfer_id, self.grant, self.rate = 0, None, None
        self.is_begun, self.sent_bytes, self.first_s, self.last_s = False, 0, 0.0, 0.0
        self.is_measured = False

    def note_held(self, is_held: bool, now_s: float) -> None:
        """Note whether the network keeps back what may leave."""
        if self.held_since_s is not None:
            self.network_wait_s += now_s - self.held_since_s
        self.held_since_s = now_s if is_held else None

    def take_portion(self, link: PacedLink, now_s: float) -> tuple[int, float]:
        """Return how many bytes leave now, and how long to wait until more may.

        The bytes count as sent for the grant; the caller sends them.
        """
        rate = self.rate
        if rate is None:
            most = MOST_PORTION_BYTES if link.is_drained else 0
            return min(self.left_bytes, most), TICK_S
        allowed = rate.allowed(now_s)
        is_slow = link.unacknowledged_bytes > BACKLOG_DEPTHS * rate.depth_bytes + PIECE_BYTES / 16
        least = min(self.left_bytes, LEAST_PORTION_BYTES, max(1, int(rate.depth_bytes)))
        is_taken = link.is_drained and not is_slow
        self.note_held(allowed >= least and not is_taken, now_s)
        portion = 0
        if is_taken and allowed >= least:
            portion = min(allowed, self.left_bytes)
            rate.spend(portion)
        return portion, max(TICK_S, rate.wait_s(now_s))


def kernel_limit(leaving: Iterable[PacedBytes]) -> float:
    """Return the rate in bytes/s at which the kernel lets these leave; `math.inf`: at any rate."""
    rates = [math.inf if each.rate is None else each.rate.bytes_per_s for each in leaving]
    return KERNEL_MARGIN * sum(rates) if rates else math.inf
