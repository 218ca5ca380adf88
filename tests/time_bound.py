# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Promised times: blocks that may take so long, conditions that must become true."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any


@contextmanager
def within(limit_s: float, what: str) -> Generator[None]:
    """Fail when the block takes longer than is promised."""
    began_s = time.monotonic()
    yield
    took_s = time.monotonic() - began_s
    assert took_s <= limit_s, f"{what} took {took_s:.1f} s, at most {limit_s} s are promised"


def wait_until(is_so: Callable[[], Any], what: str, limit_s: float = 20.0) -> None:
    """Ask again until it is so; fail with `what` after the limit."""
    end_s = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < end_s, f"not within {limit_s} s: {what}"
        time.sleep(0.02)


async def until(is_true: Callable[[], bool], deadline_s: float = 20.0) -> None:
    """Return when the condition holds; TimeoutError when it does not in time."""
    async with asyncio.timeout(deadline_s):
        while not is_true():
            await asyncio.sleep(0.01)
