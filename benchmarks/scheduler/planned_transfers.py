# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The transfer scheduler behind a small gRPC service, for the benchmark of grants."""

from __future__ import annotations

import threading
import time
from typing import Final

from fake_transfers import Caller, FakeTransfers, dropped, expected, granted, server, worker
from switchfold.controller.scheduler.network import TransferNetwork
from switchfold.controller.scheduler.scheduler import SchedulerOptions, TransferScheduler
from switchfold.controller.scheduler.transfers import TransferGrant, TransferRequest
from switchfold.hostlib.control.transfers_api import transfers_pb2 as api

SERVER: Final = "server"
_ID_BITS: Final = 32


class PlannedTransfers:
    """Plans one server's transfers, shortest first, on links of one rate of payload."""

    def __init__(self, address: str, num_workers: int, rate_bits_per_s: int) -> None:
        rates = {SERVER: rate_bits_per_s}
        rates |= {f"w{number}": rate_bits_per_s for number in range(num_workers)}
        self._scheduler = TransferScheduler(
            TransferNetwork.star(rates),
            {SERVER: 0},
            SchedulerOptions(batch_max=num_workers, batch_wait_s=0.05),
        )
        self.granted_s: dict[tuple[int, int], float] = {}
        """By worker and transfer: from the start of the first span to the end of the last."""
        self._changed = threading.Condition()
        self._is_closing = False
        self.fake = FakeTransfers(self._take, address)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the service."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join()
        self.fake.stop()

    def _take(self, _fake: FakeTransfers, caller: Caller, message: api.StationMessage) -> None:
        with self._changed:
            now_s = time.monotonic()
            if message.HasField("requested"):
                asked = message.requested
                request = TransferRequest(
                    transfer_id=caller.station_id << _ID_BITS | asked.transfer_id,
                    worker=f"w{caller.station_id}",
                    server=SERVER,
                    size_bytes=asked.size_bytes,
                    version=asked.version,
                    norm=asked.norm,
                )
                self._scheduler.submit(request, now_s)
            elif message.HasField("delivered"):
                told = message.delivered
                self._scheduler.delivered([told.worker_id << _ID_BITS | told.transfer_id], now_s)
            self._changed.notify_all()

    def _run(self) -> None:
        """Close batches when they are due."""
        with self._changed:
            while not self._is_closing:
                due_s = self._scheduler.next_due_s()
                now_s = time.monotonic()
                if due_s is None or due_s > now_s:
                    self._changed.wait(None if due_s is None else due_s - now_s)
                    continue
                for decision in self._scheduler.decide(now_s):
                    number = decision.request.transfer_id
                    worker_id, transfer_id = number >> _ID_BITS, number & (1 << _ID_BITS) - 1
                    if isinstance(decision, TransferGrant):
                        self._grant(decision, worker_id, transfer_id, now_s)
                    else:
                        reason = decision.reason.value
                        self.fake.tell(worker(worker_id), dropped(transfer_id, str(reason)))

    def _grant(self, grant: TransferGrant, worker_id: int, transfer_id: int, now_s: float) -> None:
        spans = [
            (span.start_s - now_s, span.end_s - now_s, span.rate_bits_per_s) for span in grant.spans
        ]
        self.granted_s[worker_id, transfer_id] = spans[-1][1] - spans[0][0]
        due_s = grant.commit_s - now_s
        self.fake.tell(server(), expected(grant.sequence, worker_id, transfer_id, due_s=due_s))
        self.fake.tell(worker(worker_id), granted(transfer_id, grant.sequence, *spans))
