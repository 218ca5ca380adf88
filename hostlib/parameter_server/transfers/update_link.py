# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's connection to one server for scheduled updates, paced as they are granted.

It carries nothing else, so pulls and other requests do not wait behind a slow update.
"""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Callable
from typing import Final, final

from ...errors import (
    HostlibError,
    PeerClosedError,
    PeerError,
    PeerProtocolError,
    PeerRefusedError,
    ServerLostError,
    ServerRestartedError,
)
from ...peers.dialled import DialledLink
from ...peers.event_loop import EventLoop, Timer
from ...peers.frames import (
    PIECE_BYTES,
    CommittedFrame,
    DeniedFrame,
    EnteredFrame,
    EnterFrame,
    Frame,
    FrameKind,
    PieceFrame,
    Purpose,
    TransferFrame,
)
from ..tables.denial import error_of
from ..tables.session import ShardSession
from .outgoing import OutgoingUpdate, PartOutcome

TICK_S: Final = 0.005
"""Pause between two portions of a paced update."""
MEASURE_S: Final = 0.002
"""Pause between two looks whether the other kernel has all of an update."""
LOOK_S: Final = 1.0
"""Pause between two looks for a server that answers nothing."""
LEAST_PORTION_BYTES: Final = 4096
"""Smaller portions are collected, unless it is the last one."""
MOST_PORTION_BYTES: Final = 8 << 20
"""Most bytes of an update without a grant that wait for the kernel."""
KERNEL_MARGIN: Final = 1.25
"""The kernel's limit as a multiple of the granted rate: it smooths what the bucket lets pass."""
BACKLOG_DEPTHS: Final = 2
"""A slow link gets no more while this multiple of the token bucket is not acknowledged."""
_KINDS: Final = frozenset((FrameKind.ENTERED, FrameKind.COMMITTED, FrameKind.DENIED))


@final
class UpdateLink:
    """Runs in the loop's thread; dials when it breaks and something is open, or is to be sent.

    What has no outcome is sent again over each new connection. The server knows what it has, so
    nothing counts twice.
    """

    def __init__(
        self,
        loop: EventLoop,
        session: ShardSession,
        incarnation: int,
        *,
        unreachable_s: float,
        timeout_s: float,
        on_measured: Callable[[OutgoingUpdate, float], None],
    ) -> None:
        """`on_measured(update, seconds)`: a granted update took so long from byte to last byte.

        Its `network_wait_s` says how much of that it waited for the network.
        """
        self._loop = loop
        self._session = session
        self._incarnation = incarnation
        self._unreachable_s = unreachable_s
        self._timeout_s = timeout_s
        self._on_measured = on_measured
        self._numbers = itertools.count(1)
        self._open: dict[int, OutgoingUpdate] = {}  # by number, in rising order
        self._link: DialledLink | None = None
        self._has_entered = False
        self._tick_timer: Timer | None = None
        self._look_timer: Timer | None = None
        self._heard_s = 0.0
        self._limit = math.inf

    def send(self, update: OutgoingUpdate) -> None:
        """Send an update: at the rate of its grant, or at once without one."""
        update.number = next(self._numbers)
        if not self._open:
            self._heard_s = time.monotonic()
        self._open[update.number] = update
        self.dial()
        if self._look_timer is None:
            self._look_timer = self._loop.call_later(LOOK_S, self._look)
        self._tick()

    def dial(self) -> None:
        """Connect, so that no update has to wait for it."""
        if self._link is None:
            self._link = DialledLink(
                self._loop,
                self._session.call_for(Purpose.TRANSFERS),
                self,
                unreachable_s=self._unreachable_s,
            )

    def close(self, error: HostlibError) -> None:
        """End the connection; what is open fails with this error."""
        if self._link is not None:
            self._link.close()
            self._link = None
        self._has_entered = False
        self.fail(error)

    def fail(self, error: HostlibError) -> None:
        """Have what is open fail with this error; the connection stays."""
        updates, self._open = self._open, {}
        for update in updates.values():
            update.done(error)

    # What leaves when.

    def _tick(self) -> None:
        if self._tick_timer is not None:
            self._tick_timer.cancel()
            self._tick_timer = None
        link = self._link
        if link is None or not self._has_entered:
            return
        now_s, wait_s = time.monotonic(), math.inf
        self._limit_rate(link)
        for update in [*self._open.values()]:
            if update.left_bytes:
                wait_s = min(wait_s, self._send_some(link, update, now_s))
            elif not update.is_measured:
                self._measure(link, update, now_s)
                wait_s = min(wait_s, math.inf if update.is_measured else MEASURE_S)
        if not math.isinf(wait_s):
            self._tick_timer = self._loop.call_later(max(MEASURE_S, wait_s), self._tick)

    def _send_some(self, link: DialledLink, update: OutgoingUpdate, now_s: float) -> float:
        """Send what may leave now; return how long to wait until more may."""
        rate = update.rate
        if rate is None:
            if link.is_drained:
                self._send_portion(link, update, min(update.left_bytes, MOST_PORTION_BYTES), now_s)
            return TICK_S
        allowed = rate.allowed(now_s)
        is_slow = link.unacknowledged_bytes > BACKLOG_DEPTHS * rate.depth_bytes + PIECE_BYTES / 16
        least = min(update.left_bytes, LEAST_PORTION_BYTES, max(1, int(rate.depth_bytes)))
        is_taken = link.is_drained and not is_slow
        update.note_held(allowed >= least and not is_taken, now_s)
        if is_taken and allowed >= least:
            portion = min(allowed, update.left_bytes)
            rate.spend(portion)
            self._send_portion(link, update, portion, now_s)
        return max(TICK_S, rate.wait_s(now_s))

    def _send_portion(
        self, link: DialledLink, update: OutgoingUpdate, portion: int, now_s: float
    ) -> None:
        if not update.is_begun:
            update.is_begun, update.first_s = True, now_s
            link.send(self._head(update))
        end = update.sent_bytes + portion
        while update.sent_bytes < end:
            piece = update.payload[update.sent_bytes : min(end, update.sent_bytes + PIECE_BYTES)]
            link.send(PieceFrame(piece.nbytes, update.number), piece)
            update.sent_bytes += piece.nbytes
        if not update.left_bytes:
            update.last_s = now_s
            update.note_held(True, now_s)  # until the other kernel has all of it

    def _head(self, update: OutgoingUpdate) -> TransferFrame:
        grant = update.grant
        return TransferFrame(
            number=update.number,
            open_from=next(iter(self._open)),
            transfer_id=update.transfer_id,
            version=update.version,
            sequence=0 if grant is None else grant.sequence,
            factor=1.0 if grant is None else grant.factor,
            table=update.table,
            num_keys=update.num_keys,
            num_bytes=update.payload.nbytes,
            is_granted=grant is not None,
        )

    def _limit_rate(self, link: DialledLink) -> None:
        """Let the kernel smooth the portions."""
        leaving = [update for update in self._open.values() if update.left_bytes]
        limit = sum(
            math.inf if update.rate is None else update.rate.bytes_per_s for update in leaving
        )
        limit = KERNEL_MARGIN * limit if leaving else math.inf
        if limit != self._limit:
            self._limit = limit
            link.limit_rate(limit)

    def _measure(self, link: DialledLink, update: OutgoingUpdate, now_s: float) -> None:
        """Tell how long a granted update took, when the other kernel has all of it."""
        if update.grant is None:
            update.is_measured = True
        elif link.is_drained and not link.unacknowledged_bytes:
            self._tell_measured(update, now_s)

    def _tell_measured(self, update: OutgoingUpdate, now_s: float) -> None:
        update.is_measured = True
        update.note_held(False, now_s)
        self._on_measured(update, now_s - update.first_s)

    # A server that answers nothing.

    def _look(self) -> None:
        self._look_timer = None
        if not self._open:
            return
        self._look_timer = self._loop.call_later(LOOK_S, self._look)
        sent_s = [update.last_s for update in self._open.values() if update.last_s]
        is_up = self._link is not None and self._link.is_up
        now_s = time.monotonic()
        if is_up and sent_s and now_s - max(min(sent_s), self._heard_s) > self._timeout_s:
            shard = self._session.shard
            text = (
                f"parameter server {shard} is connected, but says nothing of an update in"
                f" {self._timeout_s:g} s. Is its process stopped, or its disk too slow?"
            )
            self.close(ServerLostError(text, shard))

    # The dialled link calls the methods below.

    def on_up(self, link: DialledLink) -> None:
        """Say who this is."""
        self._heard_s = time.monotonic()
        self._limit = math.inf
        link.send(EnterFrame(self._incarnation))

    def on_down(self, link: DialledLink, error: PeerError) -> bool:
        """Dial again if something is open; the next update does it otherwise."""
        self._has_entered = False
        for update in self._open.values():
            update.start_again()
        if not self._open:
            self._link = None
        return bool(self._open)

    def on_lost(self, link: DialledLink, error: PeerError) -> None:
        """Fail what is open."""
        self._link = None
        shard = self._session.shard
        if isinstance(error, PeerRefusedError):
            self.close(error)
            return
        lost = ServerLostError(f"parameter server {shard}: {error}", shard)
        lost.__cause__ = error
        self.close(lost)

    def target(self, frame: Frame) -> memoryview:
        """Return memory for an answer."""
        if frame.kind not in _KINDS:
            raise PeerProtocolError(f"{frame.kind.name} frame among outcomes of updates")
        return memoryview(bytearray(frame.payload_bytes))

    def on_frame(self, frame: Frame, payload: memoryview) -> None:
        """Take an answer."""
        self._heard_s = time.monotonic()
        if frame.kind is FrameKind.ENTERED:
            self._on_entered(EnteredFrame.unpack(frame))
        elif frame.kind is FrameKind.COMMITTED:
            committed = CommittedFrame.unpack(frame)
            self._finish(
                committed.number,
                lambda update: PartOutcome(
                    shard=update.shard,
                    version=committed.version,
                    delay=committed.delay,
                    is_granted=update.grant is not None,
                ),
            )
        else:
            denied = DeniedFrame.unpack(frame)
            where = f"parameter server {self._session.shard}"
            error = error_of(json.loads(bytes(payload)), where)
            self._finish(denied.number, lambda _update: error)

    def _on_entered(self, entered: EnteredFrame) -> None:
        if entered.identity != self._session.identity:
            shard = self._session.shard
            self.close(
                ServerRestartedError(
                    f"parameter server {shard} was restarted without its tables, or with another"
                    " log. Give it the log that it had, or restart the servers and all workers"
                )
            )
            return
        self._has_entered = True
        self._tick()

    def _finish(
        self, number: int, outcome: Callable[[OutgoingUpdate], PartOutcome | HostlibError]
    ) -> None:
        update = self._open.pop(number, None)
        if update is None:
            return  # it was told before
        if update.grant is not None and not update.is_measured and not update.left_bytes:
            self._tell_measured(update, time.monotonic())
        update.done(outcome(update))


def closed_error() -> PeerClosedError:
    """Return what updates of a closed worker fail with."""
    return PeerClosedError("the worker of scheduled updates is closed; make a new one")
