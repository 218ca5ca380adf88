# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's connection to one server for scheduled updates, paced as they are granted.

It carries nothing else, so pulls and other requests do not wait behind a slow update.
"""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, Protocol, final

from ...errors import (
    HostlibError,
    PeerClosedError,
    PeerError,
    PeerProtocolError,
    PeerRefusedError,
    ServerLostError,
    ServerRestartedError,
    UnplannedUpdateError,
)
from ...peers.dialled import DialledLink
from ...peers.event_loop import EventLoop, Timer
from ...peers.frames import (
    CommittedFrame,
    DeniedFrame,
    EnteredFrame,
    EnterFrame,
    Frame,
    FrameKind,
    Packable,
    PieceFrame,
    Purpose,
    SendAgainFrame,
    SumFrame,
    TransferFrame,
)
from ...peers.handshake import PeerCall
from ..switch_groups.member import GROUP_ANSWERS, OfferedUpdate, SwitchGroupMember
from ..tables.denial import error_of
from .granted_rate import TransferPacer
from .outgoing import OutgoingUpdate, PartOutcome

LOOK_S: Final = 1.0
"""Pause between two looks for a server that answers nothing."""
_KINDS: Final = GROUP_ANSWERS | {
    FrameKind.ENTERED,
    FrameKind.COMMITTED,
    FrameKind.DENIED,
    FrameKind.SEND_AGAIN,
}


class UpdateEnd(Protocol):
    """Where updates go: a server's session, or an aggregator."""

    @property
    def shard(self) -> int:
        """The server, or the one that the aggregator's sums are for."""
        ...

    @property
    def identity(self) -> int | None:
        """What it must call itself; None: nothing is known."""
        ...

    def call_for(self, purpose: Purpose) -> PeerCall:
        """Return a call of it."""
        ...


@final
class UpdateLink:
    """Runs in the loop's thread; dials when it breaks and something is open, or is to be sent.

    What has no outcome is sent again over each new connection. The server knows what it has, so
    nothing counts twice.
    """

    def __init__(  # noqa: PLR0913 - a connection's bounds, and whom it tells
        self,
        loop: EventLoop,
        session: UpdateEnd,
        incarnation: int,
        *,
        unreachable_s: float,
        timeout_s: float,
        on_measured: Callable[[OutgoingUpdate, float], None],
        on_send_again: Callable[[OutgoingUpdate], None] | None = None,
        sends_again: bool = True,
        is_held: bool = False,
        numbers: Iterator[int] | None = None,
        on_declined: Callable[[OutgoingUpdate], None] | None = None,
        switch_address: str | None = None,
        counters: Counter[str] | None = None,
    ) -> None:
        """`on_measured(update, seconds)`: a granted update took so long from byte to last byte.

        Its `network_wait_s` says how much of that it waited for the network.

        `on_send_again(update)`: the server has no use of a sum with it. With `sends_again` False,
        what is open fails when the connection breaks. With `is_held`, nothing is dialled, nor sent,
        before `release`. `on_declined(update)`: one that `join` got is
        in no switch group; None: there are no switch groups. `switch_address`: this host's for
        packets to the switch. `counters`: those of SwitchGroupMember.

        `numbers` are those of the server's updates, from 1; links to its replica have the same.
        """
        self._loop = loop
        self._session = session
        self._incarnation = incarnation
        self._unreachable_s = unreachable_s
        self._timeout_s = timeout_s
        self._on_measured = on_measured
        self._on_send_again = on_send_again
        self._sends_again = sends_again
        self._is_held = is_held
        self._on_declined = on_declined
        self.numbers: Final = itertools.count(1) if numbers is None else numbers
        self._open: dict[int, OutgoingUpdate] = {}  # by number, in rising order
        self._link: DialledLink | None = None
        self._has_entered = False
        self._pacer = TransferPacer(
            loop, self._under_way, send=self._send, on_delivered=self._on_delivered
        )
        self._look_timer: Timer | None = None
        self._heard_s = 0.0
        self._left_groups: list[int] = []  # numbers that were in groups of the connection before
        self._groups = SwitchGroupMember(
            loop,
            address=switch_address,
            counters=Counter() if counters is None else counters,
            send=self._send_frame,
            open_from=lambda: next(iter(self._open)),
            decline=self._decline,
        )

    @property
    def has_switch_groups(self) -> bool:
        """Whether the server has rows for groups, and this worker is at their switch."""
        return self._on_declined is not None and self._has_entered and self._groups.is_offered

    def join(self, update: OutgoingUpdate) -> None:
        """Send an update with others to the switch."""
        self.await_sum(update)
        now_s = time.monotonic()
        # Its first packet leaves when its grant begins, and an answer is due after that.
        update.last_s = now_s + (update.rate.wait_s(now_s) if update.rate else 0.0)
        if self._look_timer is None:
            self._look_timer = self._loop.call_later(LOOK_S, self._look)
        offered = OfferedUpdate(
            number=update.number,
            version=update.version,
            table=update.table,
            num_keys=update.num_keys,
            payload=update.payload,
            transfer_id=update.transfer_id,
            sequence=0 if update.grant is None else update.grant.sequence,
            rate=update.rate,
        )
        self._groups.offer(offered)

    def send(self, update: OutgoingUpdate) -> None:
        """Send an update: at the rate of its grant, or at once without one."""
        self._add(update)
        self.dial()
        if self._look_timer is None:
            self._look_timer = self._loop.call_later(LOOK_S, self._look)
        self._pacer.tick()

    def await_sum(self, update: OutgoingUpdate) -> int:
        """Number an update that comes to the server in a sum; return the first open number."""
        update.is_in_group = update.is_measured = True
        self._add(update)
        self.dial()  # the server tells its outcome
        return next(iter(self._open))

    def leave_group(self, update: OutgoingUpdate) -> bool:
        """Send an update that was to come in a sum; return False if it has left, or an outcome."""
        if self._open.get(update.number) is not update or not update.is_in_group:
            return False
        update.is_in_group, update.has_left_group = False, True
        self.send(update)
        return True

    def cancel(self, update: OutgoingUpdate) -> None:
        """Send nothing more of an update; nobody learns of its outcome."""
        if self._open.get(update.number) is update:
            del self._open[update.number]

    def dial(self) -> None:
        """Connect, so that no update has to wait for it."""
        if self._link is None and not self._is_held:
            self._link = DialledLink(
                self._loop,
                self._session.call_for(Purpose.TRANSFERS),
                self,
                unreachable_s=self._unreachable_s,
            )

    def release(self) -> None:
        """Dial and send from now on: the server is known, and knows the tables."""
        self._is_held = False
        self.dial()

    def close(self, error: HostlibError) -> None:
        """End the connection; what is open fails with this error."""
        if self._link is not None:
            self._link.close()
            self._link = None
        self._has_entered = self._is_held = False
        self._groups.close()
        self.fail(error)

    def limit_waits(self, unreachable_s: float, timeout_s: float) -> None:
        """Wait so long for a connection, and for an answer, from now on."""
        self._unreachable_s, self._timeout_s = unreachable_s, timeout_s
        if self._link is not None:
            self._link.unreachable_s = unreachable_s

    def give_up(self) -> list[OutgoingUpdate]:
        """End the connection for good; return what is open, and forget it."""
        updates, self._open = list(self._open.values()), {}
        if self._link is not None:
            self._link.close()
            self._link = None
        self._has_entered = False
        return updates

    def fail(self, error: HostlibError) -> None:
        """Have what is open fail with this error; the connection stays."""
        updates, self._open = self._open, {}
        for update in updates.values():
            update.settle(error)

    def _add(self, update: OutgoingUpdate) -> None:
        update.number = update.number or next(self.numbers)
        if not self._open:
            self._heard_s = time.monotonic()
        self._open[update.number] = update

    # The pacer calls the methods below.

    def _under_way(self) -> Iterator[tuple[DialledLink, OutgoingUpdate]]:
        link = self._link
        if link is None or not self._has_entered:
            return
        for update in self._open.values():
            if update.left_bytes or (update.grant is not None and not update.is_measured):
                yield link, update

    def _send(self, update: OutgoingUpdate, num_bytes: int, is_first: bool) -> None:
        if is_first:
            self._send_frame(self._head(update))
        for piece in update.pieces(update.payload, num_bytes):
            self._send_frame(PieceFrame(piece.nbytes, update.number), piece)

    def _head(self, update: OutgoingUpdate) -> TransferFrame | SumFrame:
        grant = update.grant
        head = TransferFrame(
            number=update.number,
            open_from=update.open_from or next(iter(self._open)),
            transfer_id=update.transfer_id,
            version=update.version,
            sequence=0 if grant is None else grant.sequence,
            factor=1.0 if grant is None else grant.factor,
            table=update.table,
            num_keys=update.num_keys,
            num_bytes=update.payload.nbytes,
            is_granted=grant is not None,
            has_left_group=update.has_left_group,
        )
        return SumFrame(head, update.summed) if update.summed else head

    def _on_delivered(self, update: OutgoingUpdate, now_s: float) -> None:
        """Tell how long a granted update took, when the other kernel has all of it."""
        update.is_measured = True
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
        self._pacer.forget(link)
        link.send(EnterFrame(self._incarnation))

    def on_down(self, link: DialledLink, error: PeerError) -> bool:
        """Dial again if something is open; the next update does it otherwise."""
        self._has_entered = False
        self._left_groups += self._groups.drop_all()
        if not self._sends_again:
            self._link = None
            self.fail(error)
            return False
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
        elif frame.kind in GROUP_ANSWERS:
            self._groups.on_frame(frame, payload)
        elif frame.kind is FrameKind.COMMITTED:
            committed = CommittedFrame.unpack(frame)
            self._finish(
                committed.number,
                lambda update: PartOutcome(
                    shard=update.shard,
                    version=committed.version,
                    delay=committed.delay,
                    is_granted=update.grant is not None,
                    is_summed=update.is_in_group,
                ),
            )
        elif frame.kind is FrameKind.SEND_AGAIN:
            self._start_again(SendAgainFrame.unpack(frame).number)
        else:
            denied = DeniedFrame.unpack(frame)
            where = f"parameter server {self._session.shard}"
            error = error_of(json.loads(bytes(payload)), where)
            self._finish(denied.number, lambda update: _outcome_of(update, error))

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
        # The groups of the connection before are over. What counted of them was told before this,
        # and what is on its path through the server's log is known there by its number.
        numbers, self._left_groups = self._left_groups, []
        for number in numbers:
            update = self._open.get(number)
            if update is not None and update.is_in_group and self._on_send_again is not None:
                self._on_send_again(update)
        self._pacer.tick()

    def _start_again(self, number: int) -> None:
        """Send an update whose sum is of no effect, or that was thrown away because of the sum."""
        update = self._open.get(number)
        if update is None:
            return
        if update.is_in_group:
            if self._on_send_again is not None:
                self._on_send_again(update)
            return
        update.start_again()
        self._pacer.tick()

    def _finish(
        self, number: int, outcome: Callable[[OutgoingUpdate], PartOutcome | HostlibError]
    ) -> None:
        update = self._open.pop(number, None)
        if update is None:
            return  # it was told before
        self._groups.settle(number)
        if update.grant is not None and not update.is_measured and not update.left_bytes:
            now_s = time.monotonic()
            update.note_held(False, now_s)
            self._on_delivered(update, now_s)
        update.settle(outcome(update))

    # The switch groups call the methods below.

    def _send_frame(self, frame: Packable, payload: memoryview | None = None) -> None:
        if self._link is not None:
            self._link.send(frame, payload)

    def _decline(self, number: int) -> None:
        """Give an update back: no sum with it counts, so it may have a new number."""
        update = self._open.pop(number, None)
        if update is not None and self._on_declined is not None:
            update.is_in_group, update.has_left_group = False, True
            update.number, update.last_s = 0, 0.0
            self._on_declined(update)


def _outcome_of(update: OutgoingUpdate, error: HostlibError) -> PartOutcome | HostlibError:
    """Return what an update's denial means: without a place at a replicated server, a drop."""
    if isinstance(error, UnplannedUpdateError):
        return PartOutcome(shard=update.shard, drop_reason=str(error))
    return error


def closed_error() -> PeerClosedError:
    """Return what updates of a closed worker fail with."""
    return PeerClosedError("the worker of scheduled updates is closed; make a new one")
