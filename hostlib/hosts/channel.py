# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The reductions of one purpose, one after the other, over their own connections.

As on a switch, values and exponents do not wait for each other: the values of one tensor are
reduced while the exponents of the next one are. Within a channel all members reduce in the same
order.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, final

from ..errors import PeerError, PeerMismatchError, PeerProtocolError
from ..peers.connection import Connection
from ..peers.frames import Frame, FrameKind, LostFrame, Purpose, ValueFlag, ValuesFrame
from ..slots.wire import Operation
from .cost import Algorithm
from .doubling import DoublingSchedule
from .halving import HalvingSchedule
from .link import OutboundLink
from .reduction import Reduction, ReductionSchedule
from .ring import RingSchedule
from .values import Scratch, Sums, bytes_of

if TYPE_CHECKING:
    from .allreduce import HostAllreduce

_SCHEDULES = {
    Algorithm.RING: RingSchedule,
    Algorithm.HALVING: HalvingSchedule,
    Algorithm.DOUBLING: DoublingSchedule,
}
_logger = logging.getLogger(__name__)


@final
class Channel:
    """Queue, schedule and connections of one purpose; runs in the loop's thread."""

    def __init__(self, owner: HostAllreduce, purpose: Purpose) -> None:
        self.purpose = purpose
        self.links: dict[int, OutboundLink] = {}
        self.inbound: dict[int, InboundLink] = {}
        self.early_tags: set[int] = set()
        """Tags that other members have begun to reduce and this member has not submitted."""
        self._owner = owner
        self._queue: deque[Reduction] = deque()
        self._active: Reduction | None = None
        self._schedule: ReductionSchedule | None = None
        self._sequence = 0  # of the active reduction, or of the next
        self._is_stopped = False
        self._scratch = Scratch()

    @property
    def is_idle(self) -> bool:
        """Whether no reduction is open."""
        return self._active is None and not self._queue

    def submit(self, reduction: Reduction) -> None:
        """Queue a reduction."""
        self._queue.append(reduction)
        self.advance()

    def stop(self) -> None:
        """Drop all reductions, and stop reading values."""
        self._is_stopped = True
        self._queue.clear()
        self._active = self._schedule = None

    @property
    def awaited(self) -> set[int]:
        """Positions of the members whose values are due here."""
        return set() if self._schedule is None else self._schedule.awaited

    def misses(self, position: int) -> bool:
        """Return whether values are due from this member, which has no connection to here."""
        if position not in self.awaited:
            return False
        inbound = self.inbound.get(position)
        return inbound is None or inbound.connection.is_closed

    def link(self, position: int) -> OutboundLink:
        """Return the connection to a member; open it at the first call."""
        if position not in self.links:
            self.links[position] = self._owner.open_link(self, position)
        return self.links[position]

    def advance(self) -> None:
        """Start the next reduction unless one is active."""
        while self._active is None and self._queue and not self._is_stopped:
            reduction = self._queue[0]
            if self._owner.num_members > 1:
                if not self._owner.check_members():
                    return
                reduction.algorithm = self._owner.choose(len(reduction.values))
            self._active = self._queue.popleft()
            if reduction.algorithm is not Algorithm.RING:
                reduction.prepare(0, len(reduction.values))
            if reduction.algorithm is not None:
                self._start(reduction, reduction.algorithm)
            self.finish()

    def _start(self, reduction: Reduction, algorithm: Algorithm) -> None:
        kind, owner = _SCHEDULES[algorithm], self._owner
        self._schedule = schedule = kind(
            reduction, owner.position, owner.num_members, self._send, self._scratch
        )
        self._send_own(schedule)
        self.early_tags.clear()
        for inbound in list(self.inbound.values()):
            inbound.connection.resume()

    def _send_own(self, schedule: ReductionSchedule) -> None:
        """Send values that need no others, a part in each turn of the loop."""
        if schedule is self._schedule and schedule.start():
            self._owner.call_soon(lambda: self._send_own(schedule))

    def finish(self) -> None:
        """End the active reduction if it is complete and all sent values have left."""
        reduction, schedule = self._active, self._schedule
        if reduction is None:
            return
        if schedule is not None:
            if not schedule.is_complete:
                return
            if not all(link.is_drained for link in self.links.values()):
                return
        self._active = self._schedule = None
        self._sequence += 1
        if reduction.algorithm is not Algorithm.RING:
            reduction.settle(0, len(reduction.values))
        try:
            reduction.on_done(reduction)
        except Exception as error:
            _logger.exception("callback of a reduction failed")
            self._owner.on_callback_failed(error)
        self.advance()

    def _send(self, position: int, step: int, first: int, values: Sums, flags: int) -> None:
        reduction = self._active
        if reduction is None:
            return
        frame = ValuesFrame(
            payload_bytes=values.nbytes,
            reduction=self._sequence,
            step=step,
            flags=flags,
            first=first,
            num_values=len(values),
            total=len(reduction.values),
            tag=reduction.tag,
        )
        try:
            link = self.link(position)
            link.send(frame, bytes_of(values))
            link.connection.push()
        except PeerError as error:
            self._owner.suspect(position, error, has_left=True, is_missed=True)

    def target(self, position: int, frame: ValuesFrame) -> memoryview | None:
        """Return memory for a member's values, None while this worker has not begun with them."""
        ahead = frame.reduction - self._sequence
        if not self._is_stopped and ahead == 0 and self._active is None and not self._queue:
            self._owner.check_early(self.purpose, frame.tag)
            self.early_tags.add(frame.tag)
        if self._is_stopped or ahead == 1 or (ahead == 0 and self._active is None):
            return None
        if ahead != 0 or self._active is None or self._schedule is None:
            raise PeerProtocolError(
                f"values of reduction {frame.reduction} during {self._sequence}"
            )
        own = (self._active.tag, len(self._active.values))
        if (frame.tag, frame.total) != own:
            raise PeerMismatchError(
                f"another worker reduces another tensor: {frame.total} values there, {own[1]}"
                " here, padding included; all workers must submit the same sequence of shapes,"
                " dtypes and operations"
            )
        width = 4
        if frame.flags & ValueFlag.WIDE:
            width = 8
            if self._active.operation is Operation.AGGREGATE_MAX:
                raise PeerProtocolError("wide values of a maximum")
        if frame.payload_bytes != width * frame.num_values:
            raise PeerProtocolError(f"{frame.num_values} values in {frame.payload_bytes} bytes")
        return self._schedule.target(position, frame)

    def on_values(self, position: int, frame: ValuesFrame) -> None:
        """Take values that are in their memory."""
        if self._schedule is not None and frame.reduction == self._sequence:
            self._schedule.on_values(position, frame)
            self.finish()

    def on_inbound_broken(self, inbound: InboundLink, error: PeerError) -> None:
        """Tell the host allreduce, unless a newer connection is in use."""
        if self.inbound.get(inbound.position) is inbound:
            self._owner.on_inbound_broken(inbound.position, error)

    def on_link_broken(self, position: int, error: PeerError, *, was_drained: bool) -> None:
        """Tell the host allreduce; `was_drained`: all that was sent had left."""
        self._owner.on_link_broken(position, error, was_drained=was_drained)

    def on_member_reported_lost(self, worker_id: int) -> None:
        """Tell the host allreduce that another member lost this one."""
        self._owner.on_member_reported_lost(worker_id)


@final
class InboundLink:
    """A member's connection to this worker, after the server has handed it over."""

    def __init__(self, channel: Channel, position: int, connection: Connection) -> None:
        self.position = position
        self.connection = connection
        self._channel = channel
        self._values: ValuesFrame | None = None  # of the payload under way
        connection.receiver = self
        connection.send(Frame(FrameKind.WELCOME))

    def target(self, connection: Connection, frame: Frame) -> memoryview | None:
        """Return memory for a member's frames."""
        if frame.kind is FrameKind.LANES:
            self._values = ValuesFrame.unpack(frame)
            return self._channel.target(self.position, self._values)
        if frame.kind in (FrameKind.HEARTBEAT, FrameKind.LOST):
            return memoryview(bytearray(frame.payload_bytes))
        raise PeerProtocolError(f"{frame.kind.name} frame from a member")

    def on_frame(self, connection: Connection, frame: Frame, payload: memoryview) -> None:
        """Take values and reports of losses."""
        if frame.kind is FrameKind.LANES:
            assert self._values is not None
            self._channel.on_values(self.position, self._values)
        elif frame.kind is FrameKind.LOST:
            self._channel.on_member_reported_lost(LostFrame.unpack(frame).worker_id)

    def on_drained(self, connection: Connection) -> None:
        """Do nothing: no frame waits for this."""

    def on_closed(self, connection: Connection, error: PeerError) -> None:
        """Tell the channel."""
        self._channel.on_inbound_broken(self, error)
