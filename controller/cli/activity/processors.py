# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Processor time of this machine and of a testbed's processes, from /proc."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

from ....bmv2_topos.errors import TestbedNotFoundError
from ....bmv2_topos.processes.processes import read_records
from ....bmv2_topos.state import load_record, record_names
from ...api.endpoint import UNIX_PREFIX

_PROC = Path("/proc")


@dataclass(frozen=True, kw_only=True)
class ProcessorFigures:
    """What processors did over a time."""

    busy_share: float
    """Of all cores of this machine, 0 to 1."""
    num_cores: int
    cores_by_process: dict[str, float]
    """Cores that each of the testbed's own processes used: switches, the controller."""


class ProcessorMeter:
    """Compares two readings; a process that ends in between is left out."""

    def __init__(self, pids: dict[str, int], proc: Path = _PROC) -> None:
        """`pids` are those of processes by name; take the first reading."""
        self._pids = pids
        self._proc = proc
        self._began_s = time.monotonic()
        self._machine = self._read_machine()
        self._processes = self._read_processes()

    def figures(self) -> ProcessorFigures:
        """Return what has been used since the first reading."""
        seconds = max(time.monotonic() - self._began_s, 1e-9)
        idle, total = self._read_machine()
        spent = max(total - self._machine[1], 1)
        now = self._read_processes()
        return ProcessorFigures(
            busy_share=1.0 - (idle - self._machine[0]) / spent,
            num_cores=os.cpu_count() or 1,
            cores_by_process={
                name: (now[name] - before) / os.sysconf("SC_CLK_TCK") / seconds
                for name, before in self._processes.items()
                if name in now
            },
        )

    def _read_machine(self) -> tuple[int, int]:
        """Return (idle, all) ticks of all cores; waiting for a disk is idle."""
        first = (self._proc / "stat").read_text("ascii").splitlines()[0]
        ticks = [int(word) for word in first.split()[1:9]]  # guests are in user time already
        return ticks[3] + ticks[4], sum(ticks)

    def _read_processes(self) -> dict[str, int]:
        ticks: dict[str, int] = {}
        for name, pid in self._pids.items():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
                words = (self._proc / str(pid) / "stat").read_text("utf-8").rpartition(")")[2]
                user, system = words.split()[11:13]
                ticks[name] = int(user) + int(system)
        return ticks


def testbed_pids(controller: str) -> dict[str, int] | None:
    """Return the processes of the testbed on this machine whose controller this is.

    None if it is none of a testbed here: its switches and workers may be anywhere.
    """
    for name in record_names():
        try:
            record = load_record(name)
        except (TestbedNotFoundError, FileNotFoundError):  # it has just been taken down
            continue
        if controller == f"{UNIX_PREFIX}{record.directory}/controller.sock":
            return {process.name: process.pid for process in read_records(record.directory)}
    return None
