# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a server's callbacks are told of updates that it has applied."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from ...errors import HostlibError, PeerMismatchError, StaleUpdateError, UnplannedUpdateError

REFUSALS: Final[dict[type[HostlibError], str]] = {
    StaleUpdateError: "stale_updates",
    UnplannedUpdateError: "withheld_updates",
    PeerMismatchError: "missized_updates",
}
"""Counters of updates that were not applied, by error."""
_logger = logging.getLogger(__name__)


class CommittedUpdate(NamedTuple):
    """An update that the server has applied, for callbacks."""

    worker_id: int
    table: int
    """The table's number, see TableDefinition."""
    version: int
    """Number of updates that the model contains with it."""
    delay: int
    """Number of updates that were applied between its version and itself."""
    is_granted: bool


def guard(callback: Callable[[], None]) -> None:
    """Run a user's callback, and log its exception: the server goes on."""
    try:
        callback()
    except Exception:  # the user's own: the update is applied, and workers wait for their answers
        _logger.exception("a callback of scheduled updates failed")


def fate(is_granted: bool, is_in_place: bool) -> str:
    """Return the counter of an update that was applied."""
    if is_in_place:
        return "granted_updates"
    return "late_updates" if is_granted else "ungranted_updates"
