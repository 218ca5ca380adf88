# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold bench`: runs the benchmark script of a checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from controller.errors import ToolError

_SCRIPT = Path(__file__).parents[2] / "benchmarks" / "allreduce.py"


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(arguments: tuple[str, ...]) -> int:
    """Measure allreduce against torch's Gloo ring; options are the script's."""
    if not _SCRIPT.is_file():
        raise ToolError(
            f"benchmark script {_SCRIPT} is missing: benchmarks come with the source tree, not "
            "with the installed package; clone the repository and run 'make bench'"
        )
    command = [sys.executable, str(_SCRIPT), *arguments]
    return subprocess.run(command, check=False, cwd=_SCRIPT.parents[1]).returncode
