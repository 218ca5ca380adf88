# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Calls that have arrived and that the controller's loop has not taken yet.

The loop takes calls one by one. By default gRPC drops calls at random once 1,000 wait, all beyond
3,000, and those that have waited for 30 s. The caller then sees CANCELLED without a reason.
"""

from __future__ import annotations

from typing import Final

from .request_check import RANGES

MAX_WAITING_CALLS: Final = 1 << 17
"""Above twice the workers of the largest job; one takes about 14 KB of memory."""


def waiting_call_options() -> list[tuple[str, int]]:
    """Return gRPC options by which a call waits as long as its worker does."""
    longest_wait = RANGES["JoinRequest.join_timeout_s"]
    assert longest_wait is not None, "the longest join timeout is bounded"
    return [
        ("grpc.server.max_pending_requests", MAX_WAITING_CALLS),
        ("grpc.server.max_pending_requests_hard_limit", MAX_WAITING_CALLS),
        ("grpc.server_max_unrequested_time_in_server", round(longest_wait[1])),
    ]
