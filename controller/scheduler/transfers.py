# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the scheduler is asked for, and what it answers: grants, groups and drops.

A transfer carries one update from a worker to its server, or a model back. The fields are those of
the first author's public prototypes of 2017, with additions of ours: see docs/scheduler.md.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from .checks import check_finite, check_whole
from .network import Links
from .residual_rate import RateSpan


@dataclass(frozen=True, kw_only=True)
class TransferRequest:
    """A worker has an update for a server."""

    transfer_id: int
    """Unique, and above all earlier ids of the worker."""
    worker: str
    """Host of the worker."""
    server: str
    """Host of the server."""
    size_bytes: int
    version: int
    """Version of the model on which the update was computed: updates that it contained."""
    norm: float = 0.0
    """Euclidean norm of the update, for the bound on divergence of a replica."""
    clock: int = 0
    """Iteration of the worker that made the update, from 0; stale synchronous training needs it."""
    sum_key: int = 1
    """Only updates of equal keys are added up; 0: this one travels alone."""
    whole_bytes: int = 0
    """Of a sparse update: size of one of all values; 0: this one has all values.

    Sums of sparse updates have the values that any of them has.
    """

    def __post_init__(self) -> None:
        name = f"transfer {self.transfer_id} of {self.worker}"
        check_whole(f"{name}: transfer_id", self.transfer_id, 0)
        check_whole(f"{name}: size_bytes", self.size_bytes, 1)
        check_whole(f"{name}: version", self.version, 0)
        check_finite(f"{name}: norm", self.norm, 0)
        check_whole(f"{name}: clock", self.clock, 0)
        check_whole(f"{name}: sum_key", self.sum_key, 0)
        if self.is_sparse:
            check_whole(f"{name}: whole_bytes", self.whole_bytes, self.size_bytes)

    @property
    def is_sparse(self) -> bool:
        """Whether it may have other values than updates with which it may be added up."""
        return self.whole_bytes != 0

    @property
    def sender(self) -> str:
        """Host that has the bytes."""
        return self.worker

    @property
    def receiver(self) -> str:
        """Host that gets the bytes."""
        return self.server

    @property
    def bits(self) -> int:
        """Size in bits."""
        return 8 * self.size_bytes


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """A worker asks a server for its newest model."""

    transfer_id: int
    """Unique among requests of models, and above all earlier ones of the worker."""
    worker: str
    """Host of the worker."""
    server: str
    """Host of the server."""
    size_bytes: int
    clock: int = 0
    """Iteration for which the worker wants it, from 0; stale synchronous training needs it."""
    may_relay: bool = False
    """Whether its worker takes models from other workers, and sends its own on."""

    def __post_init__(self) -> None:
        name = f"model {self.transfer_id} for {self.worker}"
        check_whole(f"{name}: transfer_id", self.transfer_id, 0)
        check_whole(f"{name}: size_bytes", self.size_bytes, 1)
        check_whole(f"{name}: clock", self.clock, 0)

    @property
    def sender(self) -> str:
        """Host that has the bytes."""
        return self.server

    @property
    def receiver(self) -> str:
        """Host that gets the bytes."""
        return self.worker

    @property
    def version(self) -> int:
        """All models are equally new: the server sends what it has when the transfer begins."""
        return 0

    @property
    def bits(self) -> int:
        """Size in bits."""
        return 8 * self.size_bytes


@dataclass(frozen=True, kw_only=True)
class PlannedTransfer:
    """One request with the time and rate of its bytes on their next leg."""

    request: TransferRequest
    links: Links
    """Of the leg."""
    spans: tuple[RateSpan, ...]
    """Empty if the leg stays within one host, or if the bytes are planned with a group."""
    end_s: float
    """Arrival of the last byte at the end of the leg."""


@dataclass(frozen=True, kw_only=True)
class TransferGroup:
    """Consecutive updates that one aggregator adds up, so that the server gets one message."""

    group_id: int
    aggregator: str
    """An idle host, which gathers whole updates first, or a switch, which adds passing packets."""
    is_switch: bool
    members: tuple[PlannedTransfer, ...]
    """In the order of their commits."""
    gathered_s: float
    """When the last member is at a host; at a switch, when the sum begins to leave."""
    links: Links
    """A host's: to the server. A switch's: those of all members, and to the server."""
    spans: tuple[RateSpan, ...]
    """Of the sum; at a switch, of all members and the sum at once."""
    end_s: float
    """Arrival of the sum at the server."""

    @property
    def server(self) -> str:
        """Host that gets the sum."""
        return self.members[0].request.server


@dataclass(frozen=True, kw_only=True)
class TransferGrant:
    """The update may travel, as planned."""

    planned: PlannedTransfer
    sequence: int
    """Place in the server's commit sequence, from 0. The server applies updates strictly in it."""
    delay: int
    """Greatest number of updates that the server applies between the update's version and it."""
    commit_s: float
    """When the server can apply it, by plan."""
    group: TransferGroup | None = None
    learning_rate_factor: float = 1.0
    """By which the worker multiplies the update, before any sum."""
    replica_transfer: PlannedTransfer | None = None
    """To the replica of the server, if it has one: the worker sends the update there as well."""

    @property
    def request(self) -> TransferRequest:
        """What is granted."""
        return self.planned.request

    @property
    def next_hop(self) -> str:
        """Station to which the worker sends: its server, or an aggregator."""
        return self.group.aggregator if self.group else self.request.server

    @property
    def spans(self) -> tuple[RateSpan, ...]:
        """When the worker sends, and how fast."""
        in_switch = self.group is not None and self.group.is_switch
        return self.group.spans if self.group and in_switch else self.planned.spans


@dataclass(frozen=True, kw_only=True)
class ModelGrant:
    """A server, or a worker that relays its model, may send it to a worker, as planned."""

    request: ModelRequest
    links: Links
    """From the server to the worker, or from the worker that relays it."""
    spans: tuple[RateSpan, ...]
    """When it is sent, and how fast. Empty if the worker runs on the server's host."""
    end_s: float
    """Arrival of the last byte."""
    relayed_by: str | None = None
    """Host of the worker that gets it at the same time, and sends it on; None: the server sends."""


class DropReason(enum.Enum):
    """Why an update is not sent."""

    TOO_OLD = "too old"
    """Its delay would exceed the bound even as the next commit."""
    TOO_SLOW_TO_PROMOTE = "too slow to promote"
    """It had to be next to meet the bound, and all others would have waited long for it."""
    NO_ORDER_FITS = "no order fits"
    """No order of the batch meets the bound for all, and it would have taken longest."""


@dataclass(frozen=True, kw_only=True)
class TransferDrop:
    """The update must not travel: its worker frees it and gets the newest model."""

    request: TransferRequest
    reason: DropReason
    delay: int
    """The least that its delay would have been."""


TransferDecision = TransferGrant | TransferDrop
"""Answer to a request of an update."""
