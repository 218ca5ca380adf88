# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a process or a testbed holds at one moment."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from switchfold.softswitch.p4runtime.service.server import POOL_NAME

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_NAMESPACES: Final = Path("/run/netns")


@dataclass(frozen=True, kw_only=True)
class ProcessFootprint:
    """What one process holds."""

    memory_bytes: int
    """Resident."""
    descriptors: int
    threads: int
    """Without those of `pool_threads`."""
    pool_threads: int
    """Of a softswitch: those that serve calls of P4Runtime."""


def process_footprint(pid: int) -> ProcessFootprint:
    """Return what a process holds now; FileNotFoundError if it is gone."""
    folder = Path(f"/proc/{pid}")
    names = _thread_names(folder)
    pool_threads = names.count(POOL_NAME)
    return ProcessFootprint(
        memory_bytes=int((folder / "statm").read_text().split()[1]) * _PAGE_BYTES,
        descriptors=len(list((folder / "fd").iterdir())),
        threads=len(names) - pool_threads,
        pool_threads=pool_threads,
    )


def _thread_names(process: Path) -> list[str]:
    names: list[str] = []
    for task in (process / "task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            names.append((task / "comm").read_text().rstrip("\n"))
    return names


def namespaces_of(testbed: str) -> set[str]:
    """Return the named network namespaces of a testbed."""
    if not _NAMESPACES.exists():
        return set()
    return {path.name for path in _NAMESPACES.iterdir() if path.name.startswith(f"sf-{testbed}-")}
