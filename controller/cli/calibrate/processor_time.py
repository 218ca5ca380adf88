# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Processor times of processes and of the machine, from the kernel's counters."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

_IDLE: Final = (3, 4)  # idle, iowait
_FIELDS: Final = 8  # user to steal
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


def process_s(pid: int) -> float:
    """Return the processor seconds of a process's threads, those that ended left out.

    In nanoseconds if the kernel counts them so, else in ticks. Raises OSError without the process.
    """
    threads = Path(f"/proc/{pid}/task")
    try:
        return 1e-9 * sum(
            int((each / "schedstat").read_text().split()[0]) for each in threads.iterdir()
        )
    except FileNotFoundError:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


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
