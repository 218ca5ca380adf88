# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Calls that have arrived and that the controller's loop has not taken yet.

The loop takes calls one by one. By default gRPC drops calls at random once 1,000 wait, all beyond
3,000, and those that have waited for 30 s. The caller then sees CANCELLED without a reason. It sees
the same if the call still waits when the server stops.
"""

from __future__ import annotations

from typing import Any, Final

import grpc

from ...hostlib.control.controller_link import JOIN_METHOD
from ...hostlib.credentials import Credentials, Role, role_name
from ...hostlib.credentials.grpc_channels import open_channel
from ...hostlib.credentials.tokens import token_metadata
from .request_check import RANGES

LEAST_WAITING_CALLS: Final = 4096
"""So many may wait in any case; one takes about 14 KB of memory, and what it has sent unread."""


def waiting_call_options(num_callers: int) -> list[tuple[str, int]]:
    """Return gRPC options by which a call waits as long as its worker does.

    A call of each of `num_callers` connections finds room.
    """
    most = max(LEAST_WAITING_CALLS, num_callers)
    longest_wait = RANGES["JoinRequest.join_timeout_s"]
    assert longest_wait is not None, "the longest join timeout is bounded"
    return [
        ("grpc.server.max_pending_requests", most),
        ("grpc.server.max_pending_requests_hard_limit", most),
        ("grpc.server_max_unrequested_time_in_server", round(longest_wait[1])),
    ]


async def take_waiting_joins(
    address: str, token: str, credentials: Credentials | None = None
) -> None:
    """Wait until the server at this address has taken every call of Join that has arrived there.

    It takes them in their order; a call of our own waits behind them. Its status does not matter.
    """
    options = (("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1))
    channel: Any = open_channel(
        grpc.aio,
        address,
        credentials=credentials,
        server=role_name(Role.CONTROLLER),
        options=options,
    )
    async with channel:
        await channel.stream_stream(JOIN_METHOD)(metadata=token_metadata(token)).code()
