# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Bytes that leave over a connection as the scheduler has granted it: updates, and models."""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ...control.stations.station import TransferGranted
from ...peers.frames import PIECE_BYTES
from ...peers.pacing import PacedLink
from .granted_rate import GrantedRate

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
