# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Models that a server sends to workers when the scheduler lets it: MLfabric's get.

A worker's pull waits here for a grant, as a worker's update does. What is sent is the model at the
first granted moment, so one that waits is fresher than one that was sent at once and shares links.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from typing import final

from ....control.stations.model_terms import ModelDelivered
from ....control.stations.station import RateObserved, StationEvent, StationReport
from ....errors import HostlibError
from ....peers.event_loop import EventLoop, Timer
from ....peers.frames import PIECE_BYTES
from ....peers.pacing import PacedLink
from ...tables.service import TableService
from ...tables.service_seams import TableCaller, TablePull
from ...tables.state import VALUE_BYTES, VERSION_BYTES
from ..grant_requests import GrantRequests
from ..granted_rate import MEASURE_S, kernel_limit
from .outgoing_model import OutgoingModel


@final
class ModelService:
    """Runs in the loop's thread, except for the constructor.

    Nothing of a model leaves before its grant, and then only as fast as granted. Without an answer
    of the scheduler within `grant_wait_s`, it is sent at once. `counters`: granted_models,
    ungranted_models, refused_models (the scheduler could not plan them), failed_models (their
    workers' connections broke).
    """

    def __init__(  # noqa: PLR0913 - what it stands between
        self,
        tables: TableService,
        loop: EventLoop,
        shard: int,
        *,
        grant_wait_s: float,
        tell: Callable[[StationReport, int], None],
        is_serving: Callable[[], bool],
        counters: Counter[str],
    ) -> None:
        """`tell` tells the scheduler, within a registration.

        `is_serving()`: whether this process is the server, and not its replica.
        """
        self._tables = tables
        self._loop = loop
        self._shard = shard
        self._is_serving = is_serving
        self._counters = counters
        self._has_scheduler = True
        self._models: list[OutgoingModel] = []
        """All that workers do not have."""
        self._limits: dict[PacedLink, float] = {}
        """The kernel's limits of connections that have one, in bytes/s."""
        self._timer: Timer | None = None
        self._requests = GrantRequests[OutgoingModel](
            loop,
            grant_wait_s=grant_wait_s,
            report=tell,
            send=self._granted,
            counters=counters,
            what="models",
        )
        tables.models = self

    # The tables call the methods below.

    def keep(self, pull: TablePull) -> bool:
        """Have a model leave by its grant; return False if no scheduler is to be asked."""
        caller = pull.model_to
        if caller is None or not self._has_scheduler or not self._is_serving():
            return False
        width = self._tables.state.table(pull.table).definition.width
        size_bytes = VALUE_BYTES * pull.keys.size * (width + 1) + VERSION_BYTES
        model = OutgoingModel(self._shard, pull, caller, size_bytes, self._send_at_once)
        self._models.append(model)
        self._requests.ask(model)
        return True

    def detach(self, client: TableCaller) -> None:
        """Give up the models of a connection; the worker asks for them again over another one."""
        for model in [model for model in self._models if model.pull.client is client]:
            self._models.remove(model)
            self._limits.pop(model.caller.link, None)
            self._counters["failed_models"] += 1
            self._requests.forget(model)

    # The station calls the methods below.

    def on_event(self, event: StationEvent) -> None:
        """Learn what the scheduler tells."""
        self._requests.on_event(event)

    def on_failed(self, _error: HostlibError) -> None:
        """Learn that the scheduler refuses this process: models are sent as they are asked for."""
        self._has_scheduler = False
        for model in self._requests.take_all():
            self._send_at_once(model)

    # What leaves when.

    def _granted(self, model: OutgoingModel) -> None:
        if model.rate is None:
            self._send_at_once(model)
        else:
            self._tick()

    def _send_at_once(self, model: OutgoingModel) -> None:
        """Send a model that has no schedule: without a grant, or over no link."""
        self._tables.answer(model.pull)
        model.sent_bytes = model.size_bytes
        if model.grant is None:
            self._models.remove(model)
        else:
            self._tick()

    def _tick(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now_s, wait_s = time.monotonic(), math.inf
        self._limit_rates()
        for model in [model for model in self._models if model.grant is not None]:
            wait_s = min(wait_s, self._go_on(model, now_s))
        if not math.isinf(wait_s):
            self._timer = self._loop.call_later(max(MEASURE_S, wait_s), self._tick)

    def _go_on(self, model: OutgoingModel, now_s: float) -> float:
        """Send what may leave of a model; return how long to wait until more may."""
        if not model.left_bytes:
            return MEASURE_S if self._measure(model, now_s) else math.inf
        rate = model.rate
        assert rate is not None, "without one, all has left"
        if model.payload is None and rate.wait_s(now_s) > 0:
            return rate.wait_s(now_s)
        portion, wait_s = model.take_portion(model.caller.link, now_s)
        if portion and not self._send_portion(model, portion, now_s):
            return math.inf
        return wait_s

    def _send_portion(self, model: OutgoingModel, portion: int, now_s: float) -> bool:
        """Send bytes of a model, as it is now if they are the first; return False if denied."""
        pull, caller, payload = model.pull, model.caller, model.payload
        if payload is None:
            rows = self._tables.rows_of(pull)
            if rows is None:
                self._models.remove(model)
                self._requests.forget(model)
                return False
            payload = model.payload = caller.rows_payload(rows)
            model.is_begun, model.first_s = True, now_s
        end = model.sent_bytes + portion
        while model.sent_bytes < end:
            piece = payload[model.sent_bytes : min(end, model.sent_bytes + PIECE_BYTES)]
            model.sent_bytes += piece.nbytes
            if model.left_bytes:
                caller.send_piece(pull.number, piece)
            else:
                caller.send_rows(pull.number, pull.table, pull.keys.size, piece)
                model.last_s = now_s
                model.note_held(True, now_s)  # until the other kernel has all of it
        return True

    def _measure(self, model: OutgoingModel, now_s: float) -> bool:
        """Tell how long a model took, when the other kernel has it; return whether it has not."""
        link = model.caller.link
        if not link.is_drained or link.unacknowledged_bytes:
            return True
        self._models.remove(model)
        model.note_held(False, now_s)
        seconds = now_s - model.first_s
        if model.rate is not None and seconds > 0:
            self._requests.report(
                RateObserved(model.transfer_id, model.size_bytes, seconds, model.network_wait_s)
            )
        self._requests.report(ModelDelivered(model.transfer_id))
        return False

    def _limit_rates(self) -> None:
        """Let the kernel smooth the portions."""
        leaving: dict[PacedLink, list[OutgoingModel]] = {}
        for model in self._models:
            if model.payload is not None and model.left_bytes:
                leaving.setdefault(model.caller.link, []).append(model)
        limits = {link: kernel_limit(models) for link, models in leaving.items()}
        for link in self._limits.keys() - limits.keys():
            link.limit_rate(math.inf)
        for link, limit in limits.items():
            if limit != self._limits.get(link):
                link.limit_rate(limit)
        self._limits = limits
