# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A timer for what a worker must do in time; the controller's own delays do not count."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

_T = TypeVar("_T")

_LATE_S: Final = 0.05
"""A timer that fires this much too late shows that this process stood still."""
_UNREAD_S: Final = 0.5
"""Time to read what workers have sent meanwhile."""


class PunctualTimer:
    """Calls back after a delay; later if the loop is late then, as messages wait unread."""

    def __init__(self, delay_s: float, callback: Callable[[], None]) -> None:
        """Start to count; to be made within a running loop."""
        self._callback = callback
        self._handle = self._start(delay_s)

    def cancel(self) -> None:
        """Do not call back."""
        self._handle.cancel()

    def _start(self, delay_s: float) -> asyncio.TimerHandle:
        loop = asyncio.get_running_loop()
        due_s = loop.time() + delay_s
        return loop.call_at(due_s, self._fire, due_s)

    def _fire(self, due_s: float) -> None:
        if asyncio.get_running_loop().time() - due_s > _LATE_S:
            self._handle = self._start(_UNREAD_S)
        else:
            self._callback()


async def within(delay_s: float, what: Awaitable[_T]) -> _T:
    """Return what is awaited; TimeoutError when it does not come in time."""
    async with asyncio.timeout(None) as limit:
        timer = PunctualTimer(delay_s, lambda: limit.reschedule(0.0))
        try:
            return await what
        finally:
            timer.cancel()
