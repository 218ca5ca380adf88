# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Processor use: the kernel's counters of the machine and of single processes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_IDLE_FIELDS = (3, 4)  # idle, iowait; time that a hypervisor stole counts as busy
_TIME_FIELDS = 8  # user to steal; guests' time is in user already


@dataclass(frozen=True, kw_only=True)
class ProcessorTimes:
    """Counters at one time, in seconds since boot, or since the start of a process."""

    busy_s: float
    """Busy time of all cores together, from any process."""
    total_s: float
    """Time of all cores together, with idle time."""
    switches_s: tuple[float, ...]
    """Processor time of each named process, with all its threads."""


def read_times(switch_pids: Iterable[int]) -> ProcessorTimes:
    """Read all counters now."""
    busy, total = parse_machine(Path("/proc/stat").read_text())
    switches = (parse_process(Path(f"/proc/{pid}/stat").read_text()) for pid in switch_pids)
    return ProcessorTimes(
        busy_s=busy / TICKS_PER_S,
        total_s=total / TICKS_PER_S,
        switches_s=tuple(ticks / TICKS_PER_S for ticks in switches),
    )


def busy_share(duration_s: float) -> float:
    """Wait for `duration_s`; return the used share of all cores' time during the wait."""
    busy, total = parse_machine(Path("/proc/stat").read_text())
    time.sleep(duration_s)
    busy_after, total_after = parse_machine(Path("/proc/stat").read_text())
    return (busy_after - busy) / (total_after - total)


def parse_machine(text: str) -> tuple[int, int]:
    """Return the (busy, all) ticks of all cores from the text of /proc/stat."""
    ticks = [int(field) for field in text.splitlines()[0].split()[1 : 1 + _TIME_FIELDS]]
    return sum(ticks) - sum(ticks[field] for field in _IDLE_FIELDS), sum(ticks)


def parse_process(text: str) -> int:
    """Return the user and system ticks from the text of /proc/<pid>/stat."""
    fields = text.rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
