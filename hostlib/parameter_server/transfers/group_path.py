# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A member's path to a group: an aggregator or the switch, or to the server if that fails.

The server decides what counts: an update that comes in a sum and by itself is applied once. So a
member may leave its group at any time.
"""

from __future__ import annotations

import logging
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ...control.stations.station import GroupHop, GroupLeft, StationReport
from ...errors import HostlibError
from ...peers.event_loop import EventLoop, Timer
from ...peers.frames import MAX_BATCH_BYTES, Greeting, Purpose
from ...peers.handshake import PeerCall
from ..options import GENERATION, ClientOptions
from ..tables.definition import TableDefinition
from ..tables.state import KEY_BYTES
from .outgoing import OutgoingUpdate, PartOutcome
from .update_link import UpdateLink

UNREACHABLE_S: Final = 1.0
"""An aggregator that cannot be reached for so long is given up."""
_logger = logging.getLogger(__name__)


@final
@dataclass(frozen=True, kw_only=True)
class FellowEnd:
    """A worker as an UpdateLink dials it."""

    options: ClientOptions
    """Of the worker that calls."""
    worker_id: int
    address: tuple[str, int]
    """Where it listens."""
    shard: int
    """The server that an aggregator's sums are for; of a member of an allreduce, its id."""

    @property
    def identity(self) -> int:
        """That of every worker: nothing of it outlives a connection."""
        return 0

    def call_for(self, purpose: Purpose) -> PeerCall:
        """Return a call of the worker."""
        own = self.options
        return PeerCall(
            address=self.address,
            source=own.source,
            greeting=Greeting(own.job, GENERATION, own.worker_id, self.worker_id, purpose),
            token=own.token,
            credentials=own.credentials,
        )


class _Leg(NamedTuple):
    leg: OutgoingUpdate
    link: UpdateLink
    timer: Timer


@final
class GroupPath:
    """Runs in the loop's thread.

    `counters`: grouped_updates (granted for groups), left_updates (of these, sent to the server by
    themselves after all).
    """

    def __init__(  # noqa: PLR0913 - a worker's parts
        self,
        loop: EventLoop,
        options: ClientOptions,
        incarnation: int,
        links: Sequence[UpdateLink],
        *,
        report: Callable[[StationReport], None],
        on_measured: Callable[[OutgoingUpdate, float], None],
        counters: Counter[str],
    ) -> None:
        """`links` are those to the servers."""
        self._loop = loop
        self._options = options
        self._incarnation = incarnation
        self._links = links
        self._report = report
        self._on_measured = on_measured
        self._counters = counters
        self._aggregators: dict[tuple[tuple[str, int], int, int], UpdateLink] = {}
        self._legs: dict[OutgoingUpdate, _Leg] = {}
        """By update: what is on its path to an aggregator, or waits there."""

    def send(self, update: OutgoingUpdate) -> None:
        """Send an update whose grant has a hop; it is scaled here."""
        grant, shard = update.grant, update.shard
        assert grant is not None
        assert grant.hop is not None
        hop = grant.hop
        self._counters["grouped_updates"] += 1
        update.payload = scaled(update.payload, update.num_keys, grant.factor)
        update.grant = grant = grant._replace(factor=1.0)
        if hop.is_switch:
            self._links[shard].join(update)
            return
        rate, update.rate = update.rate, None
        tell = update.done

        def done(outcome: PartOutcome | HostlibError) -> None:
            self._forget(update)
            tell(outcome)

        update.done = done
        open_from = self._links[shard].await_sum(update)
        leg = OutgoingUpdate(
            shard=shard,
            table=update.table,
            num_keys=update.num_keys,
            payload=update.payload,
            version=update.version,
            norm=update.norm,
            done=lambda outcome: self._on_leg(update, outcome),
            number=update.number,
            open_from=open_from,
            transfer_id=update.transfer_id,
            grant=grant,
            rate=rate,
        )
        reason = f"no outcome in {hop.outcome_s:.1f} s"
        timer = self._loop.call_later(hop.outcome_s, lambda: self.leave(update, reason))
        link = self._aggregator(hop, shard)
        self._legs[update] = _Leg(leg, link, timer)
        link.send(leg)

    def leave(self, update: OutgoingUpdate, reason: str) -> None:
        """Have an update leave for the server, if it has no outcome and has not done so."""
        found = self._forget(update)
        if found is not None:
            found.link.cancel(found.leg)  # if it were whole, the sum would be of no effect
        if not self._links[update.shard].leave_group(update):
            return
        self._note_left(update, reason)

    def declined(self, update: OutgoingUpdate) -> None:
        """Send an update to its server that is in no group of the switch; it was to be in one."""
        self._note_left(update, "its server has no group for it at the switch")
        self._links[update.shard].send(update)

    def _note_left(self, update: OutgoingUpdate, reason: str) -> None:
        self._counters["left_updates"] += 1
        grant = update.grant
        assert grant is not None
        assert grant.hop is not None
        _logger.warning(
            "transfer %d leaves group %d for its server: %s",
            *(update.transfer_id, grant.hop.group_id, reason),
        )
        self._report(GroupLeft(grant.hop.group_id, update.transfer_id))

    def close(self, error: HostlibError) -> None:
        """End the connections to aggregators; nothing leaves its group for that."""
        links, self._aggregators = [*self._aggregators.values()], {}
        for link in links:
            link.close(error)

    def _forget(self, update: OutgoingUpdate) -> _Leg | None:
        found = self._legs.pop(update, None)
        if found is not None:
            found.timer.cancel()
        return found

    def _aggregator(self, hop: GroupHop, shard: int) -> UpdateLink:
        key = hop.address, hop.worker_id, shard
        if key not in self._aggregators:
            self._aggregators[key] = UpdateLink(
                self._loop,
                FellowEnd(
                    options=self._options, worker_id=hop.worker_id, address=hop.address, shard=shard
                ),
                self._incarnation,
                unreachable_s=UNREACHABLE_S,
                timeout_s=self._options.timeout_s,
                on_measured=self._on_measured,
                sends_again=False,
            )
        return self._aggregators[key]

    def _on_leg(self, update: OutgoingUpdate, outcome: PartOutcome | HostlibError) -> None:
        """Go on alone if the aggregator cannot use an update; its server tells the outcome."""
        if isinstance(outcome, HostlibError):
            self.leave(update, str(outcome))


def sum_key(definition: TableDefinition, num_keys: int, whole_bytes: int) -> int:
    """Return what updates have in common whose sum has the effect of each; 0: it has not.

    `whole_bytes`: as of TransferRequested. Sums of sparse updates may grow up to it.
    """
    is_apart = definition.optimiser.num_states or definition.staleness is not None
    if is_apart or whole_bytes > MAX_BATCH_BYTES:
        return 0
    same = "sparse" if whole_bytes else num_keys
    return zlib.crc32(definition.pack() + f" {same}".encode()) or 1


def scaled(payload: memoryview, num_keys: int, factor: float) -> memoryview:
    """Return keys and values of an update with its values multiplied, as the server would do."""
    if factor == 1.0:
        return payload
    copy = bytearray(payload)
    values: NDArray[np.float32] = np.frombuffer(copy, np.float32, offset=KEY_BYTES * num_keys)
    values *= np.float32(factor)
    return memoryview(copy)
