# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Promised times: blocks that may take so long, conditions that must become true.

A promise is about our code, not about the machine: time in which the machine lets processes wait
for a processor is not counted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_PRESSURE = Path("/proc/pressure/cpu")
_UNKNOWN_SHARE = 2 / 3
"""Of a time, where the kernel does not count how long processes wait for a processor."""


class BusyTime:
    """How long this machine has let a process wait for a processor, since it was made.

    The kernel counts that for all processes together (pressure stall information), so this is what
    any one of them, ours or the switch's, may have lost at most.
    """

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._counted_s = _stalled_s()

    @property
    def so_far_s(self) -> float:
        now_s = _stalled_s()
        if now_s is None or self._counted_s is None:
            return (time.monotonic() - self._began_s) * _UNKNOWN_SHARE
        return now_s - self._counted_s


def _stalled_s() -> float | None:
    """Return the seconds since boot in which somebody waited; None where nobody counts them."""
    try:
        text = _PRESSURE.read_text(encoding="ascii")
    except OSError:  # a kernel without it
        return None
    some, _, _ = text.partition("\n")
    return int(some.rpartition("total=")[2]) / 1e6


@contextmanager
def within(limit_s: float, what: str) -> Generator[None]:
    """Fail when the block takes longer than is promised."""
    began_s = time.monotonic()
    busy = BusyTime()
    yield
    check_time(time.monotonic() - began_s, limit_s, busy, what)


def check_time(took_s: float, limit_s: float, busy: BusyTime, what: str) -> None:
    """Fail when it took longer than is promised; `busy` was made when it began, or before."""
    busy_s = busy.so_far_s
    assert took_s - busy_s <= limit_s, (
        f"{what} took {took_s:.1f} s, {busy_s:.1f} s of them on a busy machine; "
        f"at most {limit_s} s are promised"
    )


def wait_until(is_so: Callable[[], Any], what: str, limit_s: float = 60.0) -> None:
    """Ask again until it is so; fail with `what` after the limit."""
    end_s = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < end_s, f"not within {limit_s} s: {what}"
        time.sleep(0.02)


async def until(is_true: Callable[[], bool], deadline_s: float = 60.0) -> None:
    """Return when the condition holds; TimeoutError when it does not in time."""
    async with asyncio.timeout(deadline_s):
        while not is_true():
            await asyncio.sleep(0.01)
