# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Options of a parameter server that has hot rows in a switch."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import Final

from ...control.row_server_link import MAX_ROW_SERVERS
from ...credentials.tokens import token_problem
from ...errors import ConfigurationError

MOST_WANTED_ROWS: Final = 1 << 12


@dataclass(frozen=True, kw_only=True)
class HotRowOptions:
    """How a server attaches to a job, and how it keeps its rows up to date."""

    controller: str
    """HOST:PORT or unix:/PATH."""
    job: str
    """Name of the job, which need not exist yet."""
    address: str = ""
    """IPv4 address of this host on the link to the switch; empty: the server's own."""
    udp_port: int = 0
    """0: the number of the server's TCP port."""
    mac: str = ""
    """MAC address of that link, unless the controller's configuration lists this host."""
    ingress_port: int | str = 0
    """Switch port by number or name; 0: the one that the controller has for the address."""
    switch_name: str = ""
    """Empty: the only switch, or that of the configured host."""
    token: str = field(default="", repr=False)
    """Of the controller."""
    rows: int = 256
    """Most hot rows of all tables."""
    refresh_s: float = 5.0
    """Time between two choices of the hot keys."""
    flush_s: float = 0.03
    """After how long without a decision a round is flushed; it is fenced after some more."""
    write_s: float | None = None
    """Least time between two writes of values to the switch; None: a third of `flush_s`."""

    def __post_init__(self) -> None:
        if not self.controller or not self.job:
            raise ConfigurationError(
                f"controller {self.controller!r}, job {self.job!r}; a server with hot rows needs"
                " both"
            )
        if self.address:
            try:
                ipaddress.IPv4Address(self.address)
            except ValueError as error:
                raise ConfigurationError(
                    f"hot address {self.address!r}; give an IPv4 address of this host"
                ) from error
        if not (0 <= self.udp_port < 1 << 16 and 1 <= self.rows <= MOST_WANTED_ROWS):
            raise ConfigurationError(
                f"UDP port {self.udp_port}, {self.rows} hot rows; give a port, and 1 to"
                f" {MOST_WANTED_ROWS} rows"
            )
        if not (self.refresh_s > 0 and 0 < self.flush_s <= 1 and 0 < self.write_pause_s <= 1):
            raise ConfigurationError(
                f"hot rows: refresh {self.refresh_s} s, flush {self.flush_s} s, write"
                f" {self.write_pause_s} s; give positive times, the last two up to 1 s"
            )
        problem = token_problem(self.token)
        if problem:
            raise ConfigurationError(f"the controller's token {problem}")

    @property
    def write_pause_s(self) -> float:
        """Least time between two writes of values to the switch."""
        return self.flush_s / 3 if self.write_s is None else self.write_s

    def check_shard(self, shard: int, num_workers: int) -> None:
        """Raise ConfigurationError for a server that cannot have hot rows."""
        if shard >= MAX_ROW_SERVERS or num_workers > MAX_ROW_SERVERS:
            raise ConfigurationError(
                f"hot rows for server {shard} of {num_workers} workers; a job has at most"
                f" {MAX_ROW_SERVERS} servers and as many workers with hot rows"
            )
