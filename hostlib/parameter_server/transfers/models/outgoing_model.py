# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A server's model on its path to one worker."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from ....control.stations.model_terms import ModelRequested
from ....control.stations.station import TransferDropped
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
