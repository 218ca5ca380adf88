# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A job's transfer scheduler with a real clock: batches close when they are due."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..scheduler.network import TransferNetwork
from ..scheduler.scheduler import SchedulerOptions, TransferScheduler
from ..scheduler.transfers import TransferGrant, TransferRequest
from .server_place import SCHEDULED_VERSION, ServerPlace
from .transfer_config import MAX_SERVERS, server_name
from .transfer_record import TransferRecord, TransferState


@dataclass(kw_only=True)
class DecisionCost:
    """Processor time of decisions."""

    decisions: int = 0
    seconds: float = 0.0
    longest_s: float = 0.0
    """Of one batch."""
    batches: int = 0

    def note(self, decisions: int, seconds: float) -> None:
        """Count one batch."""
        self.decisions += decisions
        self.seconds += seconds
        self.longest_s = max(self.longest_s, seconds)
        self.batches += 1


class LiveSchedule:
    """Keeps the scheduler's numbers of transfers, and lets it decide in time.

    All methods are for the thread of the event loop. Transfers get their states here.
    """

    def __init__(
        self,
        network: TransferNetwork,
        options: SchedulerOptions,
        on_decided: Callable[[list[TransferRecord]], None],
    ) -> None:
        """`on_decided` gets the transfers of a batch, granted or dropped, in commit order."""
        servers = {server_name(number): SCHEDULED_VERSION for number in range(MAX_SERVERS)}
        self._scheduler = TransferScheduler(network, servers, options)
        self._on_decided = on_decided
        self._records: dict[int, TransferRecord] = {}
        """All that the scheduler knows, by its number."""
        self._last_number = 0
        self._timer: asyncio.TimerHandle | None = None
        self.cost = DecisionCost()

    def now_s(self) -> float:
        """Return the time on the loop's clock, which all plans have."""
        return asyncio.get_running_loop().time()

    def version(self, server: ServerPlace) -> int:
        """Return the scheduler's version of a server."""
        return self._scheduler.version(server.name)

    def submit(self, record: TransferRecord, host: str, server: ServerPlace) -> None:
        """Let a request wait for its batch; SchedulerError if the scheduler refuses it."""
        number = self._last_number + 1
        request = TransferRequest(
            transfer_id=number,
            worker=host,
            server=server.name,
            size_bytes=record.request.size_bytes,
            version=record.request.version - server.version_shift,
            norm=record.request.norm,
            clock=record.request.clock,
        )
        self._scheduler.submit(request, self.now_s())
        self._last_number = number
        self._records[number] = record
        record.number, record.state = number, TransferState.WAITING
        self._arm()

    def delivered(self, record: TransferRecord) -> list[TransferRecord]:
        """Note an arrival; return what the server applies now, in order."""
        assert record.number is not None, "a granted transfer has a number"
        record.state = TransferState.ARRIVED
        return self._committed(self._scheduler.delivered([record.number], self.now_s()))

    def withdraw(self, record: TransferRecord) -> list[TransferRecord]:
        """Give up a transfer; return what the server applies now, since it need not wait."""
        number, record.number = record.number, None
        record.state = TransferState.WITHDRAWN
        if number is None:
            return []
        del self._records[number]
        return self._committed(self._scheduler.withdraw(number, self.now_s()))

    def replace_network(self, network: TransferNetwork) -> None:
        """Plan in another network from now on; what is granted keeps its plan."""
        self._scheduler.replace_network(network, self.now_s())
        self._arm()

    def close(self) -> None:
        """Decide no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        """Wake up when the next batch is due."""
        self.close()
        due_s = self._scheduler.next_due_s()
        if due_s is not None:
            self._timer = asyncio.get_running_loop().call_at(due_s, self._decide)

    def _decide(self) -> None:
        now_s, began_s = self.now_s(), time.thread_time()
        decisions = self._scheduler.decide(now_s)
        if decisions:
            self.cost.note(len(decisions), time.thread_time() - began_s)
        decided: list[TransferRecord] = []
        for decision in decisions:
            record = self._records[decision.request.transfer_id]
            record.decided_s = now_s
            if isinstance(decision, TransferGrant):
                record.state, record.grant = TransferState.GRANTED, decision
            else:
                record.state, record.drop = TransferState.DROPPED, decision
                record.drop_reason = decision.reason.value
                del self._records[decision.request.transfer_id]
                record.number = None
            decided.append(record)
        self._on_decided(decided)
        self._arm()

    def _committed(self, grants: Sequence[TransferGrant]) -> list[TransferRecord]:
        ready: list[TransferRecord] = []
        for grant in grants:
            record = self._records.pop(grant.request.transfer_id)
            record.number, record.state = None, TransferState.COMMITTED
            ready.append(record)
        self._arm()
        return ready
