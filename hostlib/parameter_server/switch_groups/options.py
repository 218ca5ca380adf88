# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Options of a parameter server whose workers' updates a switch adds up."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import Final

from ...control.row_server_link import MAX_ROW_SERVERS
from ...credentials.tokens import token_problem
from ...errors import ConfigurationError

MOST_GROUP_ROWS: Final = 512


@dataclass(frozen=True, kw_only=True)
class SwitchGroupOptions:
    """How a server leases switch rows for groups of a job's workers, which its scheduler grants.

    Raises ConfigurationError.
    """

    controller: str
    """HOST:PORT or unix:/PATH, or several with commas."""
    job: str
    """Name of the job in which the workers have sessions; it need not exist yet."""
    address: str = ""
    """IPv4 address of this host on the link to the switch; empty: the server's own."""
    udp_port: int = 0
    """0: the number of the server's TCP port, or any free one if hot rows have that."""
    mac: str = ""
    """MAC address of that link, unless the controller's configuration lists this host."""
    ingress_port: int | str = 0
    """Switch port by number or name; 0: the one that the controller has for the address."""
    switch_name: str = ""
    """Empty: the only switch, or that of the configured host."""
    token: str = field(default="", repr=False)
    """Of the controller."""
    credentials: str | None = None
    """Folder with the server's certificate for the controller; None: no TLS."""
    job_token: str = field(default="", repr=False)
    """Of the job, if its workers have one."""
    rows: int = 128
    """Most switch rows; twice as many packets are under way from each member."""
    give_up_s: float = 2.0
    """A group is given up when no sum has come for so long; its members send by themselves."""

    def __post_init__(self) -> None:
        where = f"switch groups of job {self.job!r}"
        if not self.controller or not self.job:
            raise ConfigurationError(
                f"{where} at controller {self.controller!r}: give a controller and a job's name"
            )
        if self.address:
            try:
                ipaddress.IPv4Address(self.address)
            except ValueError as error:
                raise ConfigurationError(
                    f"{where}: address {self.address!r}; give an IPv4 address of this host"
                ) from error
        if not (0 <= self.udp_port < 1 << 16 and 1 <= self.rows <= MOST_GROUP_ROWS):
            raise ConfigurationError(
                f"{where}: UDP port {self.udp_port}, {self.rows} rows; give a port, and 1 to"
                f" {MOST_GROUP_ROWS} rows"
            )
        if not 0 < self.give_up_s <= 60:
            raise ConfigurationError(
                f"{where}: give up after {self.give_up_s} s; give at most 60 s"
            )
        for whose, token in ("controller", self.token), ("job", self.job_token):
            if problem := token_problem(token):
                raise ConfigurationError(f"{where}: the {whose}'s token {problem}")

    @staticmethod
    def server_id(shard: int) -> int:
        """Return a server's number among the row servers of the job.

        Hot rows use the shard itself, from 0 on; groups count from the highest number down.
        """
        return MAX_ROW_SERVERS - 1 - shard

    @staticmethod
    def check_shard(shard: int) -> None:
        """Raise ConfigurationError for a server that cannot lease rows."""
        if shard >= MAX_ROW_SERVERS // 2:
            raise ConfigurationError(
                f"switch groups of server {shard}; only servers 0 to {MAX_ROW_SERVERS // 2 - 1} can"
                " lease rows for groups"
            )
