# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of hybrid training.

HostlibError
`- SyncError (also RuntimeError): names rank, layer, scheme, iteration, cause and remedy
   `- SyncTimeoutError (also TimeoutError): a layer did not finish within the timeout
"""

from __future__ import annotations

from ...errors import (
    HostlibError,
    MemberError,
    PeerError,
    SessionError,
)

RESTART = "restart the ranks from a checkpoint, or let torchrun do so with --max-restarts"


class SyncError(HostlibError, RuntimeError):
    """A layer's gradient could not be synchronised; training cannot continue."""


class SyncTimeoutError(SyncError, TimeoutError):
    """A layer did not finish within the timeout."""


def sync_error(place: str, error: Exception) -> SyncError:
    """Return the error of a layer; `place` names rank, layer and iteration."""
    kind: type[SyncError] = SyncError
    remedy = "close the model and wrap it again"
    if isinstance(error, TimeoutError):
        kind = SyncTimeoutError
        remedy = (
            "check that all ranks run and use the same layers ('switchfold doctor' checks the"
            f" network); then {RESTART}"
        )
    elif isinstance(error, MemberError | SessionError):
        remedy = RESTART
    elif isinstance(error, PeerError):
        remedy = f"check that the parameter servers and all ranks run; then {RESTART}"
    raised = kind(f"{place}: {error or type(error).__name__}; {remedy}")
    raised.__cause__ = error
    return raised
