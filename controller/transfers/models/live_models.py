# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A job's models on their paths: servers ask, the scheduler orders, servers send as granted."""

from __future__ import annotations

import itertools
import logging
from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import Final

from ....hostlib.control.transfers_api import transfers_pb2 as pb
from ...errors import TransferRefusedError
from ...jobs.punctual_timer import PunctualTimer
from ...scheduler.errors import SchedulerError
from ..live_schedule import LiveSchedule
from ..live_station import LiveStation
from ..rates.link_tracking import LinkTracker, SentUpdate
from ..server_place import ServerPlace
from ..transfer_config import TransferConfig
from ..transfer_log import TransferLog, planned_times
from ..transfer_messages import refused_message, spans_from
from ..transfer_record import REMEMBERED, TransferState, WorkerPlace
from .model_record import ModelRecord, ModelTally, chains_of

_LOGGER = logging.getLogger(__name__)
_SHOWN: Final = 32
"""Ended models that a report shows."""


class LiveModels:
    """Moves models from state to state, and tells their servers.

    All methods are for the thread of the event loop. A model that cannot be planned is refused:
    its server sends it without a grant, since a worker waits for it.
    """

    def __init__(  # noqa: PLR0913 - the parts of a job
        self,
        job_name: str,
        schedule: LiveSchedule,
        tracker: LinkTracker,
        config: TransferConfig,
        log: TransferLog,
        *,
        workers: Mapping[int, WorkerPlace],
        servers: Mapping[int, ServerPlace],
    ) -> None:
        self.tally: Final = ModelTally()
        self.ended: deque[ModelRecord] = deque(maxlen=_SHOWN)
        """Models that ended last."""
        self._job_name = job_name
        self._schedule = schedule
        self._tracker = tracker
        self._config = config
        self._log = log
        self._workers = workers
        self._servers = servers
        self._records: dict[int, OrderedDict[int, ModelRecord]] = {}
        """By server, then by its number: all that are open, and the last that have ended."""
        schedule.on_models = self._granted

    @property
    def open_records(self) -> list[ModelRecord]:
        """What waits or is under way, by server and in the order of requests."""
        return [
            record
            for records in self._records.values()
            for record in records.values()
            if record.state.is_open
        ]

    def take(self, server: ServerPlace, message: pb.StationMessage) -> bool:
        """Act on what a server says of a model; return whether it is of one.

        Raises TransferRefusedError for what makes no sense.
        """
        match message.WhichOneof("message"):
            case "model_requested":
                self._request(server, message.model_requested)
            case "model_delivered":
                self._delivered(self._record(server, message.model_delivered.transfer_id))
            case "withdrawn":
                record = self._record(server, message.withdrawn.transfer_id)
                self._withdrawn(record, is_sent=message.withdrawn.is_sent_ungranted)
            case "rate_observed":
                self._observe(server, message.rate_observed)
            case _:
                return False
        return True

    def abandon(self, server: ServerPlace) -> None:
        """Give up the models of a server that is gone; the numbers of the next one begin again."""
        for record in self._of(server.server_id).values():
            self._withdrawn(record, is_sent=False)
        del self._records[server.server_id]

    def lose_worker(self, worker_id: int) -> None:
        """Give up the models for a worker that is gone."""
        for record in self.open_records:
            if record.worker_id == worker_id:
                self._withdrawn(record, is_sent=False)

    def close(self) -> None:
        """End no wait any more."""
        for record in self.open_records:
            record.stop_timer()

    def _record(self, server: ServerPlace, transfer_id: int) -> ModelRecord | None:
        return self._of(server.server_id).get(transfer_id)

    def _of(self, server_id: int) -> OrderedDict[int, ModelRecord]:
        return self._records.setdefault(server_id, OrderedDict[int, ModelRecord]())

    def _request(self, server: ServerPlace, request: pb.ModelRequested) -> None:
        known = self._record(server, request.transfer_id)
        if known is not None:
            self._answer_again(known, request)
            return
        record = ModelRecord(
            server_id=server.server_id, request=request, requested_s=self._schedule.now_s()
        )
        self.tally.requested += 1
        self._note("model_requested", record)
        problem = self._problem(record)
        if not problem:
            host = self._host_of(record)
            assert host is not None, "there is no problem"
            try:
                self._schedule.submit_model(record, host, server)
            except SchedulerError as exc:
                problem = str(exc)
            else:
                self._remember(record)
                return
        self._refuse(server, record, problem)

    def _problem(self, record: ModelRecord) -> str:
        """Return why a model cannot be planned, "" if it can."""
        worker_id = record.worker_id
        if self._host_of(record) is None:
            return f"worker {worker_id} is not registered"
        others = [each for each in self.open_records if each.worker_id == worker_id]
        if len(others) >= self._config.max_open_per_worker:
            return (
                f"worker {worker_id} has {len(others)} models that wait or are under way; ask for"
                " fewer at a time, or raise max_open_per_worker of [transfers]"
            )
        return ""

    def _host_of(self, record: ModelRecord) -> LiveStation | None:
        worker = self._workers.get(record.worker_id)
        return None if worker is None else worker.station

    def _refuse(self, server: ServerPlace, record: ModelRecord, problem: str) -> None:
        """Let a server send a model without a grant; its stream goes on."""
        error = TransferRefusedError(f"{record.name} of job {self._job_name!r}: {problem}")
        _LOGGER.info("a model is sent without a grant: %s", error)
        self.tally.ungranted += 1
        self._note("model_ungranted", record)
        if server.station is not None:
            server.station.send(refused_message(record.transfer_id, error))

    def _remember(self, record: ModelRecord) -> None:
        records = self._of(record.server_id)
        records[record.transfer_id] = record
        while len(records) > REMEMBERED:
            oldest = next((each for each in records.values() if not each.state.is_open), None)
            if oldest is None:
                return
            del records[oldest.transfer_id]

    def _answer_again(self, record: ModelRecord, request: pb.ModelRequested) -> None:
        """Answer a request that has come twice, as after a broken stream."""
        if record.request != request:
            raise TransferRefusedError(
                f"{record.name} was requested before for another worker or with another size; give"
                " each model an id of its own"
            )
        if record.state is TransferState.GRANTED:
            self._tell(record, self._schedule.now_s())

    def _granted(self, records: list[ModelRecord]) -> None:
        """Tell servers of a batch."""
        for chain in chains_of(records):
            self._link(chain)
            for record in reversed(chain):  # the server begins with the first one's grant
                self._chain_granted(chain[0], record)

    def _link(self, chain: list[ModelRecord]) -> None:
        """Say who sends each model of a chain: the server, if a stream of a worker is broken.

        All are sent at one rate, so they have one headroom.
        """
        headroom = min(self._tracker.headroom(record.plan.links) for record in chain)
        for record in chain:
            record.headroom = headroom
        for sender, record in itertools.pairwise(chain):
            stations = self._host_of(sender), self._host_of(record)
            if all(station is not None and station.may_relay for station in stations):
                record.sender = sender

    def _chain_granted(self, first: ModelRecord, record: ModelRecord) -> None:
        """Tell a server of a grant of the chain that begins with `first`."""
        grant, sender, config = record.plan, record.sender, self._config
        self.tally.granted += 1
        links = grant.links
        if sender is None and record is not first:  # the server sends it, by the plan of a relay
            links = first.plan.links[0], grant.links[-1]
        self._tracker.granted(record.key, links, grant.spans, grant.request.bits, record.headroom)
        times = planned_times(grant.spans, record.decided_s)
        relayed_by = None if sender is None else sender.worker_id
        self._note("model_granted", record, relayed_by=relayed_by, **times)
        self._tell(record, record.decided_s)
        planned_s = grant.end_s - record.decided_s
        if sender is not None:
            self.tally.relayed += 1
            planned_s += config.relay_slack_s
        overdue_s = max(config.overdue_ratio * planned_s, config.overdue_least_s)
        record.timer = PunctualTimer(overdue_s, lambda: self._overdue(record))

    def _tell(self, record: ModelRecord, now_s: float) -> None:
        station = self._servers[record.server_id].station
        if station is not None:
            spans = spans_from(record.plan.spans, now_s, record.headroom)
            granted = pb.TransferGranted(
                transfer_id=record.transfer_id, spans=spans, model_hop=self._hop(record, spans)
            )
            station.send(pb.SchedulerMessage(granted=granted))

    def _hop(self, record: ModelRecord, spans: list[pb.RateSpan]) -> pb.ModelHop | None:
        """Return from whom a worker gets its model; None: from the server.

        A worker whose own model has ended sends nothing on any more.
        """
        worker, sender = self._host_of(record), record.sender
        if worker is None or worker.relay is None or sender is None or not sender.state.is_open:
            return None
        address, port = worker.relay
        return pb.ModelHop(
            sender_transfer_id=sender.transfer_id,
            address=address,
            port=port,
            wait_s=spans[-1].end_s + self._config.relay_slack_s,
        )

    def _overdue(self, record: ModelRecord) -> None:
        """Give up a granted model of which nobody says that it is there."""
        _LOGGER.warning("job %s: %s is overdue", self._job_name, record.name)
        self._withdrawn(record, is_sent=False)

    def _delivered(self, record: ModelRecord | None) -> None:
        if record is None or record.state is not TransferState.GRANTED:
            return  # it was given up, or an earlier controller has granted it
        self._schedule.end_model(record, TransferState.COMMITTED)
        self.tally.delivered += 1
        self._end(record, "model_delivered")

    def _withdrawn(self, record: ModelRecord | None, *, is_sent: bool) -> None:
        """Give up a model; `is_sent`: its server sends it without a grant."""
        if record is None or not record.state.is_open:
            return
        self._tracker.withdrawn(record.key)
        self._schedule.end_model(record, TransferState.WITHDRAWN)
        if is_sent:
            self.tally.ungranted += 1
        else:
            self.tally.withdrawn += 1
        self._end(record, "model_ungranted" if is_sent else "model_withdrawn")

    def _observe(self, server: ServerPlace, message: pb.RateObserved) -> None:
        """Note how fast a server sent a model."""
        record = self._record(server, message.transfer_id)
        if record is None or record.grant is None or message.seconds <= 0:
            return
        wait_s = message.network_wait_s if message.HasField("network_wait_s") else None
        sent = SentUpdate(message.seconds, wait_s)
        verdict = self._tracker.observe(record.key, sent, self._schedule.now_s())
        limit = verdict.value if verdict else None
        self._note("model_observed", record, seconds=message.seconds, limit=limit)

    def _end(self, record: ModelRecord, event: str) -> None:
        record.stop_timer()
        record.ended_s = self._schedule.now_s()
        self.ended.append(record)
        self._note(event, record)

    def _note(self, event: str, record: ModelRecord, **fields: float | str | None) -> None:
        self._log.note(
            event,
            job=self._job_name,
            worker=record.worker_id,
            server=record.server_id,
            transfer=record.transfer_id,
            bytes=record.request.size_bytes,
            **fields,
        )
