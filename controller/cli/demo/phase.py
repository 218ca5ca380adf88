# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Parts of a demo that take seconds without a result: what is done, and for how long."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ....bmv2_topos.processes.daemons import Variant, program_files
from ....softswitch.compilation.compiler import compile_program
from ....softswitch.compilation.runtime_library import build_runtime


@contextmanager
def phase(console: Console, text: str) -> Generator[None]:
    """Say what this block does; in a terminal with the time so far. Then say how long it took."""
    began_s = time.monotonic()
    if console.is_terminal:
        columns = (SpinnerColumn(), TextColumn("{task.description} ..."), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            bar.add_task(text, total=None)
            yield
    else:
        console.print(f"{text} ...", soft_wrap=True)
        yield
    seconds = time.monotonic() - began_s
    console.print(f"{text}: {seconds:.1f} s", soft_wrap=True, highlight=False)


def compile_once(console: Console, variant: Variant) -> None:
    """Compile the switch's program, unless the cache has it; the switch then starts at once.

    Raises the errors of `switchfold.softswitch.errors`, and TargetMissingError.
    """
    program, _ = program_files(variant)
    with phase(console, f"compiling {program.name} for this machine, once: a cache keeps it"):
        build_runtime()
        compile_program(program)
