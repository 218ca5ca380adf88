# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A process that moves tables to other servers, and kills itself (SIGKILL) at a given call."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from switchfold.hostlib.parameter_server.resharding import reshard
from switchfold.hostlib.parameter_server.storage import NewStorage


def run_killed(
    old: Sequence[Path], new: Sequence[Path], method: str, number: int
) -> subprocess.CompletedProcess[bytes]:
    """Move tables; the process is killed as it calls a method of NewStorage for the n-th time."""
    arguments = [method, str(number), str(len(old)), *map(str, (*old, *new))]
    return subprocess.run([sys.executable, __file__, *arguments], check=False)


def main(method: str, number: int, num_old: int, *directories: str) -> None:
    calls = 0
    plain = getattr(NewStorage, method)

    def count(self: NewStorage, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(self, *arguments)

    setattr(NewStorage, method, count)
    paths = [Path(directory) for directory in directories]
    reshard(paths[:num_old], paths[num_old:])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
