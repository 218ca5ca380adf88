# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How many chunks of a stream may be under way at a time."""

from __future__ import annotations


class CongestionWindow:
    """A fixed window, told of everything that a window could react to."""

    def __init__(self, maximum: int) -> None:
        """Allow `maximum` chunks without result at a time."""
        self._maximum = maximum

    @property
    def limit(self) -> int:
        """Most chunks that may be without result now; at least 1."""
        return self._maximum

    def on_results(self, count: int, marked: int, now_s: float, round_trip_s: float) -> None:
        """Learn that `count` results came, `marked` of them with ECN_ECHO.

        `round_trip_s` is the smoothed round trip, 0 before the first measurement.
        """

    def on_timeout(self, now_s: float) -> None:
        """Learn that at least one chunk had to be sent again."""
