# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Models that a server sends to workers when the scheduler lets it: MLfabric's get.

A worker's pull waits here for a grant, as a worker's update does. What is sent is the model at the
first granted moment, so one that waits is fresher than one that was sent at once and shares links.
A model may come from another worker, which has got the same one (ours).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import final

from ....control.stations.model_terms import ModelDelivered
from ....control.stations.station import (
    RateObserved,
    StationEvent,
    StationReport,
    TransferWithdrawn,
)
from ....errors import HostlibError
from ....peers.event_loop import EventLoop
from ....peers.frames import ModelCameFrame
from ....peers.pacing import PacedLink
from ...tables.service import TableService
from ...tables.service_seams import TableCaller, TablePull
from ...tables.state import VALUE_BYTES, VERSION_BYTES
from ..grant_requests import GrantRequests
from ..granted_rate import TransferPacer
from .model_chains import ModelChains
from .outgoing_model import OutgoingModel


@final
class ModelService:
    """Runs in the loop's thread, except for the constructor.

    Nothing of a model leaves before its grant, and then only as fast as granted. Without an answer
    of the scheduler within `grant_wait_s`, it is sent at once. `counters`: granted_models,
    ungranted_models, refused_models (the scheduler could not plan them), failed_models (their
    workers' connections broke), and those of ModelChains.
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
        self._chains = ModelChains(
            loop,
            self._models,
            note_read=tables.note_read,
            report=self._requests.report,
            send_directly=self._send_ungranted,
            counters=counters,
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
            if model not in self._models:
                continue  # it was to come by another one of these
            self._models.remove(model)
            self._pacer.forget(model.caller.link)
            self._counters["failed_models"] += 1
            self._requests.forget(model)
            self._chains.forget(model)

    def on_came(self, client: TableCaller, came: ModelCameFrame) -> None:
        """Learn what became of an answer that another worker has sent."""
        self._chains.on_came(client, came)

    def on_not_sent_on(self, client: TableCaller, number: int) -> None:
        """Learn that a worker does not send the answer to its pull on."""
        self._chains.on_not_sent_on(client, number)

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
            self._chains.attach(model)
            self._pacer.tick()

    def _send_ungranted(self, model: OutgoingModel) -> None:
        """Send a granted model without its grant: it was to come from another worker."""
        self._requests.report(TransferWithdrawn(model.transfer_id, is_sent_ungranted=True))
        model.forget_grant()
        self._send_at_once(model)

    def _send_at_once(self, model: OutgoingModel) -> None:
        """Send a model that has no schedule: without a grant, or over no link."""
        self._chains.forget(model)
        self._tables.answer(model.pull)
        model.sent_bytes = model.size_bytes
        if model.grant is None:
            self._models.remove(model)
        else:
            self._pacer.tick()

    # The pacer calls the methods below.

    def _under_way(self) -> Iterator[tuple[PacedLink, OutgoingModel]]:
        for model in self._models:
            if model.grant is not None and model.sender is None:
                yield model.caller.link, model

    def _send(self, model: OutgoingModel, num_bytes: int, is_first: bool) -> None:
        """Send bytes of a model, as it is now if they are the first, unless it is denied now."""
        pull, caller = model.pull, model.caller
        if is_first:
            rows = self._tables.rows_of(pull)
            if rows is None:
                self._models.remove(model)
                self._requests.forget(model)
                self._chains.forget(model)
                return
            model.payload = caller.rows_payload(rows)
            self._chains.begin(model)
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
        model.arrived(seconds, now_s)
        if model.rate is not None and seconds > 0:
            self._requests.report(
                RateObserved(model.transfer_id, model.size_bytes, seconds, model.network_wait_s)
            )
        self._requests.report(ModelDelivered(model.transfer_id))
