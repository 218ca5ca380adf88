# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A job's transfer scheduler with a real clock: batches close when they are due."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ..scheduler.grouping import AggregationPlaces
from ..scheduler.network import TransferNetwork
from ..scheduler.scheduler import SchedulerOptions, TransferScheduler
from ..scheduler.state.open_allreduces import AllreduceGrant
from ..scheduler.state.server_replica import Promotion, ReplicaOptions
from ..scheduler.transfers import ModelGrant, ModelRequest, TransferGrant, TransferRequest
from .live_station import LiveStation
from .models.model_record import ModelRecord
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
        on_given_up: Callable[[list[TransferRecord], list[TransferRecord]], None],
        *,
        places: Callable[[], AggregationPlaces],
        on_failed: Callable[[Exception], None],
    ) -> None:
        """`on_decided` gets the transfers of a batch, granted or dropped, in commit order.

        `on_given_up` gets members that have not come to their groups, and what servers apply now.
        `places()` are the hosts that are idle when a batch is closed. `on_failed` gets what a batch
        has raised, and is to close this schedule.
        """
        servers = {server_name(number): SCHEDULED_VERSION for number in range(MAX_SERVERS)}
        self._scheduler = TransferScheduler(network, servers, options)
        self._on_decided = on_decided
        self._on_given_up = on_given_up
        self._places = places
        self._on_failed = on_failed
        self._records: dict[int, TransferRecord] = {}
        """All that the scheduler knows, by its number."""
        self._last_number = 0
        self.on_models: Callable[[list[ModelRecord]], None] = lambda _: None
        """Gets the models of a batch, in the order of their grants."""
        self._models: dict[int, ModelRecord] = {}
        """Those that wait or are under way, by the scheduler's number."""
        self._last_model = 0
        self._replicated: set[int] = set()
        """Ids of servers that have a replica in place."""
        self._timer: asyncio.TimerHandle | None = None
        self.cost = DecisionCost()

    def now_s(self) -> float:
        """Return the time on the loop's clock, which all plans have."""
        return asyncio.get_running_loop().time()

    def version(self, server: ServerPlace) -> int:
        """Return the scheduler's version of a server."""
        return self._scheduler.version(server.name)

    @property
    def records(self) -> Collection[TransferRecord]:
        """What the scheduler knows, and servers have not applied."""
        return self._records.values()

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
            sum_key=record.request.sum_key,
            clock=record.request.clock,
            whole_bytes=record.request.whole_bytes,
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

    def submit_model(self, record: ModelRecord, worker: LiveStation, server: ServerPlace) -> None:
        """Let a worker's model wait for its batch; SchedulerError if the scheduler refuses it."""
        number = self._last_model + 1
        request = ModelRequest(
            transfer_id=number,
            worker=worker.host,
            server=server.name,
            size_bytes=record.request.size_bytes,
            may_relay=worker.may_relay,
        )
        self._scheduler.request_model(request, self.now_s())
        self._last_model = number
        self._models[number] = record
        record.number = number
        self._arm()

    def end_model(self, record: ModelRecord, state: TransferState) -> None:
        """Note that a model is at its worker, or is given up."""
        number, record.number, record.state = record.number, None, state
        assert number is not None, "it waits, or is granted"
        del self._models[number]
        is_there = state is TransferState.COMMITTED and record.grant is not None
        end = self._scheduler.model_delivered if is_there else self._scheduler.withdraw_model
        end(number, self.now_s())
        self._arm()

    def leave(self, host: str) -> None:
        """Note that no worker is on a host any more: no model waits for one."""
        self._scheduler.leave(host, self.now_s())
        self._arm()

    def allreduce(self, hosts: Sequence[str], size_bytes: int, value_bytes: int) -> AllreduceGrant:
        """Plan an allreduce of members' hosts from now on; SchedulerError if it cannot be."""
        self._scheduler.replace_places(AggregationPlaces())  # hosts that gather add no vectors
        try:
            now_s = self.now_s()
            return self._scheduler.allreduce(hosts, size_bytes, now_s, value_bytes=value_bytes)
        finally:
            self._arm()

    def end_allreduce(self, grant: AllreduceGrant) -> None:
        """Give back what is left of an allreduce."""
        self._scheduler.allreduce_ended(grant.number, self.now_s())

    def gathered(self, record: TransferRecord) -> None:
        """Note that a granted update is at the aggregator of its group, for the first time."""
        assert record.number is not None, "a granted transfer has a number"
        self._scheduler.gathered(record.number, self.now_s())
        self._arm()

    def add_replica(
        self, server: ServerPlace, options: ReplicaOptions, *, catches_up: bool = False
    ) -> None:
        """Replicate a server to a replica with the same model, while nothing is granted to it.

        With `catches_up`, at any time: commits wait for the replica from `replica_caught_up` on.
        """
        self._scheduler.add_replica(server.name, options, self.now_s(), catches_up=catches_up)
        self._replicated.add(server.server_id)

    def replica_caught_up(self, server: ServerPlace, earlier_step: float) -> None:
        """Note that a replica has all that was granted before it was added."""
        self._scheduler.replica_caught_up(server.name, earlier_step)

    def joins(self, host: str, name: str) -> bool:
        """Return whether a route leads from a host to a server or replica."""
        return self._scheduler.joins(host, name)

    def replica_received(self, server: ServerPlace, record: TransferRecord) -> list[TransferRecord]:
        """Note what a replica has; return what its server applies now, in order."""
        if server.server_id not in self._replicated or record.grant is None:
            return []
        number = record.grant.request.transfer_id
        if not self._scheduler.is_expected_at_replica(server.name, number):
            return []  # it was granted before the replica joined, or is settled
        return self._committed(self._scheduler.replica_received([number], self.now_s()))

    def replica_state(self, server: ServerPlace) -> tuple[int, float] | None:
        """Return a replica's version at the scheduler, and its distance.

        None without one, and while it catches up.
        """
        name = server.name
        if server.server_id not in self._replicated or self._scheduler.is_catching_up(name):
            return None
        return self._scheduler.replica_version(name), self._scheduler.replica_distance(name)

    def remove_replica(self, server: ServerPlace) -> list[TransferRecord]:
        """Go on without a replica; return what the server applies now."""
        self._replicated.discard(server.server_id)
        return self._committed(self._scheduler.remove_replica(server.name, self.now_s()))

    def promote(self, server: ServerPlace) -> tuple[Promotion, list[TransferRecord]]:
        """Let a replica take its server's place.

        Returns what the scheduler says, and the waiting transfers that are on too new a model.
        """
        self._replicated.discard(server.server_id)
        promotion = self._scheduler.promote_replica(server.name, self.now_s())
        for grant in promotion.withdrawn:
            del self._records[grant.request.transfer_id]
        refused = [self._records.pop(request.transfer_id) for request in promotion.refused]
        for record in refused:
            record.number = None
        self._arm()
        return promotion, refused

    def replace_network(self, network: TransferNetwork) -> None:
        """Plan in another network from now on; what is granted keeps its plan."""
        self._scheduler.replace_places(AggregationPlaces())  # hosts of the old network
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
        if self._scheduler.next_due_s() is not None:
            self._scheduler.replace_places(self._places())  # they decide when a batch is due
        times = self._scheduler.next_due_s(), self._scheduler.next_expiry_s()
        due_s = min((each for each in times if each is not None), default=None)
        if due_s is not None:
            self._timer = asyncio.get_running_loop().call_at(due_s, self._wake)

    def _wake(self) -> None:
        try:
            now_s = self.now_s()
            expiry_s = self._scheduler.next_expiry_s()
            if expiry_s is not None and expiry_s <= now_s:
                self._expire(now_s)
            due_s = self._scheduler.next_due_s()
            if due_s is not None and due_s <= now_s:
                self._decide(now_s)
            self._arm()
        except Exception as exc:  # whatever it is, nobody else would hear of it
            self._on_failed(exc)

    def _expire(self, now_s: float) -> None:
        """Give up what has not come to its group."""
        expiry = self._scheduler.expire(now_s)
        given_up: list[TransferRecord] = []
        for grant in expiry.withdrawn:
            record = self._records.pop(grant.request.transfer_id)
            record.number, record.state = None, TransferState.WITHDRAWN
            given_up.append(record)
        self._on_given_up(given_up, self._committed(expiry.ready))

    def _decide(self, now_s: float) -> None:
        began_s = time.thread_time()
        self._scheduler.replace_places(self._places())
        models = [self._model_of(grant, now_s) for grant in self._scheduler.grant_models(now_s)]
        decisions = self._scheduler.decide(now_s)
        if decisions or models:
            self.cost.note(len(decisions) + len(models), time.thread_time() - began_s)
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
        if models:
            self.on_models(models)

    def _model_of(self, grant: ModelGrant, now_s: float) -> ModelRecord:
        record = self._models[grant.request.transfer_id]
        record.state, record.grant, record.decided_s = TransferState.GRANTED, grant, now_s
        return record

    def _committed(self, grants: Sequence[TransferGrant]) -> list[TransferRecord]:
        ready: list[TransferRecord] = []
        for grant in grants:
            record = self._records.pop(grant.request.transfer_id)
            record.number, record.state = None, TransferState.COMMITTED
            ready.append(record)
        self._arm()
        return ready
