# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""C programs of tests under the address, leak and undefined-behaviour sanitizers.

An executable has no Python in it, so that the leak detector sees nothing else.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from switchfold.softswitch.compilation.compiler import find_compiler

FLAGS = (
    "-std=c11",
    "-g",
    "-pthread",
    "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
)
TIMEOUT_S = 3600.0


def missing_reason(folder: Path) -> str | None:
    """Return why the sanitizers cannot be used here, or None."""
    source = folder / "empty.c"
    source.write_text("int main(void) { return 0; }\n", encoding="utf-8")
    command = [*find_compiler(), "-fsanitize=address,undefined", "-o", str(folder / "empty")]
    made = subprocess.run([*command, str(source)], capture_output=True, check=False)
    return None if made.returncode == 0 else "this C compiler comes without sanitizers"


def compile_objects(folder: Path, sources: Sequence[Path], flags: Sequence[str]) -> list[Path]:
    """Compile sources into this folder, and return what `build` links."""
    command = [*find_compiler(), *FLAGS, *flags, "-c", *map(str, sources)]
    subprocess.run(command, cwd=folder, check=True)
    return [folder / f"{source.stem}.o" for source in sources]


def build(program: Path, sources: Sequence[Path], flags: Sequence[str]) -> Path:
    """Compile a program from sources and objects, and return it."""
    command = [*find_compiler(), *FLAGS, *flags, "-o", str(program), *map(str, sources), "-lm"]
    subprocess.run(command, check=True)
    return program


def run(program: Path, *arguments: object) -> str:
    """Run a program; return its output, AssertionError with it if it failed."""
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0"}
    environment.pop("LD_PRELOAD", None)
    command = [str(program), *map(str, arguments)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
        env=environment,
    )
    said = f"{done.stdout}{done.stderr[-6000:]}"
    assert done.returncode == 0, f"{' '.join(command)}: status {done.returncode}\n{said}"
    return done.stdout
