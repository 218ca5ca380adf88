# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Models that workers send on, at their server: who sends whose, and what becomes of it.

The server sends one model, and tells each worker of a chain what to do with it. A worker accepts
from another one only what has the digest that the server has told. What fails, the server sends.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable
from typing import Final, final

from ....control.stations.model_terms import ModelDelivered
from ....control.stations.station import RateObserved, StationReport
from ....peers.event_loop import EventLoop
from ....peers.frames import (
    DIGEST_BYTES,
    MODEL_ID_BYTES,
    ModelCameFrame,
    ModelComingFrame,
    SendOnFrame,
)
from ...tables.service_seams import TableCaller, TablePull
from .outgoing_model import OutgoingModel

LOOK_S: Final = 0.25
"""Pause between two looks whether a worker has the model that it sends on."""
_logger = logging.getLogger(__name__)


@final
class ModelChains:
    """Runs in the loop's thread; `models` are all that workers do not have.

    `counters`: relayed_models (that came from other workers), failed_relays (that should have).
    """

    def __init__(
        self,
        loop: EventLoop,
        models: list[OutgoingModel],
        *,
        note_read: Callable[[TablePull], None],
        report: Callable[[StationReport], None],
        send_directly: Callable[[OutgoingModel], None],
        counters: Counter[str],
    ) -> None:
        """`note_read(pull)` learns that a worker gets the tables' rows as they are now.

        `send_directly(model)` sends one whose relay failed, without its grant.
        """
        self._loop = loop
        self._models = models
        self._note_read = note_read
        self._report = report
        self._send_directly = send_directly
        self._counters = counters

    def attach(self, model: OutgoingModel) -> None:
        """Let a model that was granted come from another worker, if its grant says so.

        If the other model is not there, or has begun, then the server sends both.
        """
        assert model.grant is not None, "it was granted"
        hop = model.grant.model_hop
        if hop is None:
            return
        sender = next((m for m in self._models if m.transfer_id == hop.sender_transfer_id), None)
        if sender is None or sender.receiver is not None:
            return
        first = sender
        while first.sender is not None:
            first = first.sender
        if first is model or first.is_begun or not model.is_like(sender):
            return
        model.join(sender)
        self._look_later(model, hop.wait_s)

    def begin(self, first: OutgoingModel) -> None:
        """Tell the workers of a chain, before the first byte leaves for the first of them."""
        following = [*first.chain]
        if not following:
            return
        assert first.payload is not None, "its first byte leaves"
        size, model_id = first.size_bytes, secrets.token_bytes(MODEL_ID_BYTES)
        digest = hashlib.blake2b(first.payload, digest_size=DIGEST_BYTES).digest()
        # A worker must know whom to send a model to before it has all of it.
        for sender, model in itertools.pairwise((first, *following)):
            hop = model.grant and model.grant.model_hop
            assert hop is not None, "it comes from another worker"
            place = model.pull.worker_id, hop.address
            sender.caller.tell(SendOnFrame(sender.pull.number, model_id, size, *place))
        for model in following:
            self._note_read(model.pull)
            model.caller.tell(ModelComingFrame(model.pull.number, model_id, digest, size))

    def on_came(self, client: TableCaller, came: ModelCameFrame) -> None:
        """Learn what became of a model that another worker has sent."""
        model = self._find(client, came.number)
        if model is None or model.sender is None:
            return
        if not came.is_whole:
            self.fail(model, "its bytes are not those of the model, or it broke off")
            return
        sender_s = _elapsed_s(model.sender)
        seconds = came.took_us / 1e6
        model.arrived(seconds, time.monotonic())
        self._models.remove(model)
        model.part()
        self._counters["relayed_models"] += 1
        if seconds > 0:
            wait_s = max(0.0, seconds - sender_s)  # its sender had the bytes by then
            self._report(RateObserved(model.transfer_id, model.size_bytes, seconds, wait_s))
        self._report(ModelDelivered(model.transfer_id))

    def on_not_sent_on(self, client: TableCaller, number: int) -> None:
        """Learn that a worker does not send the answer to its pull on."""
        for model in self._models:
            sender = model.sender
            if sender is not None and (sender.pull.client, sender.pull.number) == (client, number):
                self.fail(model, f"worker {sender.pull.worker_id} could not send it on")
                return

    def _look_later(self, model: OutgoingModel, wait_s: float) -> None:
        model.relay_timer = self._loop.call_later(wait_s, lambda: self._look(model))

    def _look(self, model: OutgoingModel) -> None:
        """Give up a model that is late, unless its sender is late itself, or it is on its path.

        It may take twice as long as its sender's. To send it again would take as long as well.
        """
        sender = model.sender
        assert sender is not None, "the timer ends with that"
        left_s = LOOK_S
        if sender.there_s:
            left_s = sender.there_s + max(sender.took_s, LOOK_S) - time.monotonic()
        if left_s > 0:
            self._look_later(model, left_s)
        else:
            self.fail(model, "it has not come in time")

    def fail(self, model: OutgoingModel, reason: str) -> None:
        """Send a model that does not come from another worker, and those that come from it."""
        over = [model, *model.chain]
        for each in over:
            each.part()
        for each in over:
            self._counters["failed_relays"] += 1
            _logger.warning(
                "the server sends the model of worker %d itself: %s", each.pull.worker_id, reason
            )
            self._send_directly(each)

    def forget(self, model: OutgoingModel) -> None:
        """Learn that a model is over, or sent by itself: it is not sent on."""
        after = model.receiver
        model.part()
        if after is not None:
            self.fail(after, f"worker {model.pull.worker_id} does not send it on")

    def _find(self, client: TableCaller, number: int) -> OutgoingModel | None:
        return next(
            (m for m in self._models if m.pull.client is client and m.pull.number == number), None
        )


def _elapsed_s(model: OutgoingModel) -> float:
    """Return how long a model has been on its path; of one not heard of, that of its sender's."""
    found: OutgoingModel | None = model
    while found is not None:
        if found.there_s or found.first_s:
            return found.took_s if found.there_s else time.monotonic() - found.first_s
        found = found.sender
    return 0.0
