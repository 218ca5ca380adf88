# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Models that a server sends to workers when the scheduler lets it: MLfabric's get.

A worker's pull waits here for a grant, as a worker's update does. What is sent is the model at the
first granted moment, so one that waits is fresher than one that was sent at once and shares links.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import final

from ....control.stations.model_terms import ModelDelivered
from ....control.stations.station import RateObserved, StationEvent, StationReport
from ....errors import HostlibError
from ....peers.event_loop import EventLoop
from ....peers.pacing import PacedLink
from ...tables.service import TableService
from ...tables.service_seams import TableCaller, TablePull
from ...tables.state import VALUE_BYTES, VERSION_BYTES
from ..grant_requests import GrantRequests
from ..granted_rate import TransferPacer
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
        self._shard = shard
        self._is_serving = is_serving
        self._counters = counters
        self._has_scheduler = True
        self._models: list[OutgoingModel] = []
        """All that workers do not have."""
        self._pacer = TransferPacer(
            loop, self._under_way, send=self._send, on_delivered=self._on_delivered
        )
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
            self._pacer.forget(model.caller.link)
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
            self._pacer.tick()

    def _send_at_once(self, model: OutgoingModel) -> None:
        """Send a model that has no schedule: without a grant, or over no link."""
        self._tables.answer(model.pull)
        model.sent_bytes = model.size_bytes
        if model.grant is None:
            self._models.remove(model)
        else:
            self._pacer.tick()

    # The pacer calls the methods below.

    def _under_way(self) -> Iterator[tuple[PacedLink, OutgoingModel]]:
        for model in self._models:
            if model.grant is not None:
                yield model.caller.link, model

    def _send(self, model: OutgoingModel, num_bytes: int, is_first: bool) -> None:
        """Send bytes of a model, as it is now if they are the first, unless it is denied now."""
        pull, caller = model.pull, model.caller
        if is_first:
            rows = self._tables.rows_of(pull)
            if rows is None:
                self._models.remove(model)
                self._requests.forget(model)
                return
            model.payload = caller.rows_payload(rows)
        assert model.payload is not None, "the first bytes have made it"
        for piece in model.pieces(model.payload, num_bytes):
            if model.left_bytes:
                caller.send_piece(pull.number, piece)
            else:
                caller.send_rows(pull.number, pull.table, pull.keys.size, piece)

    def _on_delivered(self, model: OutgoingModel, now_s: float) -> None:
        """Tell how long a model took."""
        self._models.remove(model)
        seconds = now_s - model.first_s
        if model.rate is not None and seconds > 0:
            self._requests.report(
                RateObserved(model.transfer_id, model.size_bytes, seconds, model.network_wait_s)
            )
        self._requests.report(ModelDelivered(model.transfer_id))
