# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Processor times of processes and of the machine, from the kernel's counters."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

_IDLE: Final = (3, 4)  # idle, iowait
_FIELDS: Final = 8  # user to steal
_PROCESS_CLOCK: Final = 2
"""Low bits of the number of a process's clock, see clock_getcpuclockid(3): time on processors."""


def process_s(pid: int) -> float:
    """Return the processor seconds of a process and all its threads, also of those that ended.

    Raises OSError without the process.
    """
    return time.clock_gettime((~pid << 3) | _PROCESS_CLOCK)


def busy_share(duration_s: float) -> float:
    """Return the share of all cores' time that any process uses during the next seconds."""
    busy, total = _machine_ticks()
    time.sleep(duration_s)
    busy_after, total_after = _machine_ticks()
    return (busy_after - busy) / max(1, total_after - total)


def _machine_ticks() -> tuple[int, int]:
    line = Path("/proc/stat").read_text().splitlines()[0]
    ticks = [int(field) for field in line.split()[1 : 1 + _FIELDS]]
    return sum(ticks) - sum(ticks[place] for place in _IDLE), sum(ticks)
