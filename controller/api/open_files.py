# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The limit of open files, of which each connection is one, and limits of connections.

At the limit the kernel would keep further workers waiting without an answer, and the controller
could not reach its switches. So some files stay free: workers are refused before, and after these
all callers. Connections that do not call are closed, so that strangers cannot use up the files.
"""

from __future__ import annotations

import os
import resource
from typing import Final

from ..errors import NoRoomError

RESERVED: Final = 64
"""Files that are kept for switches, operators and workers that resume or are refused."""
OWN: Final = 32
"""Those of them that no caller gets: they are for switches and the database."""
HANDSHAKE_S: Final = 20.0
"""Longest time for TLS, and again for HTTP/2, until a connection can carry calls."""
IDLE_S: Final = 20.0
"""Longest time of a connection without a call."""
MAX_CALLS: Final = 100
"""Calls at a time on one connection; workers have one. Fewer are advised against by RFC 9113."""
UNREAD_BYTES: Final = 64 << 10
"""Most bytes that a call may send before they are wanted; gRPC would take megabytes."""
_WANTED: Final = 1 << 17
"""Above twice the workers of the largest job."""


def raise_limit() -> int:
    """Let this process open as many files as it may and can need; return how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = max(soft, min(hard, _WANTED))
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return limit


def check_room() -> None:
    """Raise NoRoomError unless this process can open RESERVED files more."""
    if not _can_open(RESERVED):
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        raise NoRoomError(
            f"the controller may open {limit} files, one for each worker, and fewer than "
            f"{RESERVED} are left; raise its limit of open files (ulimit -Hn, or LimitNOFILE of "
            "systemd) and start it again, or end jobs with 'switchfold job stop'"
        )


def max_connections() -> int:
    """Return how many callers there may be at a time, from the files that are open now."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, limit - len(os.listdir("/dev/fd")) - OWN)


def connection_options(count: int) -> list[tuple[str, int]]:
    """Return gRPC options by which there are at most `count` connections, none without calls.

    gRPC closes a connection beyond the number as soon as it has accepted it.
    """
    return [
        ("grpc.max_allowed_incoming_connections", count),
        ("grpc.server_handshake_timeout_ms", round(1000 * HANDSHAKE_S)),
        ("grpc.http2.settings_timeout", round(1000 * HANDSHAKE_S)),
        ("grpc.max_connection_idle_ms", round(1000 * IDLE_S)),
        ("grpc.max_concurrent_streams", MAX_CALLS),
        ("grpc.http2.lookahead_bytes", UNREAD_BYTES),
        ("grpc.http2.bdp_probe", 0),  # it would raise the line above
    ]


def _can_open(count: int) -> bool:
    numbers: list[int] = []
    try:
        for _ in range(count):
            numbers.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return False
    finally:
        for number in numbers:
            os.close(number)
    return True
