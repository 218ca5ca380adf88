# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Compiles the hand-written pipeline first_byte.c for tests of the runtime."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from switchfold.softswitch.compilation.compiler import INCLUDES, find_compiler


@dataclass(frozen=True)
class HandWrittenProgram:
    library: Path


def compile_first_byte(folder: Path) -> HandWrittenProgram:
    """Build the pipeline into `folder`."""
    library = folder / "first_byte.so"
    source = Path(__file__).with_suffix(".c")
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", *INCLUDES]
    subprocess.run([*find_compiler(), *flags, "-o", str(library), str(source)], check=True)
    return HandWrittenProgram(library)
