# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How a job's transfers are scheduled."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..checks import check_finite, check_whole
from ..delay_bound import DelayBound
from ..errors import InvalidTransferError
from ..grouping import AggregationPlaces
from ..state.server_replica import ReplicaOptions
from .commit_order import CommitOrder
from .learning_rate import LearningRateRule
from .training_modes import TrainingMode


@dataclass(frozen=True, kw_only=True)
class SchedulerOptions:
    """How a job's transfers are scheduled."""

    mode: TrainingMode | None = None
    """None: asynchronous. Others drop nothing, so they take no `bound`."""
    bound: DelayBound | None = None
    """Without one, nothing is dropped."""
    places: AggregationPlaces | None = None
    """Without any, all updates go to their server directly."""
    batch_max: int = 64
    """So many waiting requests become a batch at once. Ours."""
    batch_wait_s: float = 0.05
    """After so long, the oldest waiting request's batch is closed. Ours."""
    gather_wait_s: float = 0.0
    """With hosts that may gather, the oldest request waits for so long at most, as long as the
    server has granted updates to get: a batch of several may have groups. Ours."""
    switch_wait_s: float = 0.0
    """With a switch that may add up, the oldest request waits for so long though its server has
    nothing to get: a group at a switch costs the time of one update. Ours."""
    most_queued_updates: float | None = None
    """A model waits at its server as long as its update would have to wait there for more than so
    many others: so it is fresher, and its update no later. None, or with a `mode`: models leave as
    early as they can. Ours."""
    relay_max: int = 1
    """So many workers may get one model, each but the first from the one before it. From 2 on,
    models wait while their server's link is full, and while more workers are away with a model than
    wait, so that several wait together. Ours."""
    relay_wait_s: float = math.inf
    """But the oldest request of a model waits for so long at most. Ours."""
    join_ratio: float = 1.0
    """A worker joins a group at a switch or a chain of models if the sum of their times is at most
    so many times what it is if this worker follows alone. With 1, a batch's sum is least. With
    more, workers stay together: one that goes alone has the server's link for itself, and comes
    alone again. Ours."""
    commit_order: CommitOrder = CommitOrder.ARRIVAL
    """In which order a server applies updates. Ours."""
    learning_rate: LearningRateRule | None = None
    """Makes the factor in each grant from its planned delay; without one, the factor is 1."""
    replicas: Mapping[str, ReplicaOptions] = field(default_factory=dict[str, ReplicaOptions])
    """By server. They need `CommitOrder.SEQUENCE`, and norms in all requests."""
    lost_after: float = 4.0
    """A transfer that takes more than so many times as long as planned counts as lost: `expire`
    withdraws it. Infinity: none is lost. Ours."""
    gather_slack_s: float | None = None
    """How long after its planned time a host's group is complete or forwarded without those that
    are missing. None: hosts do not report what they have gathered. Ours."""

    def __post_init__(self) -> None:
        if self.mode and self.bound:
            raise InvalidTransferError(
                f"bound is {self.bound}, but synchronous modes drop nothing: leave out one of them"
            )
        if self.replicas and self.commit_order is not CommitOrder.SEQUENCE:
            raise InvalidTransferError(
                "replicas apply updates in the sequence of grants: give CommitOrder.SEQUENCE"
            )
        check_whole("batch_max", self.batch_max, 1)
        check_finite("batch_wait_s", self.batch_wait_s, 0)
        check_finite("gather_wait_s", self.gather_wait_s, 0)
        check_finite("switch_wait_s", self.switch_wait_s, 0)
        check_whole("relay_max", self.relay_max, 1)
        if self.relay_max > 1 and self.most_queued_updates is not None:
            raise InvalidTransferError(
                f"relay_max is {self.relay_max}, and most_queued_updates"
                f" {self.most_queued_updates}: models that are relayed do not wait for updates;"
                " leave out one of them"
            )
        check_finite("join_ratio", self.join_ratio, 1)
        if self.relay_wait_s != math.inf:
            check_finite("relay_wait_s", self.relay_wait_s, 0)
        if self.most_queued_updates is not None:
            check_finite("most_queued_updates", self.most_queued_updates, 0)
        if self.lost_after != math.inf:
            check_finite("lost_after", self.lost_after, 1)
        if self.gather_slack_s is not None:
            check_finite("gather_slack_s", self.gather_slack_s, 0)
