# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Probes of session connections by the kernels: a worker need not run to show that it lives.

A process that holds its interpreter lock, or that is stopped, sends no heartbeat, but its kernel
answers probes. The kernel closes the connection of a killed process. A vanished host answers
nothing.
"""

from __future__ import annotations

import logging
import os
import socket
import stat
from collections.abc import Generator
from pathlib import Path
from typing import Final

from ...hostlib.control.controller_channel import NEVER_MS

_LOGGER = logging.getLogger(__name__)
PROBE_S: Final = 1
"""Seconds until an idle connection is probed, and between further probes."""


def server_options(host_gone_s: float) -> list[tuple[str, int]]:
    """Return gRPC options by which only the kernel ends connections.

    gRPC hands its own keepalive's time-out to the kernel as TCP_USER_TIMEOUT. Its pings are off: a
    stopped process does not answer them.
    """
    return [
        ("grpc.so_reuseport", 0),
        ("grpc.keepalive_time_ms", NEVER_MS),
        ("grpc.keepalive_timeout_ms", round(1000 * host_gone_s)),
        ("grpc.http2.ping_timeout_ms", NEVER_MS),
    ]


def probe_connections(port: int) -> int:
    """Have the kernel probe every connection that this process accepts at a TCP port from now on.

    gRPC does not expose its sockets, but an accepted socket inherits the options of the listening
    one. Returns how many sockets listen there.
    """
    count = 0
    for listener in _listeners(port):
        with listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, PROBE_S)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, PROBE_S)
        count += 1
    if not count:
        _LOGGER.warning(
            "no listening socket found at port %d: only leases detect vanished hosts", port
        )
    return count


def _listeners(port: int) -> Generator[socket.socket]:
    """Yield a duplicate of each of this process's sockets that listens at a TCP port."""
    for name in os.listdir("/proc/self/fd") if Path("/proc/self/fd").is_dir() else ():
        try:
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            duplicate = socket.socket(fileno=os.dup(int(name)))
        except OSError:  # closed since the folder was read
            continue
        is_tcp = duplicate.family in (socket.AF_INET, socket.AF_INET6) and (
            duplicate.type == socket.SOCK_STREAM
        )
        if (
            is_tcp
            and duplicate.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            and duplicate.getsockname()[1] == port
        ):
            yield duplicate
        else:
            duplicate.close()
