# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""An aggregator's groups: updates come from members, their sums go to a server.

MLfabric has idle workers do this. A group is known from the scheduler's word alone; updates that
come before it wait for it. Members count for themselves: what cannot be added is denied, and its
member sends it to the server.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, final

from ...control.stations.station import GatherExpected, UpdateGathered
from ...errors import (
    ExchangeTimeoutError,
    HostlibError,
    PeerClosedError,
    PeerMismatchError,
)
from ...peers.event_loop import EventLoop, Timer
from ...peers.frames import MOST_SUMMED, CommittedFrame
from .arrivals.place_order import UpdateKey
from .gathered_sum import GatheredSum, problem_of
from .granted_rate import GrantedRate
from .outgoing import OutgoingUpdate, PartOutcome
from .update_port import IncomingUpdate, UpdatePort

MOST_GATHERED_BYTES: Final = 1 << 30
"""Updates and sums in an aggregator's memory."""
EARLY_WAIT_S: Final = 5.0
"""How long an update waits for the scheduler's word of its group."""
KEPT_CLOSED: Final = 1 << 12
"""Updates of groups that are over, which are denied at once."""
_logger = logging.getLogger(__name__)


@dataclass(eq=False)
class _Gathering:
    """A group until its sum has an outcome."""

    told: GatherExpected
    told_s: float
    awaited: set[UpdateKey]
    """Members that may still come."""
    gathered: dict[UpdateKey, IncomingUpdate] = field(
        default_factory=dict[UpdateKey, IncomingUpdate]
    )
    """Members in the sum."""
    total: GatheredSum | None = None
    timer: Timer | None = None
    """Until the sum leaves without what is missing."""


@final
class Gatherer:
    """Runs in the thread of its loop; `forward` sends a sum, which it owns then.

    `counters`: gathered_updates, sent_sums, partial_sums (without members that did not come),
    denied_members (whose updates could not be added), unexpected_members (of unknown groups).
    """

    def __init__(
        self,
        loop: EventLoop,
        num_servers: int,
        *,
        forward: Callable[[OutgoingUpdate], None],
        report: Callable[[UpdateGathered], None],
        most_bytes: int = MOST_GATHERED_BYTES,
    ) -> None:
        self.counters: Counter[str] = Counter()
        self._loop = loop
        self._num_servers = num_servers
        self._forward = forward
        self._report = report
        self._most_bytes = most_bytes
        self._held_bytes = 0
        self._groups: dict[UpdateKey, _Gathering] = {}
        """By member that may still come."""
        self._early: dict[UpdateKey, IncomingUpdate] = {}
        self._coming: dict[UpdateKey, IncomingUpdate] = {}
        """Updates of which a part has come."""
        self._closed: OrderedDict[UpdateKey, None] = OrderedDict()
        self._ports: dict[UpdatePort, None] = {}

    def on_expected(self, told: GatherExpected) -> None:
        """Learn of a group from the scheduler; a second word of it changes nothing."""
        keys = [UpdateKey(*member) for member in told.members]
        is_usable = 0 <= told.server_id < self._num_servers and 1 <= len(keys) <= MOST_SUMMED
        if not is_usable or any(key in self._groups or key in self._closed for key in keys):
            return
        group = _Gathering(told, time.monotonic(), set(keys))
        group.timer = self._loop.call_later(told.gather_s, lambda: self._send(group))
        self._groups |= dict.fromkeys(keys, group)
        for key in keys:
            early = self._early.pop(key, None)
            if early is not None:
                self._add(group, key, early)

    # The ports call the methods below.

    def enter(self, port: UpdatePort, incarnation: int) -> None:
        """Let a member send; nothing of an earlier connection is known."""
        self._ports[port] = None
        port.answer_enter(0, 0)

    def is_known(self, worker_id: int, incarnation: int, number: int) -> bool:
        """Return False: the server alone knows what has been applied."""
        return False

    def reserve(self, update: IncomingUpdate) -> bool:
        """Return whether there is memory; a single update always gets some."""
        size = update.head.num_bytes
        if self._held_bytes and self._held_bytes + size > self._most_bytes:
            return False
        self._held_bytes += size
        self._coming[_key(update)] = update
        return True

    def release(self, update: IncomingUpdate) -> None:
        """Free an update's memory, and let others come."""
        if self._coming.get(_key(update)) is update:
            del self._coming[_key(update)]
        self._held_bytes -= update.head.num_bytes
        for port in list(self._ports):
            port.on_room()

    def arrive(self, update: IncomingUpdate) -> None:
        """Add an update to its group's sum, or hold it until the group is known."""
        key = _key(update)
        self._coming.pop(key, None)
        group = self._groups.get(key)
        if group is not None:
            self._add(group, key, update)
        elif key in self._closed or key in self._early or update.summed:
            self._deny(update, _too_late(update))
        else:
            self._early[key] = update
            self._loop.call_later(EARLY_WAIT_S, lambda: self._expire(key, update))

    def detach(self, port: UpdatePort) -> None:
        """Learn that a member's connection is gone; what it has not sent will not come."""
        self._ports.pop(port, None)

    def _expire(self, key: UpdateKey, update: IncomingUpdate) -> None:
        if self._early.get(key) is update:
            del self._early[key]
            self.counters["unexpected_members"] += 1
            self._deny(update, _too_late(update))

    def _add(self, group: _Gathering, key: UpdateKey, update: IncomingUpdate) -> None:
        del self._groups[key]
        group.awaited.discard(key)
        self._close(key)
        problem = problem_of(update) or self._sum_up(group, update)
        if problem:
            self._deny(update, PeerMismatchError(problem))
        else:
            group.gathered[key] = update
            self.counters["gathered_updates"] += 1
            self._report(UpdateGathered(group.told.group_id, *key))
        if not group.awaited:
            self._send(group)

    def _sum_up(self, group: _Gathering, update: IncomingUpdate) -> str:
        """Add a usable update to its group's sum; return why it cannot be added, "" if it was."""
        if group.total is None:
            group.total = GatheredSum(update)
            return ""
        before = group.total.num_bytes
        problem = group.total.add(update)
        if not problem:
            self._held_bytes += group.total.num_bytes - before
            self.release(update)
        return problem

    def _send(self, group: _Gathering) -> None:
        """Send what has come; what comes later is denied."""
        if group.timer is not None:
            group.timer.cancel()
            group.timer = None
        if group.awaited:
            self._give_up(group)
        total, told = group.total, group.told
        if total is None:
            return
        members = sorted(
            (each.members[0] for each in group.gathered.values()),
            key=lambda member: member.sequence,
        )
        self.counters["sent_sums"] += 1
        self._forward(
            OutgoingUpdate(
                shard=told.server_id,
                table=total.table,
                num_keys=total.num_keys,
                payload=total.payload,
                version=min(member.version for member in members),
                norm=0.0,
                done=lambda outcome: self._post_end(group, outcome),
                summed=tuple(members),
                rate=self._rate(group),
            )
        )

    def _rate(self, group: _Gathering) -> GrantedRate | None:
        """Return the sum's schedule; it begins now, if it should have begun."""
        told = group.told
        if not told.spans:
            return None
        late_s = max(0.0, time.monotonic() - group.told_s - told.spans[0].start_s)
        return GrantedRate(told.spans, group.told_s + late_s)

    def _give_up(self, group: _Gathering) -> None:
        """Wait for nobody any more."""
        self.counters["partial_sums"] += bool(group.gathered)
        names = ", ".join(f"{key.transfer_id} of worker {key.worker_id}" for key in group.awaited)
        _logger.warning(
            "group %d is sent without transfers that have not come in %.1f s: %s",
            *(group.told.group_id, group.told.gather_s, names),
        )
        for key in group.awaited:
            del self._groups[key]
            self._close(key)
            coming = self._coming.pop(key, None)
            if coming is not None:
                self.counters["denied_members"] += 1
                coming.port.on_denied(coming.head.number, _too_late(coming))  # and it is released
        group.awaited.clear()

    def _post_end(self, group: _Gathering, outcome: PartOutcome | HostlibError) -> None:
        """Take an outcome; in any thread."""
        with contextlib.suppress(PeerClosedError):  # the members have learnt of that
            self._loop.post(lambda: self._end(group, outcome))

    def _end(self, group: _Gathering, outcome: PartOutcome | HostlibError) -> None:
        """Tell members what became of the sum."""
        for update in group.gathered.values():
            if isinstance(outcome, HostlibError):
                update.port.on_denied(update.head.number, outcome)
            else:
                update.port.on_committed(CommittedFrame(update.head.number, outcome.version, 0))
        first, total = next(iter(group.gathered.values())), group.total
        assert total is not None, "what is sent has a sum"
        self._held_bytes -= total.num_bytes - first.head.num_bytes
        self.release(first)

    def _deny(self, update: IncomingUpdate, error: HostlibError) -> None:
        self.counters["denied_members"] += 1
        update.port.on_denied(update.head.number, error)
        self.release(update)

    def _close(self, key: UpdateKey) -> None:
        self._closed[key] = None
        while len(self._closed) > KEPT_CLOSED:
            self._closed.popitem(last=False)


def _key(update: IncomingUpdate) -> UpdateKey:
    return UpdateKey(update.worker_id, update.head.transfer_id)


def _too_late(update: IncomingUpdate) -> HostlibError:
    return ExchangeTimeoutError(
        f"transfer {update.head.transfer_id} of worker {update.worker_id} has no open group at this"
        " aggregator: it comes too late, or the scheduler has told of no such group",
        [update.worker_id],
    )
