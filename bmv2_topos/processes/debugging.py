# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the switches of a testbed tell while they run: traces, captures, live views."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .daemons import Target

SWITCH: Final = "{switch}"
"""Stands for the switch's name in the options of all switches."""


@dataclass(frozen=True, kw_only=True)
class SwitchDebugging:
    """Files that each switch writes; they outlive the testbed."""

    trace_dir: Path | None = None
    """Folder that gets NAME.trace of each switch: every step of every packet (softswitch)."""
    trace_count: int | None = None
    """Trace the first packets of each switch only."""
    live_dir: Path | None = None
    """Folder that gets NAME.live of each switch: rates, once a second (softswitch)."""
    pcap_dir: Path | None = None
    """Folder that gets a folder NAME of each switch with a capture for each port."""

    def __post_init__(self) -> None:
        if self.trace_dir is not None and self.live_dir is not None:
            raise ValueError("a trace and a live view need different builds: choose one of them")
        if self.trace_count is not None and self.trace_dir is None:
            raise ValueError("a number of packets to trace needs a folder for the traces")

    def options(self, target: Target) -> list[str]:
        """Return the options of every switch, SWITCH for its name; makes the folders.

        Raises ValueError for what a target cannot do.
        """
        if target == "bmv2" and (self.trace_dir is not None or self.live_dir is not None):
            raise ValueError("only a softswitch traces and shows rates; choose target softswitch")
        words: list[str] = []
        if self.trace_dir is not None:
            words += ["--trace", str(_made(self.trace_dir) / f"{SWITCH}.trace")]
        if self.trace_count is not None:
            words += ["--trace-count", str(self.trace_count)]
        if self.live_dir is not None:
            words += ["--live-file", str(_made(self.live_dir) / f"{SWITCH}.live")]
        if self.pcap_dir is not None:
            folder = _made(self.pcap_dir) / SWITCH
            words += [f"--pcap={folder}"] if target == "bmv2" else ["--pcap-dir", str(folder)]
        return words


def of_switch(options: list[str], name: str) -> list[str]:
    """Return the options of one switch; makes the folder that BMv2 expects for captures."""
    found = [word.replace(SWITCH, name) for word in options]
    for word in found:
        if word.startswith("--pcap="):
            _made(Path(word.removeprefix("--pcap=")))
    return found


def _made(folder: Path) -> Path:
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    return folder
