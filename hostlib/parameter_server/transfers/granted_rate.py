# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How many bytes of a granted update or model may leave by when: a token bucket over its spans."""

from __future__ import annotations

import abc
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar, final

from ...control.stations.station import GrantedSpan, TransferGranted
from ...peers.event_loop import EventLoop, Timer
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

    def pieces(self, payload: memoryview, num_bytes: int) -> Iterator[memoryview]:
        """Yield the next bytes of the payload in pieces, each of which counts as sent."""
        end = self.sent_bytes + num_bytes
        while self.sent_bytes < end:
            piece = payload[self.sent_bytes : min(end, self.sent_bytes + PIECE_BYTES)]
            self.sent_bytes += piece.nbytes
            yield piece


Paced = TypeVar("Paced", bound=PacedBytes)


@final
class TransferPacer(Generic[Paced]):
    """Lets the bytes of transfers leave as fast as they may; runs in the loop's thread."""

    def __init__(
        self,
        loop: EventLoop,
        under_way: Callable[[], Iterable[tuple[PacedLink, Paced]]],
        *,
        send: Callable[[Paced, int, bool], None],
        on_delivered: Callable[[Paced, float], None],
    ) -> None:
        """`under_way()`: the transfers in the order of their turns, each with its connection.

        `send(transfer, num_bytes, is_first)` sends bytes of a transfer. `on_delivered(transfer,
        now_s)`: the other kernel has all of it; it is not under way after that.
        """
        self._loop = loop
        self._under_way = under_way
        self._send = send
        self._on_delivered = on_delivered
        self._limits: dict[PacedLink, float] = {}
        """The kernel's limits of connections that have one, in bytes/s."""
        self._timer: Timer | None = None

    def forget(self, link: PacedLink) -> None:
        """Learn that a connection is gone, or new, and has no limit."""
        self._limits.pop(link, None)

    def tick(self) -> None:
        """Send what may leave now, and again when more may; call it when something has changed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now_s, wait_s = time.monotonic(), math.inf
        transfers = [*self._under_way()]
        self._limit_rates(transfers, now_s)
        for link, each in transfers:
            if each.left_bytes:
                wait_s = min(wait_s, self._send_some(link, each, now_s))
            elif link.is_drained and not link.unacknowledged_bytes:
                each.note_held(False, now_s)
                self._on_delivered(each, now_s)
            else:
                wait_s = min(wait_s, MEASURE_S)
        if not math.isinf(wait_s):
            self._timer = self._loop.call_later(max(MEASURE_S, wait_s), self.tick)

    def _send_some(self, link: PacedLink, each: Paced, now_s: float) -> float:
        """Send what may leave now; return how long to wait until more may."""
        portion, wait_s = each.take_portion(link, now_s)
        if portion:
            is_first = not each.is_begun
            if is_first:
                each.is_begun, each.first_s = True, now_s
            self._send(each, portion, is_first)
            if not each.left_bytes:
                each.last_s = now_s
                each.note_held(True, now_s)  # until the other kernel has all of it
        return wait_s

    def _limit_rates(self, transfers: Iterable[tuple[PacedLink, Paced]], now_s: float) -> None:
        """Let the kernel smooth the portions of transfers whose time has come."""
        limits: dict[PacedLink, float] = {}
        for link, each in transfers:
            if each.left_bytes and (each.rate is None or not each.rate.wait_s(now_s)):
                rate = math.inf if each.rate is None else KERNEL_MARGIN * each.rate.bytes_per_s
                limits[link] = limits.get(link, 0.0) + rate
        for link in self._limits.keys() | limits.keys():
            limit = limits.get(link, math.inf)
            if limit != self._limits.get(link, math.inf):
                link.limit_rate(limit)
        self._limits = limits
