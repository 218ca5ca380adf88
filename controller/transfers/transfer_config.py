# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Options of live transfers: table [transfers] of the controller's file."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import ConfigError
from ..scheduler.delay_bound import DelayBound
from ..scheduler.training.commit_order import CommitOrder
from ..scheduler.training.learning_rate import InverseRate, LearningRateRule, SquareRootRate
from ..scheduler.training.options import SchedulerOptions
from ..scheduler.training.training_modes import TrainingMode

MAX_SERVERS: Final = 64
"""Servers of a job; their ids lie below."""
RATE_RULES: Final = ("none", "square_root", "inverse")
MAX_CHAIN: Final = 64
"""Workers that may get one model, each but the first from the one before it."""
_LEAST_RATE_BITS_PER_S: Final = 1000
_NO_QUEUE_LIMIT: Final = 1e6
"""So many updates never wait at a server: models need not wait for theirs."""


def server_name(server_id: int) -> str:
    """Return a server's name at a scheduler; no host has it, since names have no space."""
    return f"server {server_id}"


def switch_of(server: str) -> str:
    """Return what the scheduler calls the switch of a server, which adds up for this server."""
    return f"switch of {server}"


def replica_name(server_id: int) -> str:
    """Return the name of a server's replica at a scheduler; once it is the server, it keeps it."""
    return f"replica {server_id}"


@dataclass(frozen=True, kw_only=True)
class TransferConfig:
    """How jobs' transfers are scheduled, and what stations may ask for."""

    grant_wait_s: float = 1.0
    """A worker that has no answer by then sends its update without a grant."""
    lease_s: float = 10.0
    """A station that says nothing for so long is lost, though its connection stands."""
    reconnect_grace_s: float = 3.0
    """A station whose connection broke is lost when it has not come back by then."""
    promote_after_s: float = 1.0
    """The same of a server with a replica in place, which takes the server's place then."""
    replica_wait_s: float = 30.0
    """A replica to which nothing has come for so long, though something should have, is left."""
    server_wait_s: float = 10.0
    """A request waits so long for a server that is not there, or that has not reported the version
    of the request's model."""
    batch_max: int = 64
    """So many waiting requests become a batch at once."""
    batch_wait_s: float = 0.05
    """After so long, the oldest waiting request's batch is closed."""
    default_rate_bits_per_s: int = 1_000_000_000
    """Rate of a host's link, each direction, where the file states none."""
    payload_share: float = 1.0
    """Share of each link's rate that grants may use. Headers of TCP take about a twentieth."""
    gather_wait_s: float = 0.5
    """With idle aggregators, a batch may wait so long while its server has granted updates to get;
    but for half of grant_wait_s at most."""
    gather_slack_s: float = 0.5
    """An aggregator sends a sum so long after its planned time without what is missing."""
    most_queued_updates: float = _NO_QUEUE_LIMIT
    """A model waits at its server while its update would wait for more than so many others. By
    default, models leave as early as they can."""
    relay_max: int = 1
    """So many workers may get one model, each but the first from the one before it. From 2 on,
    models wait while their server's link is full and for workers that will be back, but for half of
    grant_wait_s at most."""
    relay_slack_s: float = 0.5
    """A server sends a model itself so long after the planned time, if a relay has not delivered
    it."""
    join_ratio: float = 1.5
    """A worker joins a group at the switch or a chain of models if the sum of their times is at
    most so many times what it is if this worker follows alone."""
    overdue_ratio: float = 3.0
    """A granted update that is not delivered after so many times its planned time is withdrawn."""
    overdue_least_s: float = 5.0
    """But not before."""
    learning_rate: str = "none"
    """How grants scale updates by their planned delay: none, square_root or inverse."""
    kappa: float = 1.0
    """Weight of the delay in the rule square_root."""
    max_jobs: int = 64
    """Jobs with transfers at a time; half of them for callers of one address."""
    max_stations: int = 1024
    """Workers and servers of a job."""
    max_open_per_worker: int = 64
    """Requests of a worker that wait or are under way."""
    log: Path | None = None
    """File to which the timeline of all transfers is added, as JSON lines; None: none."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name.endswith("_s") and not field.name.endswith("per_s"):
                least_s = 0.0 if field.name in ("batch_wait_s", "gather_wait_s") else 1e-3
                if not (math.isfinite(value) and least_s <= value <= 86400):
                    raise ConfigError(f"[transfers] {field.name} must lie in {least_s:g}..86400 s")
            elif field.type == "int" and value < 1:
                raise ConfigError(f"[transfers] {field.name} must be at least 1")
        if self.default_rate_bits_per_s < _LEAST_RATE_BITS_PER_S:
            raise ConfigError(
                f"[transfers] default_rate_bits_per_s must be at least {_LEAST_RATE_BITS_PER_S}"
            )
        if not 0.1 <= self.payload_share <= 1:
            raise ConfigError("[transfers] payload_share must lie in 0.1..1")
        if self.learning_rate not in RATE_RULES:
            raise ConfigError(
                f"[transfers] learning_rate {self.learning_rate!r} is none of "
                f"{', '.join(RATE_RULES)}"
            )
        if not 0 <= self.kappa <= 1e6:
            raise ConfigError("[transfers] kappa must lie in 0..1e6")
        self._check_models()
        for name in ("join_ratio", "overdue_ratio"):
            if not 1 <= getattr(self, name) <= 1000:
                raise ConfigError(f"[transfers] {name} must lie in 1..1000")
        if self.grant_wait_s > self.server_wait_s:
            raise ConfigError(
                f"[transfers] grant_wait_s is {self.grant_wait_s:g}, above server_wait_s "
                f"({self.server_wait_s:g}): a request that a worker still waits for would be given "
                "up; lower the one or raise the other"
            )

    def _check_models(self) -> None:
        if not 0 <= self.most_queued_updates <= _NO_QUEUE_LIMIT:
            raise ConfigError("[transfers] most_queued_updates must lie in 0..1e6")
        if self.relay_max > MAX_CHAIN:
            raise ConfigError(f"[transfers] relay_max must lie in 1..{MAX_CHAIN}")
        if self.relay_max > 1 and self.most_queued_updates != _NO_QUEUE_LIMIT:
            raise ConfigError(
                f"[transfers] relay_max is {self.relay_max}, and most_queued_updates"
                f" {self.most_queued_updates:g}: models that are relayed do not wait for updates;"
                " leave out one of them"
            )

    def scheduler_options(self, mode: TrainingMode | None, tau_max: int | None) -> SchedulerOptions:
        """Return how a job's transfers are scheduled."""
        most_s = self.grant_wait_s / 2
        return SchedulerOptions(
            mode=mode,
            bound=None if tau_max is None else DelayBound(tau_max=tau_max),
            batch_max=self.batch_max,
            batch_wait_s=self.batch_wait_s,
            most_queued_updates=self.most_queued,
            relay_max=self.relay_max,
            relay_wait_s=most_s,
            join_ratio=self.join_ratio,
            commit_order=CommitOrder.SEQUENCE,  # as servers apply updates
            gather_wait_s=min(self.gather_wait_s, most_s),
            switch_wait_s=min(self.batch_wait_s, most_s),
            gather_slack_s=self.gather_slack_s,
            lost_after=math.inf,  # what is overdue is given up by TransferFlow
        )

    @property
    def most_queued(self) -> float | None:
        """The scheduler's most_queued_updates: None with relays, whose models do not wait so."""
        return self.most_queued_updates if self.relay_max == 1 else None

    @property
    def rate_rule(self) -> LearningRateRule | None:
        """The rule of learning_rate."""
        match self.learning_rate:
            case "square_root":
                return SquareRootRate(kappa=self.kappa)
            case "inverse":
                return InverseRate()
            case _:
                return None
