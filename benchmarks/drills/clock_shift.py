# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A wall clock of one process's own, which can jump while the process runs."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

from switchfold.softswitch.compilation.compiler import find_compiler


class ShiftedClock:
    """The clock of the processes that are started with `environment`."""

    def __init__(self, folder: Path) -> None:
        """Compile the library into `folder`; raises CompilerNotFoundError."""
        self._file = folder / "clock_shift"
        self._file.write_bytes(bytes(8))
        library = folder / "clock_shift.so"
        source = Path(__file__).with_name("clock_shift.c")
        flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
        subprocess.run([*find_compiler(), *flags, "-o", str(library), str(source)], check=True)
        self.environment = {"LD_PRELOAD": str(library), "CLOCK_SHIFT_FILE": str(self._file)}

    def jump(self, seconds: int) -> None:
        """Set how far the clock is ahead of the right time."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("=q", seconds))
