# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A job's allreduces: members ask, are gathered, and send as the scheduler has planned.

MLfabric names the call. Who is gathered, what members must agree on, and how the wait for them
ends, is ours.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from ....hostlib.control.stations.allreduce_terms import MOST_MEMBERS, VALUE_BYTES
from ....hostlib.control.transfers_api import transfers_pb2 as pb
from ...jobs.punctual_timer import PunctualTimer
from ...scheduler.errors import SchedulerError
from ..live_schedule import LiveSchedule
from ..transfer_config import TransferConfig
from ..transfer_log import TransferLog
from ..transfer_record import WorkerPlace
from .allreduce_record import AllreduceRecord, AllreduceTally

_LOGGER = logging.getLogger(__name__)


class LiveAllreduces:
    """Gathers the requests of all members, and tells each what it sends; for the loop's thread.

    One allreduce of a job is under way at a time: a member asks for the next one when it has ended
    the one before. A grant is for all members or for none.
    """

    def __init__(
        self,
        job_name: str,
        schedule: LiveSchedule,
        config: TransferConfig,
        log: TransferLog,
        workers: Mapping[int, WorkerPlace],
    ) -> None:
        """`workers` are the job's places, by id; they may grow."""
        self.tally: Final = AllreduceTally()
        self._job_name = job_name
        self._schedule = schedule
        self._config = config
        self._log = log
        self._workers = workers
        self._waiting: dict[int, pb.AllreduceRequested] = {}
        """By worker: requests that wait for those of other members."""
        self._timer: PunctualTimer | None = None
        """Ends the wait of the first one."""
        self._record: AllreduceRecord | None = None
        """What is granted, and has not ended."""
        self._failed: dict[int, pb.AllreduceFailed] = {}
        """By worker: the last one that it was told of."""

    @property
    def is_idle(self) -> bool:
        """Whether no member waits, and nothing is reserved."""
        return not self._waiting and self._record is None

    def take(self, worker: WorkerPlace, message: pb.StationMessage) -> bool:
        """Act on what a worker says of an allreduce; return whether it is of one."""
        match message.WhichOneof("message"):
            case "allreduce_requested":
                self._request(worker, message.allreduce_requested)
            case "allreduce_ended":
                self._leave(worker.worker_id, message.allreduce_ended.transfer_id)
            case "withdrawn":
                return self._leave(worker.worker_id, message.withdrawn.transfer_id)
            case _:
                return False
        return True

    def lose_worker(self, worker_id: int) -> None:
        """Fail what a worker that is gone takes part in."""
        self._failed.pop(worker_id, None)
        text = f"worker {worker_id} of job {self._job_name!r} is gone"
        self._waiting.pop(worker_id, None)
        if any(worker_id < request.num_members for request in self._waiting.values()):
            self._fail(pb.AllreduceFailed.LOST, text, [worker_id])
        elif not self._waiting:
            self._stop_timer()
        record = self._record
        if record is None or worker_id not in record.running:
            return
        record.running.discard(worker_id)
        for other in record.running:
            self._tell_failed(
                other, record.requests[other], pb.AllreduceFailed.LOST, text, [worker_id]
            )
        if not record.running:
            self._end(record)

    def close(self) -> None:
        """End no wait any more."""
        self._stop_timer()
        if self._record is not None:
            self._record.stop_timer()

    def _request(self, worker: WorkerPlace, request: pb.AllreduceRequested) -> None:
        number = worker.worker_id
        if self._answer_again(number, request):
            return
        problem = _problem(number, request)
        if problem:
            self.tally.failed += 1
            self._tell_failed(number, request, pb.AllreduceFailed.REFUSED, problem, [number])
            return
        record = self._record
        if record is not None and number in record.running:
            self._leave(number, record.requests[number].transfer_id)  # it has gone on
        if not self._waiting:
            self._timer = PunctualTimer(request.wait_s, self._tire)
        self._waiting[number] = request
        self._tell_noted(number, request)
        if len(self._waiting) == max(each.num_members for each in self._waiting.values()):
            self._gathered()

    def _answer_again(self, number: int, request: pb.AllreduceRequested) -> bool:
        """Answer a request that has come before, as after a broken stream."""
        record, failed = self._record, self._failed.get(number)
        if record is not None and number in record.running and record.requests[number] == request:
            self._send(number, record.message(number, self._schedule.now_s()))
            return True
        if self._waiting.get(number) == request:
            self._tell_noted(number, request)
            return True
        if failed is not None and failed.transfer_id == request.transfer_id:
            self._send(number, pb.SchedulerMessage(allreduce_failed=failed))
            return True
        return False

    def _gathered(self) -> None:
        """Plan what all members have asked for, if it is the same."""
        self._stop_timer()
        difference, odd = _difference(self._waiting)
        if difference:
            self._fail(pb.AllreduceFailed.MISMATCH, difference, odd)
            return
        requests = {number: self._waiting[number] for number in sorted(self._waiting)}
        hosts = tuple(self._host(number) for number in requests)
        shared = [number for number, host in enumerate(hosts) if hosts.count(host) > 1]
        if shared:
            text = f"workers {_names(shared)} share a host; let each member run on one of its own"
            self._fail(pb.AllreduceFailed.REFUSED, text, shared)
            return
        try:
            grant = self._schedule.allreduce(hosts, requests[0].size_bytes, VALUE_BYTES)
        except SchedulerError as exc:
            self._fail(pb.AllreduceFailed.REFUSED, str(exc), [])
            return
        self._waiting.clear()
        if self._record is not None:  # of more members, one of which has not ended it
            self._end(self._record)
        self._grant(AllreduceRecord(requests=requests, hosts=hosts, grant=grant))

    def _host(self, number: int) -> str:
        station = self._workers[number].station
        assert station is not None, "requests of lost workers are given up"
        return station.host

    def _grant(self, record: AllreduceRecord) -> None:
        self._record = record
        record.running.update(record.requests)
        now_s = self._schedule.now_s()
        self.tally.granted += 1
        self._note("allreduce_granted", record, seconds=record.grant.plan.end_s - now_s)
        for number in record.requests:
            self._send(number, record.message(number, now_s))
        planned_s = record.grant.plan.end_s - now_s
        overdue_s = max(self._config.overdue_ratio * planned_s, self._config.overdue_least_s)
        record.timer = PunctualTimer(overdue_s, lambda: self._overdue(record))

    def _overdue(self, record: AllreduceRecord) -> None:
        """Keep nothing reserved for members that are late; they go on all the same."""
        _LOGGER.warning(
            "job %s: %s is overdue: workers %s have not ended it",
            *(self._job_name, record.name, _names(record.running)),
        )
        self.tally.overdue += 1
        self._end(record)

    def _leave(self, number: int, transfer_id: int) -> bool:
        """Note that a worker waits for nothing more; return whether it is known of."""
        waiting, record = self._waiting.get(number), self._record
        if waiting is not None and waiting.transfer_id == transfer_id:
            del self._waiting[number]
            if not self._waiting:
                self._stop_timer()
            return True
        if record is None or number not in record.running:
            return False
        if record.requests[number].transfer_id != transfer_id:
            return False
        record.running.discard(number)
        if not record.running:
            self._end(record)
        return True

    def _end(self, record: AllreduceRecord) -> None:
        """Give back what is reserved."""
        record.stop_timer()
        self._record = None
        self.tally.ended += 1
        self._schedule.end_allreduce(record.grant)
        self._note("allreduce_ended", record)

    def _tire(self) -> None:
        """Wait no longer for members that have not asked."""
        self._timer = None
        wanted = max(each.num_members for each in self._waiting.values())
        missing = [number for number in range(wanted) if number not in self._waiting]
        difference, odd = _difference(self._waiting)
        if difference:
            self._fail(pb.AllreduceFailed.MISMATCH, difference, odd)
            return
        first = next(iter(self._waiting.values()))
        text = (
            f"workers {_names(missing)} have not asked for allreduce {first.number} within "
            f"{first.wait_s:g} s of the first member; see whether they run"
        )
        self._fail(pb.AllreduceFailed.MISSING, text, missing)

    def _fail(self, reason: pb.AllreduceFailed.Reason, text: str, odd: Iterable[int]) -> None:
        """Tell all members that wait that there is no sum."""
        self._stop_timer()
        waiting, self._waiting = self._waiting, {}
        _LOGGER.warning("job %s: an allreduce has failed: %s", self._job_name, text)
        self.tally.failed += 1
        self._log.note("allreduce_failed", job=self._job_name, reason=text)
        for number, request in waiting.items():
            self._tell_failed(number, request, reason, text, odd)

    def _tell_failed(
        self,
        number: int,
        request: pb.AllreduceRequested,
        reason: pb.AllreduceFailed.Reason,
        text: str,
        odd: Iterable[int],
    ) -> None:
        failed = self._failed[number] = pb.AllreduceFailed(
            transfer_id=request.transfer_id, reason=reason, text=text, worker_ids=odd
        )
        self._send(number, pb.SchedulerMessage(allreduce_failed=failed))

    def _tell_noted(self, number: int, request: pb.AllreduceRequested) -> None:
        noted = pb.AllreduceNoted(transfer_id=request.transfer_id)
        self._send(number, pb.SchedulerMessage(allreduce_noted=noted))

    def _send(self, number: int, message: pb.SchedulerMessage) -> None:
        station = self._workers[number].station
        if station is not None:
            station.send(message)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _note(self, event: str, record: AllreduceRecord, **fields: float) -> None:
        self._log.note(
            event,
            job=self._job_name,
            number=record.number,
            members=len(record.hosts),
            bytes=record.size_bytes,
            **fields,
        )


def _problem(number: int, request: pb.AllreduceRequested) -> str:
    """Return why a request makes no sense by itself, "" if it does."""
    members = request.num_members
    if not 2 <= members <= MOST_MEMBERS:
        return f"an allreduce of {members} members; give 2 to {MOST_MEMBERS}"
    if number >= members:
        return f"worker {number} is none of {members} members: their ids lie below {members}"
    if request.size_bytes % VALUE_BYTES:
        return f"a vector of {request.size_bytes} bytes; values of {VALUE_BYTES} bytes are added"
    return ""


def _difference(requests: Mapping[int, pb.AllreduceRequested]) -> tuple[str, list[int]]:
    """Return who asks for what if it is not the same, and who differs from most; else ""."""
    alike: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
    for number in sorted(requests):
        each = requests[number]
        alike[each.number, each.size_bytes, each.num_members].append(number)
    if len(alike) == 1:
        return "", []
    most = max(alike.values(), key=len)
    has_most = [len(workers) for workers in alike.values()].count(len(most)) == 1
    odd = [number for number in sorted(requests) if not (has_most and number in most)]
    wants = [
        f"workers {_names(workers)}: allreduce {call} of {size} bytes among {members} members"
        for (call, size, members), workers in alike.items()
    ]
    text = "the members do not ask for the same: " + "; ".join(wants)
    return f"{text}. Let all make the same calls, or start all again", odd


def _names(numbers: Collection[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))
