# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Allreduce of integers among the members of a view, over TCP, without a switch."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from ..errors import (
    ConfigurationError,
    MemberLeftError,
    MemberLostError,
    PeerClosedError,
    PeerError,
    PeerMismatchError,
    PeerProtocolError,
    PeerRefusedError,
)
from ..peers import PeerAddress, PeerServer
from ..peers.connection import Connection
from ..peers.event_loop import Timer
from ..peers.frames import Greeting, LostFrame, Purpose
from ..slots.wire import Operation
from .channel import Channel, InboundLink
from .cost import Algorithm, LinkCosts
from .life_sign import LifeSign
from .link import OutboundLink
from .reduction import Reduction
from .source_parts import SourceParts
from .values import Values

SILENCE_S = 3.0
"""A member whose kernel gives no sign of life for so long, and accepts no call, is lost."""
DEFAULT_COSTS = LinkCosts()
CLOSE_S = 5.0
"""Longest wait until the peer thread has closed a host allreduce."""
_LOOK_S = 0.5
_OPERATIONS = (Operation.AGGREGATE_ADD, Operation.AGGREGATE_MAX)
_PURPOSES = (Purpose.REDUCE_VALUES, Purpose.REDUCE_EXPONENTS)
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Progress of the reductions, at most half a second old."""

    moved_s: float
    """When bytes of values last came or left, or a connection began, on the monotonic clock."""
    awaited: tuple[int, ...]
    """Worker ids of members whose values are due here."""


@final
class HostAllreduce:
    """The host allreduce of one view; reductions run in the peer server's thread.

    All members must submit the same sequence of operations, tags and lengths for each purpose, and
    give the same `costs`.

    `on_failure` is called at most once, in that thread. After it, no callback of a reduction comes,
    and only `close` makes sense. A dead member is named at once if its host reports it, otherwise
    within SILENCE_S, two looks at its connections and 1 s. A member whose process does not run, but
    whose host answers, is waited for.
    """

    def __init__(
        self,
        server: PeerServer,
        *,
        generation: int,
        members: Sequence[PeerAddress],
        on_failure: Callable[[PeerError], None],
        costs: LinkCosts = DEFAULT_COSTS,
        silence_s: float = SILENCE_S,
    ) -> None:
        if server.place is None:
            raise ConfigurationError(
                "enter the job at the peer server before opening a host allreduce"
            )
        self.generation = generation
        self.members = tuple(members)
        self.standing = Standing(moved_s=time.monotonic(), awaited=())
        """May be read in any thread."""
        self._costs = costs
        self._server = server
        self._job = server.place.job
        self._worker_id = server.place.worker_id
        self._positions = {member.worker_id: i for i, member in enumerate(self.members)}
        if self._worker_id not in self._positions:
            raise ConfigurationError(f"worker {self._worker_id} is no member of the view")
        self.position = self._positions[self._worker_id]
        self.num_members = len(self.members)
        self._on_failure = on_failure
        self._silence_s = silence_s
        self._channels = {purpose: Channel(self, purpose) for purpose in _PURPOSES}
        self._failure: PeerError | None = None
        self._is_closed = False
        self._left: set[int] = set()  # positions
        self._missed: set[int] = set()  # positions of members that left too early
        self._checks: dict[int, LifeSign] = {}  # positions
        self._called_s: dict[int, float] = {}  # when to call a silent member again, by position
        self._looked_s = self.standing.moved_s
        self._timer: Timer | None = None
        self._plain: set[int] = set()  # upper halves of tags
        server.loop.post(self._open)

    def reduce(  # noqa: PLR0913 - what a reduction is made of
        self,
        operation: Operation,
        values: Values,
        on_done: Callable[[Reduction], None],
        *,
        tag: int = 0,
        is_plain: bool = False,
        parts: SourceParts | None = None,
        purpose: Purpose = Purpose.REDUCE_VALUES,
    ) -> Reduction:
        """Reduce values with those of the other members, in place; from any thread.

        `values`: int32 in native byte order, one dimension, contiguous. They must not be
        touched until `on_done`, which is called in the peer thread and must be short; it finds
        `has_saturated` in the reduction. All members contribute. `tag` names the tensor and its
        operation. The host allreduce fails with PeerMismatchError if members' tags or lengths
        differ. `is_plain`: values without exponents before them whose tag has the same upper 16
        bits; it fails in the same manner if another member begins with such exponents. `parts`
        writes the values when they are needed, and reads the results when they are final.
        Reductions of different `purpose` do not wait for each other. Raises the error that ended
        the host allreduce, if there was one.
        """
        if operation not in _OPERATIONS:
            raise ConfigurationError(f"hosts do not reduce with {operation.name}")
        if values.dtype != np.int32 or values.ndim != 1 or not values.flags.carray:
            raise ConfigurationError(
                "the values must be a writable contiguous array of native int32"
            )
        failure = self._failure
        if failure is not None:
            raise failure
        if self._is_closed:
            raise PeerClosedError("the host allreduce is closed")

        def finish(done: Reduction) -> None:
            self._plain.discard(done.tag >> 16)
            on_done(done)

        ends = finish if is_plain else on_done
        reduction = Reduction(operation, values, ends, tag & 0xFFFFFFFF, parts=parts)
        self._server.loop.post(lambda: self._submit(reduction, purpose, is_plain=is_plain))
        return reduction

    def close(self) -> None:
        """Leave the view at once: after this no callback comes, and no values are touched."""
        if self._is_closed:
            return
        try:
            self._server.loop.run(self._close, CLOSE_S)
        except PeerClosedError:
            self._is_closed = True  # the server is closed, and its thread with it

    # The methods below run in the loop's thread.

    def _submit(self, reduction: Reduction, purpose: Purpose, *, is_plain: bool) -> None:
        if is_plain:
            self._plain.add(reduction.tag >> 16)
            exponents = self._channels[Purpose.REDUCE_EXPONENTS]
            try:
                for tag in exponents.early_tags:
                    self.check_early(exponents.purpose, tag)
            except PeerMismatchError as error:
                self._fail(error)
                return
        self._channels[purpose].submit(reduction)

    def check_early(self, purpose: Purpose, tag: int) -> None:
        """Refuse exponents of a tensor that this member reduces without any.

        Otherwise both members would wait, each for the other's first step.
        """
        if purpose is Purpose.REDUCE_EXPONENTS and tag >> 16 in self._plain:
            raise PeerMismatchError(
                "another worker sums floats where this one reduces integers or compares; all"
                " workers must submit the same sequence of shapes, dtypes and operations"
            )

    def _open(self) -> None:
        if self._is_closed:
            return
        self._server.add_view(self.generation, self)
        if self.num_members == 1:
            return
        self._look()
        values = self._channels[Purpose.REDUCE_VALUES]
        successor = (self.position + 1) % self.num_members
        try:
            values.link(successor)
        except PeerError as error:
            self.suspect(successor, error, has_left=True, is_missed=True)

    def _close(self) -> None:
        is_idle = all(channel.is_idle for channel in self._channels.values())
        self._is_closed = True
        self._server.remove_view(self.generation, self)
        if self._timer is not None:
            self._timer.cancel()
        for check in self._checks.values():
            check.cancel()
        for channel in self._channels.values():
            channel.stop()
            for link in (*channel.links.values(), *channel.inbound.values()):
                if is_idle and self._failure is None:
                    # The last values may still be on their path to slower members.
                    link.connection.close_gently()
                else:
                    link.connection.close()

    def call_soon(self, call: Callable[[], None]) -> None:
        """Run a call in the next turn of the loop."""
        self._server.loop.call_later(0, call)

    def choose(self, num_values: int) -> Algorithm:
        """Return the algorithm for so many values."""
        return self._costs.choose(self.num_members, num_values)

    def open_link(self, channel: Channel, position: int) -> OutboundLink:
        """Connect to a member for a channel; raise PeerUnreachableError if that fails at once."""
        member = self.members[position]
        greeting = Greeting(
            self._job, self.generation, self._worker_id, member.worker_id, channel.purpose
        )
        call = self._server.call((member.peer_address, member.peer_port), greeting)
        return OutboundLink(channel, position, self._server.loop, call)

    def adopt(self, connection: Connection, greeting: Greeting) -> None:
        """Take over a member's connection."""
        position = self._positions.get(greeting.sender)
        if position is None or position == self.position:
            raise PeerRefusedError(f"worker {greeting.sender} is no member of this view")
        channel = self._channels.get(greeting.purpose)
        if channel is None:
            raise PeerRefusedError(f"a host allreduce takes no {greeting.purpose.name} connections")
        if position in channel.inbound:
            raise PeerRefusedError(f"worker {greeting.sender} has such a connection already")
        channel.inbound[position] = InboundLink(channel, position, connection)

    def check_members(self) -> bool:
        """Return whether all members are there to start a reduction; fail if one has left."""
        if self._failure is not None or self._checks.keys() & self._left:
            return False
        if self._left:
            self._fail(self._left_error(min(self._left)))
            return False
        return True

    def on_callback_failed(self, cause: Exception) -> None:
        """A reduction's end could not be told, which is a defect: nobody may wait for it."""
        error = PeerError(f"the end of a reduction was lost: {cause!r}; the log has the traceback")
        error.__cause__ = cause
        self._fail(error)

    def on_inbound_broken(self, position: int, error: PeerError) -> None:
        """A member's connection is gone: find out whether the member is."""
        self._on_broken(position, error, is_missed=False)

    def _call_silent(self, position: int, silent_s: float, now_s: float) -> None:
        """A member's host gives no sign of life: find out whether it accepts a call."""
        if now_s >= self._called_s.get(position, now_s):
            # Kernels probe less and less often while a full buffer waits for its process.
            self._called_s[position] = now_s + self._silence_s
            silence = PeerClosedError(f"no sign of its host for {silent_s:.1f} s")
            self.suspect(position, silence, has_left=False)

    def on_link_broken(self, position: int, error: PeerError, *, was_drained: bool) -> None:
        """The connection to a member is gone: find out whether the member is."""
        self._on_broken(position, error, is_missed=not was_drained)

    def _on_broken(self, position: int, error: PeerError, *, is_missed: bool) -> None:
        if self._failure is not None or self._is_closed:
            return
        if isinstance(error, PeerProtocolError | PeerMismatchError | PeerRefusedError):
            self._fail(error)
        else:
            self.suspect(position, error, has_left=True, is_missed=is_missed)

    def on_member_reported_lost(self, worker_id: int) -> None:
        """Another member has lost this one: call it; nothing happens if it lives."""
        position = self._positions.get(worker_id, self.position)
        if position != self.position:
            self.suspect(position, PeerClosedError("another member lost it"), has_left=False)

    def suspect(
        self, position: int, error: PeerError, *, has_left: bool, is_missed: bool = False
    ) -> None:
        """Call a member, which is lost if it does not accept.

        `has_left`: if it lives, it has left the view. `is_missed`: it was still needed.
        """
        if self._failure is not None or self._is_closed:
            return
        _logger.info("worker %d: %s", self.members[position].worker_id, error)
        if has_left:
            self._left.add(position)
        if is_missed:
            self._missed.add(position)
        if position not in self._checks:
            member = self.members[position]
            self._checks[position] = LifeSign(
                self._server,
                (member.peer_address, member.peer_port),
                lambda is_alive: self._judge(position, error, is_alive),
            )

    def _judge(self, position: int, error: PeerError, is_alive: bool) -> None:
        del self._checks[position]
        if not is_alive:
            self._lose(position, error)
        elif position in self._missed or (
            position in self._left
            and any(channel.misses(position) for channel in self._channels.values())
        ):
            self._fail(self._left_error(position))
        else:
            for channel in self._channels.values():
                channel.advance()

    def _lose(self, position: int, cause: PeerError) -> None:
        worker_id = self.members[position].worker_id
        for channel in self._channels.values():
            for link in (*channel.links.values(), *channel.inbound.values()):
                link.connection.send(LostFrame(worker_id))
        lost = MemberLostError(f"worker {worker_id} is lost: {cause}", worker_id)
        lost.__cause__ = cause
        self._fail(lost)

    def _left_error(self, position: int) -> MemberLeftError:
        worker_id = self.members[position].worker_id
        return MemberLeftError(
            f"worker {worker_id} has left generation {self.generation}, but lives", worker_id
        )

    def _fail(self, error: PeerError) -> None:
        if self._failure is not None or self._is_closed:
            return
        self._failure = error
        for channel in self._channels.values():
            channel.stop()
        self._on_failure(error)

    def _look(self) -> None:
        """Note the standing, and call members whose hosts are silent.

        One timer for all connections: one for each would wake the thread as often as the values.
        """
        now_s = time.monotonic()
        # A thread that was held up has not read yet what came meanwhile.
        is_on_time = now_s - self._looked_s < 2 * _LOOK_S
        self._looked_s = now_s
        self._timer = self._server.loop.call_later(_LOOK_S, self._look)
        moved_s = self.standing.moved_s
        awaited: set[int] = set()
        for channel in self._channels.values():
            awaited |= channel.awaited
            for position, link in (*channel.links.items(), *channel.inbound.items()):
                connection = link.connection
                if connection.is_closed:
                    continue
                moved_s = max(moved_s, connection.moved_s)
                silent_s = now_s - connection.alive_s
                if is_on_time and silent_s > self._silence_s:
                    self._call_silent(position, silent_s, now_s)
        worker_ids = tuple(self.members[position].worker_id for position in sorted(awaited))
        self.standing = Standing(moved_s=moved_s, awaited=worker_ids)
