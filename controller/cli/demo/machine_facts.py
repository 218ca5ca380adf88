# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Facts about a run for its report: when, which code, on which machine."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

_SOURCES = Path(__file__).resolve().parent


def machine_facts() -> dict[str, Any]:
    """Return time, commit, cpu, cores, kernel and python; all but `cores` are texts.

    The commit is that of the checkout; of a package that is installed, it is the release.
    """
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "cpu": model,
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def _commit() -> str:
    """Return the commit of the sources, else the release, else "unknown"."""
    try:
        found = subprocess.run(
            ["git", "-C", str(_SOURCES), "describe", "--always", "--dirty"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.strip()
        return found or f"release {metadata.version('switchfold')}"
    except FileNotFoundError:  # no git
        return f"release {metadata.version('switchfold')}"
    except metadata.PackageNotFoundError:
        return "unknown"
