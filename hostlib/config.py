# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's place in the network from environment variables, as the testbed sets them.

SWITCHFOLD_CONTROLLER      controller, "host:port" or "unix:/path"
SWITCHFOLD_JOB             name of the job
SWITCHFOLD_WORKER_ID       0 .. SWITCHFOLD_NUM_WORKERS - 1
SWITCHFOLD_NUM_WORKERS     1 .. 32
SWITCHFOLD_TRANSPORT       udp (default), raw or tunnel
SWITCHFOLD_ADDRESS         this worker's IPv4 address (udp, tunnel)
SWITCHFOLD_INTERFACE       this worker's network interface (raw)
SWITCHFOLD_MAC             this worker's MAC address (tunnel)
SWITCHFOLD_INGRESS_PORT    switch port of this worker's link; unset: the controller finds it
SWITCHFOLD_TUNNEL_LOCAL    "host:port" of this end of the tunnel
SWITCHFOLD_TUNNEL_SWITCH   "host:port" of the switch's end of the tunnel
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from hostlib.errors import ConfigurationError
from hostlib.job_view import Endpoint
from hostlib.options import SessionOptions
from hostlib.session import Session
from hostlib.transports.base import Transport
from hostlib.transports.raw import RawTransport
from hostlib.transports.tunnel import TunnelTransport
from hostlib.transports.udp import UdpTransport

_PREFIX = "SWITCHFOLD_"


class _Environment:
    """Typed access that names the variable which is wrong."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    def text(self, name: str, default: str | None = None) -> str:
        value = self._variables.get(_PREFIX + name, default)
        if not value:
            raise ConfigurationError(
                f"{_PREFIX}{name} is not set: start the worker on a testbed, or set it by hand"
            )
        return value

    def number(self, name: str, default: str | None = None) -> int:
        value = self.text(name, default)
        if not value.isdecimal():
            raise ConfigurationError(f"{_PREFIX}{name} is {value!r}; it must be a whole number")
        return int(value)

    def socket_address(self, name: str) -> tuple[str, int]:
        host, colon, port = self.text(name).rpartition(":")
        if not colon or not port.isdecimal():
            raise ConfigurationError(f"{_PREFIX}{name} must be host:port, such as 127.0.0.1:4000")
        return host, int(port)


def transport_from_environment(variables: Mapping[str, str] | None = None) -> Transport:
    """Open the transport that the environment names.

    Raises:
        ConfigurationError: a variable is missing or wrong.
        TransportError: the transport cannot be opened.
    """
    environment = _Environment(os.environ if variables is None else variables)
    kind = environment.text("TRANSPORT", "udp")
    if kind == "udp":
        return UdpTransport(environment.text("ADDRESS"))
    if kind == "raw":
        return RawTransport(environment.text("INTERFACE"))
    if kind == "tunnel":
        return TunnelTransport(
            Endpoint(address=environment.text("ADDRESS"), mac=environment.text("MAC")),
            port_address=environment.socket_address("TUNNEL_SWITCH"),
            bind_address=environment.socket_address("TUNNEL_LOCAL"),
        )
    raise ConfigurationError(f"{_PREFIX}TRANSPORT is {kind!r}; choose udp, raw or tunnel")


def join_from_environment(
    options: SessionOptions | None = None, variables: Mapping[str, str] | None = None
) -> Session:
    """Join the job that the environment names; see the module's list of variables.

    Raises:
        ConfigurationError: a variable is missing or wrong.
        TransportError, JoinError: as `Session.join`.
    """
    variables = os.environ if variables is None else variables
    environment = _Environment(variables)
    controller = environment.text("CONTROLLER")
    job = environment.text("JOB")
    worker_id = environment.number("WORKER_ID")
    num_workers = environment.number("NUM_WORKERS")
    ingress_port = environment.number("INGRESS_PORT", "0")
    return Session.join(
        controller=controller,
        job=job,
        worker_id=worker_id,
        num_workers=num_workers,
        transport=transport_from_environment(variables),
        options=options,
        ingress_port=ingress_port,
    )
