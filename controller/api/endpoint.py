# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Addresses of gRPC servers: "host:port" or "unix:/path"."""

from __future__ import annotations

import socket
from typing import Any, Final

UNIX_PREFIX: Final = "unix:"
_TAKEN_TIMEOUT_S: Final = 1.0


def connect(address: str, timeout_s: float) -> None:
    """Open and close a connection; OSError when nothing listens there."""
    if address.startswith(UNIX_PREFIX):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(timeout_s)
            sock.connect(address.removeprefix(UNIX_PREFIX))
        return
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), timeout=timeout_s).close()


def is_taken(address: str) -> bool:
    """Return whether a process serves this Unix socket; gRPC would take it over silently."""
    if not address.startswith(UNIX_PREFIX):
        return False  # a TCP port in use is refused by the kernel
    try:
        connect(address, _TAKEN_TIMEOUT_S)
    except OSError:
        return False
    return True


def is_local(address: str) -> bool:
    """Return whether an address reaches its own host only: a Unix socket, or loopback."""
    host = _host(address)
    return address.startswith(UNIX_PREFIX) or host in ("localhost", "::1") or host[:4] == "127."


def is_this_host(address: str) -> bool:
    """Return whether an address is one of this host's, in this network namespace."""
    if is_local(address):
        return True
    try:
        found = socket.getaddrinfo(_host(address), 0, type=socket.SOCK_DGRAM)
    except OSError:
        return False
    return any(_can_bind(family, place) for family, _, _, _, place in found)


def _can_bind(family: int, place: tuple[Any, ...]) -> bool:
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        try:
            sock.bind(place)
        except OSError:
            return False
    return True


def _host(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")


def with_port(address: str, port: int) -> str:
    """Return the address with the port that was chosen for port 0; Unix sockets have none."""
    if address.startswith(UNIX_PREFIX):
        return address
    return f"{address.rpartition(':')[0]}:{port}"
