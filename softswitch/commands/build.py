# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`softswitch build`: compile programs ahead of time."""

from __future__ import annotations

import time
from pathlib import Path

import click

from ..compilation.compiler import compile_program
from ..compilation.runtime_library import build_runtime
from .options import PROGRAM_FILE, errors_in_words


@click.command(epilog="Example: softswitch build p4src/build/*/switchfold_*.json")
@click.argument("programs", type=PROGRAM_FILE, nargs=-1, required=True)
def build(programs: tuple[Path, ...]) -> None:
    """Compile PROGRAMS (BMv2 JSON) and the runtime into the cache.

    Prints each library and the seconds that it took. `run` then starts without a compilation.
    """
    with errors_in_words():
        for program in (*programs, None):
            started = time.monotonic()
            library = build_runtime() if program is None else compile_program(program).library
            click.echo(f"{library}  {time.monotonic() - started:.2f} s")
