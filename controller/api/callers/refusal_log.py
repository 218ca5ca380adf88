# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Lines of the log about refused calls: few, or strangers could fill the disk."""

from __future__ import annotations

import logging
import time
from typing import Final

_LOGGER = logging.getLogger(__name__)
_INTERVAL_S: Final = 10.0
"""Refusals within this time share one line."""


class RefusalLog:
    """Says how many calls were refused, and why the last one was."""

    def __init__(self) -> None:
        self._num_refused = 0
        self._logged_s = float("-inf")

    def note(self, error: Exception, peer: str) -> None:
        """Count a refusal, and log it unless another one has just been logged."""
        self._num_refused += 1
        now_s = time.monotonic()
        if now_s - self._logged_s >= _INTERVAL_S:
            _LOGGER.warning("%d calls refused, last from %s: %s", self._num_refused, peer, error)
            self._num_refused, self._logged_s = 0, now_s
