# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a process or a testbed holds at one moment."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_NAMESPACES: Final = Path("/run/netns")


@dataclass(frozen=True, kw_only=True)
class ProcessFootprint:
    """What one process holds."""

    memory_bytes: int
    """Resident."""
    descriptors: int
    threads: int


def process_footprint(pid: int) -> ProcessFootprint:
    """Return what a process holds now; FileNotFoundError if it is gone."""
    folder = Path(f"/proc/{pid}")
    return ProcessFootprint(
        memory_bytes=int((folder / "statm").read_text().split()[1]) * _PAGE_BYTES,
        descriptors=len(list((folder / "fd").iterdir())),
        threads=len(list((folder / "task").iterdir())),
    )


def namespaces_of(testbed: str) -> set[str]:
    """Return the named network namespaces of a testbed."""
    if not _NAMESPACES.exists():
        return set()
    return {path.name for path in _NAMESPACES.iterdir() if path.name.startswith(f"sf-{testbed}-")}
