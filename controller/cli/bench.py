# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold bench`: runs a benchmark script of a checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import click

from ..errors import ToolError

_FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
"""The folder in a checkout, where the package's folder is a link."""
_SCRIPTS: Final = {
    "allreduce": "allreduce/allreduce.py",
    "host": "allreduce/host_allreduce.py",
    "trees": "trees/tree_allreduce.py",
    "contention": "contention/contention.py",
    "planning": "trees/tree_planning.py",
    "installation": "trees/tree_installation.py",
    "schemes": "schemes/schemes.py",
    "advice": "schemes/advice.py",
    "overlap": "overlap/overlap.py",
    "training": "training/training.py",
    "hot": "hot_rows/evaluation.py",
    "transport": "transport/evaluation.py",
    "accuracy": "transport/accuracy.py",
    "fabric": "fabric/evaluation.py",
}
_DEFAULT: Final = "allreduce"


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(arguments: tuple[str, ...]) -> int:
    """Run a benchmark: allreduce against torch's Gloo ring (default) or another.

    Others are host, trees, contention, planning, installation, schemes, advice, overlap, training,
    hot, transport, accuracy, fabric.
    All further options go to the script.
    """
    name, options = _DEFAULT, arguments
    if arguments in (("--help",), ("-h",)):
        click.echo(f"switchfold bench [NAME] [OPTIONS]; NAME is one of {', '.join(_SCRIPTS)}.\n")
        click.echo(
            f"Options of `bench {_DEFAULT}`, the default (`bench NAME --help` shows another's):\n"
        )
    if arguments and not arguments[0].startswith("-"):
        name, options = arguments[0], arguments[1:]
    if name not in _SCRIPTS:
        raise ToolError(f"no benchmark {name!r}; choose one of {', '.join(_SCRIPTS)}")
    script = _FOLDER / _SCRIPTS[name]
    if not script.is_file():
        raise ToolError(
            f"benchmark script {script} is missing: benchmarks come with the source tree, not "
            "with the installed package; clone the repository and run 'make bench'"
        )
    command = [sys.executable, str(script), *options]
    return subprocess.run(command, check=False, cwd=_FOLDER.parent).returncode
