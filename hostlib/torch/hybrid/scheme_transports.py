# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The connections of a rank: its parameter server shard, its client and its factor exchanges."""

from __future__ import annotations

import contextlib
import json
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, final

from ...credentials import Credentials, Role
from ...errors import ConfigurationError, SchemeError
from ...factors import ExchangeOptions, FactorExchange
from ...parameter_server import (
    ClientOptions,
    ParameterClient,
    ParameterServer,
    RuleKind,
    ServerOptions,
    StragglerDrop,
)
from ...peers import PeerServer
from ...schemes import InformationBook, Scheme
from ...session import Session
from ...straggler import StragglerPolicy
from ..syncers.scheme_channels import (
    USED_KEY,
    AdamChannel,
    BroadcastChannel,
    DenseChannel,
    FactorChannel,
    FlagChannel,
    ServerChannel,
    SwitchChannel,
)
from .group_talk import GroupTalk
from .switch_losses import SwitchLosses

Servers = int | Sequence[str] | None
"""Number of ranks that host a shard (None: all), or "host:port" of each external shard."""
DROP_S = 0.1
"""How long a shard waits for the others in a job with a quorum but no deadline."""
_Place = tuple[str, int]


@dataclass(frozen=True, kw_only=True)
class TransportOptions:
    """How ranks reach each other over TCP."""

    servers: Servers
    address: str
    """Address at which other ranks reach this one by TCP."""
    token: str
    """Secret of external shards; for their own shards the ranks agree on another one."""
    credentials: Credentials | None
    """Certificate of this worker; None: no TLS, as the user has chosen."""
    timeout_s: float
    straggler: StragglerPolicy
    losses: SwitchLosses
    priorities: Mapping[str, int]
    """Of sums by a switch, by key."""


@final
class SchemeTransports:
    """The connections that one information book needs; `close` ends all but the session."""

    def __init__(self, talk: GroupTalk, session: Session | None, options: TransportOptions) -> None:
        self._talk = talk
        self._session = session
        self._options = options
        self._stack = contextlib.ExitStack()
        self._channels: dict[Scheme, DenseChannel | FactorChannel] = {}
        self.server: ParameterServer | None = None
        """This rank's shard; None if it hosts none."""
        self._listener: PeerServer | None = None
        self._exchanges: list[FactorExchange] = []
        self._multicast: BroadcastChannel | None = None
        self.client: ParameterClient | None = None
        drawn = {"token": secrets.token_hex(16), "job": secrets.randbelow((1 << 31) - 1) + 1}
        agreed = json.loads(talk.broadcast_bytes(json.dumps(drawn).encode()))
        self._token, self._job = str(agreed["token"]), int(agreed["job"])

    def open(self) -> tuple[list[_Place], list[_Place]]:
        """Listen; return (host, port) of all workers and of all shards. All ranks must call it."""
        servers = self._options.servers
        self._listener = PeerServer(
            self._options.address, 0, token=self._token, credentials=self._options.credentials
        )
        self._stack.callback(self._listener.close)
        workers = self._gather(self._listener.port)
        if isinstance(servers, Sequence):
            return workers, [parse_place(text) for text in servers]
        num_servers = self._talk.num_ranks if servers is None else servers
        if self._talk.rank < num_servers:
            self.server = self._stack.enter_context(
                ParameterServer(
                    self._server_options(),
                    address=self._options.address,
                    token=self._token,
                    credentials=self._options.credentials,
                    insecure=self._options.credentials is None,
                    job=self._job,
                )
            )
        places = self._gather(self.server.port if self.server else 0)
        return workers, places[:num_servers]

    def _server_options(self) -> ServerOptions:
        policy, timeout_s = self._options.straggler, self._options.timeout_s
        drop = None
        if policy.leaves_out_late:
            deadline_s = policy.deadline_s or DROP_S
            drop = StragglerDrop(
                deadline_s=min(deadline_s, 0.8 * timeout_s), quorum=policy.quorum or 1
            )
        return ServerOptions(
            num_workers=self._talk.num_ranks,
            shard=self._talk.rank,
            rule=RuleKind.MEAN,
            timeout_s=0.9 * timeout_s,  # shorter than the syncers': servers name the missing ranks
            stragglers=drop,
        )

    def _gather(self, port: int) -> list[_Place]:
        own = json.dumps([self._options.address, port]).encode()
        return [tuple(json.loads(text)) for text in self._talk.gather_bytes(own)]

    def connect(self, book: InformationBook, rows: Mapping[str, int]) -> None:
        """Open the connections of the book; `rows` gives the rows of layers sent by multicast."""
        used = {entry.scheme for entry in book.entries}
        if used & {Scheme.PS, Scheme.ADAM}:
            self._connect_servers(book)
        if Scheme.INA in used:
            if self._session is None:
                raise ConfigurationError("the book has layers for the switch, but no session")
            self._channels[Scheme.INA] = SwitchChannel(
                self._session,
                self._options.timeout_s,
                self._options.losses,
                self._options.priorities,
            )
        is_multicast = {entry.is_copied for entry in book.entries if entry.scheme is Scheme.SFB}
        if False in is_multicast:
            exchange = self._open_exchange(list(book.workers), server=self._listener)
            self._channels[Scheme.SFB] = BroadcastChannel(exchange)
        if True in is_multicast:
            exchange = self._open_exchange([], multicast=cast("Any", self._session))
            self._multicast = BroadcastChannel(exchange, rows)

    def _open_exchange(self, peers: list[_Place], **carrier: Any) -> FactorExchange:
        options = ExchangeOptions(
            job=self._job,
            token=self._token,
            credentials=self._options.credentials,
            timeout_s=0.9 * self._options.timeout_s,  # its errors name the missing ranks
            connect_s=self._options.timeout_s,
        )
        exchange = FactorExchange(self._talk.rank, peers, options, **carrier)
        self._stack.callback(exchange.close)
        self._exchanges.append(exchange)
        return exchange

    def _connect_servers(self, book: InformationBook) -> None:
        is_elsewhere = isinstance(self._options.servers, Sequence)
        options = ClientOptions(
            worker_id=self._talk.rank,
            job=1 if is_elsewhere else self._job,
            token=self._options.token if is_elsewhere else self._token,
            credentials=self._options.credentials,
            insecure=self._options.credentials is None,
            server_role=Role.SERVER if is_elsewhere else Role.WORKER,
            pair_bytes=book.pair_bytes,
            timeout_s=self._options.timeout_s,
            reconnect_s=self._options.timeout_s,
        )
        client = ParameterClient(list(book.servers), options, local_server=self.server)
        self.client = self._stack.enter_context(client)
        for entry in book.entries:
            if entry.scheme in (Scheme.PS, Scheme.ADAM):
                is_whole = entry.scheme is Scheme.ADAM
                client.layout.add(entry.layer.name, entry.layer.num_values, is_whole=is_whole)
        client.layout.add(USED_KEY, len(book.entries))
        self._channels[Scheme.PS] = ServerChannel(client)
        self._channels[Scheme.ADAM] = AdamChannel(client)

    def dense(self, scheme: Scheme) -> DenseChannel:
        """Return the channel of PS or INA."""
        return cast("DenseChannel", self._channels[scheme])

    def factors(self, scheme: Scheme, *, is_copied: bool) -> FactorChannel:
        """Return the channel of SFB or ADAM; `is_copied`: switches multicast the factors."""
        if is_copied:
            assert self._multicast is not None
            return self._multicast
        return cast("FactorChannel", self._channels[scheme])

    def flags(self) -> FlagChannel:
        """Return the cheapest open channel for flags: switch, then servers, then factors."""
        for scheme in (Scheme.INA, Scheme.PS, Scheme.SFB):
            if scheme in self._channels:
                return cast("FlagChannel", self._channels[scheme])
        if self._multicast is None:
            raise SchemeError("the book has no parameters")
        return self._multicast

    @property
    def counters(self) -> dict[str, dict[str, Any]]:
        """Payload floats of this rank's client (ps), shard (server) and factors (sfb)."""
        found: dict[str, dict[str, Any]] = {}
        if self.client is not None:
            found["ps"] = dict(self.client.counters)
        if self._exchanges:
            total = Counter[str]()
            for exchange in self._exchanges:
                total.update(exchange.counters)
            found["sfb"] = dict(total)
        if self.server is not None:
            found["server"] = dict(self.server.counters)
        return found

    def close(self) -> None:
        """End all connections; pending exchanges fail."""
        self._stack.close()


def parse_place(text: str) -> _Place:
    """Return ("host", port) of "host:port"; raises ConfigurationError."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise ConfigurationError(f"parameter server {text!r}; write host:port")
    return host, int(port)
