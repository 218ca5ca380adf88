# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How fast the workers of a job have sent what was granted to them, by their reports."""

from __future__ import annotations

from collections.abc import Callable

from ....hostlib.control.transfers_api import transfers_pb2 as pb
from ..transfer_log import TransferLog
from ..transfer_record import WorkerPlace
from .link_tracking import LinkTracker, SentUpdate


class ObservedRates:
    """Tells the estimates of links, the log, and whoever looks at a worker."""

    def __init__(
        self, job_name: str, tracker: LinkTracker, log: TransferLog, now_s: Callable[[], float]
    ) -> None:
        """`now_s` is the clock of grants, in seconds."""
        self._job_name = job_name
        self._tracker = tracker
        self._log = log
        self._now_s = now_s

    def note(self, worker: WorkerPlace, message: pb.RateObserved) -> None:
        """Note how long a worker took for an update; updates without a grant are only logged."""
        record = worker.records.get(message.transfer_id)
        verdict = None
        if record is not None and record.grant is not None and message.seconds > 0:
            wait_s = message.network_wait_s if message.HasField("network_wait_s") else None
            sent = SentUpdate(message.seconds, wait_s)
            verdict = self._tracker.observe(record.key, sent, self._now_s())
            spans = record.grant.spans
            planned_s = spans[-1].end_s - spans[0].start_s if spans else 0.0
            worker.achieved_bits_per_s = 8 * message.size_bytes / message.seconds
            worker.granted_bits_per_s = record.grant.request.bits / planned_s if planned_s else 0.0
        self._log.note(
            "observed",
            job=self._job_name,
            worker=worker.worker_id,
            server=record.server_id if record else None,
            transfer=message.transfer_id,
            bytes=message.size_bytes,
            seconds=message.seconds,
            limit=verdict.value if verdict else None,
        )
