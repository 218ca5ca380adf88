# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Options of a parameter server and of its clients."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path

from ..credentials import Credentials, Role, require_choice
from ..errors import ConfigurationError
from .hot_server.options import HotRowOptions
from .layout import PAIR_BYTES
from .rules import RuleKind
from .switch_groups.options import SwitchGroupOptions
from .transfer_options import TransferOptions

MOST_SERVERS = 1 << 16
GENERATION = 1
"""Generation in greetings to parameter servers, which have no views."""


@dataclass(frozen=True, kw_only=True)
class StragglerDrop:
    """Sums complete without the slowest workers; late updates are thrown away."""

    deadline_s: float
    """Time from a pair's first update of an iteration until the sum may be partial."""
    quorum: int
    """Fewest contributors of a partial sum."""


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """Options of a shard; all shards need the same ones, except for `shard`."""

    num_workers: int
    """Number of updates that complete a sum."""
    shard: int = 0
    """This server's position in the clients' list of servers."""
    rule: RuleKind = RuleKind.SUM
    timeout_s: float = 30.0
    """Time from a pair's first update until its workers get an error with the missing workers."""
    grace_s: float = 5.0
    """Time for a worker to connect again after its connection broke, while others wait for it."""
    stragglers: StragglerDrop | None = None
    log: Path | None = None
    """Directory of the log of the tables; None: they do not outlive the server."""
    latency_log: Path | None = None
    """Directory for what `switchfold report latency` reads of a server; needs pyarrow."""
    hot: HotRowOptions | None = None
    """For hot rows of tables in a switch; None: there are none."""
    transfers: TransferOptions | None = None
    """For a scheduler of updates; None: they are applied as they come."""
    is_replica: bool = False
    """Follow the server at position `shard`, and take its place when it is gone: MLfabric's
    registerAsReplica. It needs `transfers`."""
    server_log: Path | None = None
    """Of a replica: the directory that its server has for `log`, or a copy that is renewed. The
    replica, whose own `log` begins as a copy, joins while updates go on. None: it joins between
    two updates, with all that its server has."""
    switch_groups: SwitchGroupOptions | None = None
    """For updates that a switch adds up; None: there are none. They need `transfers`."""

    def __post_init__(self) -> None:
        if not 1 <= self.num_workers <= 1 << 15:
            raise ConfigurationError(f"{self.num_workers} workers; give 1 to {1 << 15}")
        if not 0 <= self.shard < MOST_SERVERS:
            raise ConfigurationError(f"shard {self.shard}; give its position from 0")
        if not (self.timeout_s > 0 and self.grace_s >= 0):
            raise ConfigurationError(
                f"timeout {self.timeout_s} s, grace {self.grace_s} s; give positive times"
            )
        has_rows = self.hot is not None or self.switch_groups is not None
        if self.is_replica and (self.transfers is None or has_rows):
            raise ConfigurationError(
                f"a replica of server {self.shard} needs scheduled updates, and has no hot rows or"
                " switch groups: give `transfers`, and neither `hot` nor `switch_groups`"
            )
        if self.server_log is not None and not (self.is_replica and self.log is not None):
            raise ConfigurationError(
                f"server {self.shard} reads the log in {self.server_log}: replicas do so, whose own"
                " `log` begins as a copy of it; give `is_replica` and `log`, too"
            )
        if self.hot is not None:
            self.hot.check_shard(self.shard, self.num_workers)
        if self.switch_groups is not None:
            self.switch_groups.check_shard(self.shard)
            if self.transfers is None:
                raise ConfigurationError(
                    f"switch groups of server {self.shard} are granted by a scheduler of updates:"
                    " give `transfers`, too"
                )
        drop = self.stragglers
        if drop is not None and not (
            0 < drop.deadline_s < self.timeout_s and 1 <= drop.quorum <= self.num_workers
        ):
            raise ConfigurationError(
                f"straggler deadline {drop.deadline_s} s and quorum {drop.quorum}; give a deadline"
                f" below the timeout of {self.timeout_s} s and a quorum of 1 to"
                f" {self.num_workers}"
            )


def all_credentials(credentials: Credentials | None, options: ServerOptions) -> object:
    """Return whether a server has credentials for all that it calls, and that call it."""
    parts = options.hot, options.transfers, options.switch_groups
    controllers = [part for part in parts if part is not None]
    return credentials is not None and all(part.credentials for part in controllers)


class HotRowUse(enum.StrEnum):
    """Whether a table client pushes and pulls hot keys through the switch."""

    AUTO = "auto"
    """Where it is faster: the client measures this now and then."""
    ALWAYS = "always"
    """Wherever servers have hot rows."""
    NEVER = "never"


@dataclass(frozen=True, kw_only=True)
class ClientOptions:
    """Options of a client."""

    worker_id: int
    """From 0 to the servers' number of workers less 1."""
    job: int = 1
    token: str = ""
    """Secret that servers and workers share."""
    credentials: Credentials | None = None
    """Certificate of this worker; None: no TLS, which `insecure` must say, too."""
    insecure: bool = False
    """Without `credentials`: connect all the same, without TLS. A warning says so."""
    server_role: Role = Role.SERVER
    """Role that the servers' certificates must have; Role.WORKER if workers host them."""
    source: str = "0.0.0.0"  # noqa: S104 - any of this host's
    """Address from which the client connects."""
    pair_bytes: int = PAIR_BYTES
    """Size of a pair; the same for all workers."""
    timeout_s: float = 40.0
    """Limit for an answer; longer than the servers' timeout, whose errors name workers."""
    reconnect_s: float = 20.0
    """Limit for a connection to a server, at first and after a break."""
    latency_log: Path | None = None
    """Of a table client: directory for records of pushes and pulls; needs pyarrow."""
    use_hot_rows: HotRowUse = HotRowUse.AUTO
    """Of a table client: whether it pushes and pulls hot keys through the switch."""
    hot_address: str | None = None
    """This host's address for packets to the switch; None: the one on the route to the switch."""
    hot_sample: float = 0.1
    """Share of the pushes whose keys are counted, for servers to find the hot ones."""

    def __post_init__(self) -> None:
        if not 0 <= self.worker_id < 1 << 15:
            raise ConfigurationError(f"worker {self.worker_id}; give its id from 0")
        if self.use_hot_rows not in set(HotRowUse):
            raise ConfigurationError(
                f"use of hot rows {self.use_hot_rows!r}; give one of {', '.join(HotRowUse)}"
            )
        if not 0 < self.hot_sample <= 1:
            raise ConfigurationError(
                f"{self.hot_sample} of the pushes are counted; give more than 0, at most 1"
            )
        if not (self.timeout_s > 0 and self.reconnect_s > 0):
            raise ConfigurationError(
                f"timeout {self.timeout_s} s, reconnect {self.reconnect_s} s; give positive times"
            )

    def require_choice(self) -> None:
        """Raise CredentialsError without credentials and without the choice to have none."""
        require_choice(
            self.credentials,
            who=f"worker {self.worker_id}'s client of parameter servers",
            role=Role.WORKER,
            options=("ClientOptions.credentials", "ClientOptions.insecure"),
            insecure=self.insecure,
        )
