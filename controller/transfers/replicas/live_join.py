# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How a replica joins while updates go on: it begins at a place, and gets what is before that.

The place is the next one in the server's sequence. From there on, workers send the replica what is
granted. The server reports its state there, with the last record of its log. The replica reads a
copy of the log up to this record, and reports its own state. If both are equal, it lets workers in.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final

from ....hostlib.control.stations.replica_terms import MOST_COPIES
from ....hostlib.control.transfers_api import transfers_pb2 as pb
from ...jobs.punctual_timer import PunctualTimer
from ...scheduler.divergence import DivergenceBound
from ...scheduler.state.server_replica import ReplicaOptions
from ..live_station import StationRole
from ..server_place import ServerPlace
from ..transfer_flow import TransferFlow
from ..transfer_record import TransferRecord
from .replica_messages import catch_up_message
from .replica_place import ReplicaPlace, ReplicaState

_LOGGER = logging.getLogger(__name__)
_REMEDY: Final = (
    "give --server-log the directory that its server writes to, or a copy that is renewed while the"
    " replica joins, and start it again"
)


class LiveJoin:
    """Joins replicas whose updates before some place are in a log; JobReplicas says when.

    Until a replica is caught up, no commit waits for it. It is left if it takes too long.
    """

    def __init__(  # noqa: PLR0913 - the parts of a job's replicas
        self,
        job_name: str,
        flow: TransferFlow,
        servers: Mapping[int, ServerPlace],
        div_max: float,
        wait_s: float,
        *,
        remove: Callable[[ReplicaPlace, str], None],
        take_updates: Callable[[ReplicaPlace], None],
        put_in_place: Callable[[ReplicaPlace], None],
    ) -> None:
        """`div_max`: infinity if no commit waits. `wait_s`: a replica must have caught up by then.

        `take_updates(replica)`: it can let workers in. `put_in_place(replica)`: it is near enough
        to its server to take its place.
        """
        self._job_name = job_name
        self._flow = flow
        self._servers = servers
        self._div_max = div_max
        self._wait_s = wait_s
        self._remove = remove
        self._take_updates = take_updates
        self._put_in_place = put_in_place

    def begin(self, replica: ReplicaPlace, bound: DivergenceBound) -> None:
        """Give a replica its first place; the server is there."""
        server = self._servers[replica.server_id]
        first = server.next_sequence
        options = ReplicaOptions(host=replica.name, bound=bound)
        self._flow.schedule.add_replica(server, options, catches_up=True)
        replica.state = ReplicaState.CATCHING_UP
        replica.allowed = replica.applied = first
        replica.reports.clear()
        replica.stop_timer()
        replica.timer = PunctualTimer(self._wait_s, lambda: self._tire(replica))
        if server.station is not None:
            report = pb.ReportState(next_sequence=first)
            server.station.send(pb.SchedulerMessage(report_state=report))
        _LOGGER.info(
            "job %s: the replica of server %d at %s catches up, and gets updates from place %d on",
            *(self._job_name, replica.server_id, replica.station.host, first),
        )

    def greet(self, replica: ReplicaPlace) -> None:
        """Repeat for a replica that is back what it may have missed."""
        theirs = replica.reports.get(StationRole.SERVER)
        if theirs is not None:
            replica.station.send(catch_up_message(theirs))

    def take_state(self, replica: ReplicaPlace, role: StationRole, state: pb.StateReported) -> None:
        """Act on what the server or the replica reports; it may come twice."""
        if replica.state is not ReplicaState.CATCHING_UP:
            return
        theirs = replica.reports.get(StationRole.SERVER)
        if role is StationRole.SERVER and theirs is None:
            self._take_from_server(replica, state)
        elif role is StationRole.REPLICA and theirs is not None:
            self._compare(replica, state, theirs)

    def _take_from_server(self, replica: ReplicaPlace, state: pb.StateReported) -> None:
        if not state.log:
            self._remove(
                replica, "its server has no log to catch up from; start the server with --log"
            )
            return
        replica.reports[StationRole.SERVER] = state
        server = self._servers[replica.server_id]
        # The server may have applied some of the replica's places before it heard of them. They
        # are in the log, so that the replica begins behind them.
        for sequence in [each for each in replica.places if each < state.next_sequence]:
            record = replica.places.pop(sequence)
            if record is not None:
                record.is_at_replica = True
                self._flow.replica_received(server, record)
        replica.applied = max(replica.applied, state.next_sequence)
        replica.allowed = max(replica.allowed, state.next_sequence)
        replica.station.send(catch_up_message(state))

    def _compare(
        self, replica: ReplicaPlace, ours: pb.StateReported, theirs: pb.StateReported
    ) -> None:
        if (ours.version, ours.checksum) != (theirs.version, theirs.checksum):
            self._remove(
                replica,
                f"with its server's log up to record {theirs.lsn}, it has version {ours.version}"
                f" and checksum {ours.checksum:016x}, and its server had version {theirs.version}"
                f" and {theirs.checksum:016x}: its own log is no copy of that one. Copy the"
                " server's log again",
            )
            return
        server = self._servers[replica.server_id]
        self._flow.schedule.replica_caught_up(server, theirs.step)
        replica.state = ReplicaState.SETTLING
        replica.stop_timer()
        self._take_updates(replica)
        self.settle(replica)

    def settle(self, replica: ReplicaPlace) -> None:
        """Put a replica in place if it has caught up, and the bound holds."""
        if replica.state is not ReplicaState.SETTLING:
            return
        known = self._flow.schedule.replica_state(self._servers[replica.server_id])
        assert known is not None, "it has caught up"
        if known[1] <= self._div_max:
            self._put_in_place(replica)

    def granted(self, replica: ReplicaPlace, record: TransferRecord) -> None:
        """Leave a replica that is so slow to catch up that a worker would wait for it."""
        is_slow = replica.state is ReplicaState.CATCHING_UP and (
            replica.num_lacked_of(record.worker_id) >= MOST_COPIES
        )
        if is_slow:
            # Others of the batch are told of their grants first.
            asyncio.get_running_loop().call_soon(self._leave_slow, replica, record.worker_id)

    def _leave_slow(self, replica: ReplicaPlace, worker_id: int) -> None:
        if replica.state is ReplicaState.CATCHING_UP:
            self._leave(
                replica,
                f"it has not caught up while worker {worker_id} had {MOST_COPIES} updates for it",
            )

    def _tire(self, replica: ReplicaPlace) -> None:
        replica.timer = None
        self._leave(replica, f"it has not caught up in {self._wait_s:g} s")

    def _leave(self, replica: ReplicaPlace, what: str) -> None:
        theirs = replica.reports.get(StationRole.SERVER)
        where = "its server has not reported its state"
        if theirs is not None:
            where = f"it lacks records of its server's log up to {theirs.lsn}"
        self._remove(replica, f"{what}: {where}; {_REMEDY}")
