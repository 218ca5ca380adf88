# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Live aggregation groups of a job: who adds updates up, and who is in which group.

MLfabric adds updates up at idle workers. Which host is idle, and which aggregator is avoided for a
while, is decided here, and ours.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ...hostlib.control.transfers_api import transfers_pb2 as pb
from ..scheduler.grouping import MOST_MEMBERS, AggregationPlaces
from ..scheduler.transfers import TransferGroup
from .live_station import LiveStation
from .server_place import ServerPlace
from .transfer_config import TransferConfig, server_name, switch_of
from .transfer_messages import spans_from
from .transfer_record import TransferRecord, TransferState, WorkerPlace

_LOGGER = logging.getLogger(__name__)
AVOIDED_S: Final = 30.0
"""An aggregator whose members left a group gets no further ones for so long."""
_SHOWN: Final = 32
"""Groups that a report shows."""


@dataclass(kw_only=True, eq=False)
class LiveGroup:
    """A group from its grant until nothing of it is under way."""

    group_id: int
    aggregator: WorkerPlace | None
    """None: the server's switch adds up."""
    host: str
    """Of the aggregator, or of the server."""
    records: tuple[TransferRecord, ...]
    plan: TransferGroup
    gathered: set[tuple[int, int]]
    """(worker, transfer) of members that the aggregator has."""
    missing: int = 0
    """Members that were given up while the others were gathered."""
    left: int = 0
    """Members that sent their updates to the server themselves."""

    @property
    def is_open(self) -> bool:
        """Whether the server still waits for a member."""
        return any(record.state is TransferState.GRANTED for record in self.records)


@dataclass(kw_only=True)
class GroupCounts:
    """What has become of a job's groups, since it began."""

    groups: int = 0
    members: int = 0
    """Updates that were granted in groups."""
    missing: int = 0
    """Of these, those that did not come to the aggregator in time."""
    left: int = 0
    """And those that their workers sent to the server themselves."""


class LiveGroups:
    """Finds places for groups, and tells aggregators; for the thread of the event loop."""

    def __init__(
        self,
        job_name: str,
        config: TransferConfig,
        workers: Mapping[int, WorkerPlace],
        servers: Mapping[int, ServerPlace],
        open_records: Callable[[], Iterable[TransferRecord]],
    ) -> None:
        """`workers` and `servers` are the job's places, by id; they may grow.

        `open_records()` are the transfers that have not ended.
        """
        self.counts: Final = GroupCounts()
        self._job_name = job_name
        self._config = config
        self._workers = workers
        self._servers = servers
        self._open_records = open_records
        self._avoided: dict[str, float] = {}
        """Until when, by host."""
        self._shown: deque[LiveGroup] = deque(maxlen=_SHOWN)
        self._open: dict[int, LiveGroup] = {}
        self._gatherers: set[int] = set()
        """Workers that have ever announced that they gather."""
        self._offered: dict[str, WorkerPlace] = {}
        """The places of the last batch."""
        self._switch_members: dict[int, frozenset[int]] = {}
        """By server, workers whose updates its switch can add up."""

    @property
    def shown(self) -> list[LiveGroup]:
        """The last groups, and all that are open."""
        old = [group for group in self._open.values() if group not in self._shown]
        return [*old, *self._shown]

    def note_station(self, station: LiveStation) -> None:
        """Learn of a worker's process."""
        if station.aggregator is not None:
            self._gatherers.add(station.station_id)

    def forget_switch(self, server_id: int) -> None:
        """Know of no members until a server's process tells."""
        self._switch_members.pop(server_id, None)

    def note_switch_members(self, server: ServerPlace, message: pb.SwitchMembers) -> None:
        """Learn whose updates a server's switch can add up now."""
        self._switch_members[server.server_id] = frozenset(message.worker_ids)

    def places(self) -> AggregationPlaces:
        """Return the idle hosts that have an aggregator, and the switches that can add up."""
        self._offered = self._aggregators()
        return AggregationPlaces(
            hosts=tuple(sorted(self._offered)), switches=self._leaves(), most_members=MOST_MEMBERS
        )

    def announce(self, records: Iterable[TransferRecord]) -> None:
        """Tell aggregators of the groups of a batch; members learn of their aggregators."""
        found: dict[int, list[TransferRecord]] = {}
        for record in records:
            if record.grant is not None and record.grant.group is not None:
                found.setdefault(record.grant.group.group_id, []).append(record)
        for group_id, members in found.items():
            grant = members[0].grant
            assert grant is not None
            assert grant.group is not None
            if grant.group.is_switch:
                self._begin_at_switch(group_id, grant.group, members)
            else:
                self._begin(group_id, grant.group, members, self._offered[grant.group.aggregator])

    def gathered(
        self, aggregator: WorkerPlace, message: pb.UpdateGathered
    ) -> TransferRecord | None:
        """Note that an aggregator has an update; return it, None if that is nothing new."""
        group = self._open.get(message.group_id)
        worker = self._workers.get(message.worker_id)
        record = worker.records.get(message.transfer_id) if worker is not None else None
        key = message.worker_id, message.transfer_id
        if group is None or record not in group.records or group.aggregator is not aggregator:
            return None
        if key in group.gathered or record.state is not TransferState.GRANTED:
            return None
        group.gathered.add(key)
        return record

    def left(self, worker: WorkerPlace, message: pb.GroupLeft) -> TransferRecord | None:
        """Note that a member sends its update to the server itself; return its transfer.

        Its aggregator gets no groups for a while.
        """
        record = worker.records.get(message.transfer_id)
        if record is None or record.hop is None or record.hop.group_id != message.group_id:
            return None
        group = self._open.get(message.group_id)
        self.counts.left += 1
        if group is not None:
            group.left += 1
            if group.aggregator is not None:
                self._avoided[group.host] = asyncio.get_running_loop().time() + AVOIDED_S
        return record

    def gave_up(self, record: TransferRecord) -> None:
        """Note that a member is not awaited any longer."""
        group = self._open.get(record.hop.group_id) if record.hop is not None else None
        if group is None or group.aggregator is None:
            return
        if (record.worker_id, record.transfer_id) not in group.gathered:
            group.missing += 1
            self.counts.missing += 1

    def _close_ended(self) -> None:
        """Forget groups of which nothing is under way."""
        self._open = {number: each for number, each in self._open.items() if each.is_open}

    def _begin(
        self,
        group_id: int,
        plan: TransferGroup,
        records: list[TransferRecord],
        aggregator: WorkerPlace,
    ) -> None:
        station = aggregator.station
        assert station is not None
        assert station.aggregator is not None
        now_s = records[0].decided_s
        address, port = station.aggregator
        for record in records:
            assert record.grant is not None
            planned_s = record.grant.commit_s - now_s
            slack_s = 2 * self._config.gather_slack_s
            record.hop = pb.GroupHop(
                kind=pb.GroupHop.HOST,
                group_id=group_id,
                num_members=len(records),
                worker_id=aggregator.worker_id,
                address=address,
                port=port,
                outcome_s=max(2 * planned_s, planned_s + slack_s),
            )
        self._add(group_id, aggregator, station.host, records, plan)
        station.send(
            pb.SchedulerMessage(
                gather=pb.GatherExpected(
                    group_id=group_id,
                    server_id=records[0].server_id,
                    members=[
                        pb.GroupMember(worker_id=each.worker_id, transfer_id=each.transfer_id)
                        for each in records
                    ],
                    spans=spans_from(plan.spans, now_s),
                    gather_s=max(plan.gathered_s - now_s, 0.0) + self._config.gather_slack_s,
                )
            )
        )

    def _begin_at_switch(
        self, group_id: int, plan: TransferGroup, records: list[TransferRecord]
    ) -> None:
        """Tell a server of a group at its switch."""
        server_id = records[0].server_id
        station = self._servers[server_id].station
        assert station is not None, "a batch of a lost server is parked"
        now_s = records[0].decided_s
        for record in records:
            record.hop = pb.GroupHop(
                kind=pb.GroupHop.SWITCH, group_id=group_id, num_members=len(records)
            )
        self._add(group_id, None, station.host, records, plan)
        start_s = max(plan.spans[0].start_s - now_s, 0.0)
        station.send(
            pb.SchedulerMessage(
                switch_group=pb.SwitchGroupExpected(
                    group_id=group_id,
                    members=[
                        pb.GroupMember(worker_id=each.worker_id, transfer_id=each.transfer_id)
                        for each in records
                    ],
                    start_s=start_s,
                    gather_s=start_s + self._config.gather_slack_s,
                )
            )
        )

    def _add(
        self,
        group_id: int,
        aggregator: WorkerPlace | None,
        host: str,
        records: list[TransferRecord],
        plan: TransferGroup,
    ) -> None:
        group = LiveGroup(
            group_id=group_id,
            aggregator=aggregator,
            host=host,
            records=tuple(records),
            plan=plan,
            gathered=set(),
        )
        self._open[group_id] = group
        self._shown.append(group)
        self.counts.groups += 1
        self.counts.members += len(records)

    def _leaves(self) -> dict[str, frozenset[str]]:
        """Return the switches of servers, with the hosts of workers for which they can add up."""
        found: dict[str, frozenset[str]] = {}
        for server_id, members in self._switch_members.items():
            server = self._servers[server_id]
            if server.name != server_name(server_id):
                continue  # its replica has taken its place
            workers = [self._workers.get(number) for number in members]
            stations = [worker.station for worker in workers if worker is not None]
            hosts = frozenset(each.host for each in stations if each is not None)
            if server.is_attached and len(hosts) > 1:
                found[switch_of(server.name)] = hosts
        return found

    def _aggregators(self) -> dict[str, WorkerPlace]:
        """Return the aggregators that may gather a group now, by host."""
        found: dict[str, WorkerPlace] = {}
        for number in sorted(self._gatherers):
            worker = self._workers.get(number)
            station = worker.station if worker is not None else None
            if worker is None or station is None:
                continue
            if station.is_attached and station.aggregator is not None:
                found.setdefault(station.host, worker)
        if not found:
            return found
        busy = self._busy_hosts()
        return {host: worker for host, worker in found.items() if host not in busy}

    def _busy_hosts(self) -> set[str]:
        """Return the hosts whose links are in use, or that are avoided."""
        now_s = asyncio.get_running_loop().time()
        self._close_ended()
        busy = {host for host, until_s in self._avoided.items() if until_s > now_s}
        busy |= {group.host for group in self._open.values() if group.aggregator is not None}
        stations = [server.station for server in self._servers.values()]
        stations += [
            self._workers[record.worker_id].station
            for record in self._open_records()
            if record.state is not TransferState.ARRIVED
        ]
        return busy | {station.host for station in stations if station is not None}
