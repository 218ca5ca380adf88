# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A server's model on its path to one worker."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ....control.stations.model_terms import ModelRequested
from ....control.stations.station import TransferDropped
from ....peers.event_loop import Timer
from ...tables.service_seams import PacedCaller, TablePull
from ..granted_rate import PacedBytes

_logger = logging.getLogger(__name__)


@dataclass(eq=False)
class OutgoingModel(PacedBytes):
    """The answer to a pull, until the worker has it; used in the loop's thread."""

    shard: int
    pull: TablePull
    caller: PacedCaller
    """The worker's connection."""
    size_bytes: int
    """Of the answer."""
    send_directly: Callable[[OutgoingModel], None]
    payload: memoryview | None = None
    """Of the answer, as the model was when its first byte left; None: none has."""
    sender: OutgoingModel | None = None
    """The model whose worker sends this one; None: the server does."""
    receiver: OutgoingModel | None = None
    """The model that this one's worker sends on."""
    took_s: float = 0.0
    """How long it was on its path."""
    there_s: float = 0.0
    """Since when its worker has it; 0: it has not."""
    relay_timer: Timer | None = None
    """Ends the wait for its sender."""

    def request(self) -> ModelRequested:
        """Return what to ask the scheduler for."""
        return ModelRequested(self.transfer_id, self.pull.worker_id, self.size_bytes)

    def drop(self, dropped: TransferDropped) -> None:
        """Learn that it is not sent; but models are not dropped: a worker waits for each."""
        self.refuse(dropped.reason)

    def refuse(self, reason: str) -> None:
        """Learn that the scheduler cannot plan it: it is sent without a grant."""
        _logger.warning(
            "the model for worker %d is sent without a grant: %s", self.pull.worker_id, reason
        )
        self.send_directly(self)

    @property
    def left_bytes(self) -> int:
        """How many bytes have not left."""
        return self.size_bytes - self.sent_bytes

    @property
    def chain(self) -> Iterator[OutgoingModel]:
        """Yield the models that come from this one's bytes, in their order."""
        following = self.receiver
        while following is not None:
            yield following
            following = following.receiver

    def is_like(self, other: OutgoingModel) -> bool:
        """Whether both are answers to the same question, so that one has the bytes of the other."""
        one, two = self.pull, other.pull
        return one.table == two.table and np.array_equal(one.keys, two.keys)

    def arrived(self, took_s: float, now_s: float) -> None:
        """Learn that it is there."""
        self.took_s, self.there_s = took_s, now_s

    def join(self, sender: OutgoingModel) -> None:
        """Come from another model's worker from now on."""
        self.sender, sender.receiver = sender, self

    def part(self) -> None:
        """Come from the server from now on."""
        if self.relay_timer is not None:
            self.relay_timer.cancel()
            self.relay_timer = None
        if self.sender is not None:
            self.sender.receiver = self.sender = None
