# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A clock of the running loop that a test moves, so that timers fire in time or late."""

from __future__ import annotations

import asyncio
from typing import Final

_TURNS: Final = 10
"""Enough for a timer to fire and for what it wakes to end."""


class HandClock:
    """Replaces the clock of the running loop for good."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._now_s = loop.time()
        loop.time = lambda: self._now_s

    async def pass_by(self, duration_s: float) -> None:
        """Let so much time pass between two turns of the loop, then let the loop turn."""
        self._now_s += duration_s
        for _ in range(_TURNS):
            await asyncio.sleep(0)
