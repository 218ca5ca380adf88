# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Conditions that must become true, with a deadline that only a hang reaches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any


def wait_until(
    is_so: Callable[[], Any],
    what: str | Callable[[], str],
    limit_s: float = 60.0,
    *,
    interval_s: float = 0.02,
) -> None:
    """Wait until the condition holds; after the limit, fail with `what` or its result."""
    end_s = time.monotonic() + limit_s
    while not is_so():
        if time.monotonic() > end_s:
            raise AssertionError(
                f"not within {limit_s} s: {what if isinstance(what, str) else what()}"
            )
        time.sleep(interval_s)


async def until(is_true: Callable[[], bool], deadline_s: float = 60.0) -> None:
    """Return when the condition holds; TimeoutError when it does not in time."""
    async with asyncio.timeout(deadline_s):
        while not is_true():
            await asyncio.sleep(0.01)
