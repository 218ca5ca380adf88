# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One model from a server's request to its arrival at the worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....hostlib.control.transfers_api import transfers_pb2 as pb
from ...jobs.punctual_timer import PunctualTimer
from ...scheduler.transfers import ModelGrant
from ..transfer_record import TransferState


@dataclass(kw_only=True)
class ModelTally:
    """What has become of a job's models since it began."""

    requested: int = 0
    granted: int = 0
    delivered: int = 0
    """Of those granted."""
    relayed: int = 0
    """Of those granted: by plan, another worker sends them."""
    ungranted: int = 0
    """Sent by their servers without a grant."""
    withdrawn: int = 0
    """Given up: with their workers or servers, or because they were overdue."""


@dataclass(kw_only=True, eq=False)
class ModelRecord:
    """What is known of a model on its path; times are those of the loop's clock."""

    server_id: int
    request: pb.ModelRequested
    requested_s: float
    state: TransferState = TransferState.WAITING
    """WAITING, GRANTED, COMMITTED (the worker has it) or WITHDRAWN."""
    number: int | None = None
    """Its id at the scheduler."""
    decided_s: float = 0.0
    grant: ModelGrant | None = None
    headroom: float = 1.0
    """How many times as fast as planned it may be sent."""
    sender: ModelRecord | None = None
    """Of the worker that gets the same model, and sends it on; None: the server sends it."""
    ended_s: float = 0.0
    timer: PunctualTimer | None = None
    """Ends the wait for a granted model."""

    @property
    def worker_id(self) -> int:
        """Who gets it."""
        return self.request.worker_id

    @property
    def transfer_id(self) -> int:
        """The server's number for it."""
        return self.request.transfer_id

    @property
    def key(self) -> tuple[int, int]:
        """Names it among all transfers of the job: those of workers have ids from 0 on."""
        return ~self.server_id, self.transfer_id

    @property
    def name(self) -> str:
        """What errors call it."""
        return f"model {self.transfer_id} of server {self.server_id} for worker {self.worker_id}"

    @property
    def plan(self) -> ModelGrant:
        """The grant of a model that has one."""
        assert self.grant is not None, "it is granted"
        return self.grant

    def stop_timer(self) -> None:
        """End no wait any more."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def chains_of(records: Sequence[ModelRecord]) -> list[list[ModelRecord]]:
    """Return the models of a batch by chains, in each of which a worker sends on what it gets."""
    chains: list[list[ModelRecord]] = []
    for record in records:
        if record.plan.relayed_by is None:
            chains.append([])
        chains[-1].append(record)
    return chains
