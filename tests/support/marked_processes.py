# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Processes whose environment has a mark, such as the folder of a test."""

from __future__ import annotations

from pathlib import Path


def processes_with(mark: str) -> list[str]:
    """Return the command lines of all processes whose environment has a text."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text("utf-8").replace("\0", " "))
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            continue  # it has ended, or is another user's
    return found
