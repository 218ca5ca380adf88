# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Options of `testbed up` for a program of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ...p4src.errors import ProgramFilesError
from ...p4src.own_program import program_files_in
from ..errors import OwnProgramError
from ..processes.own_program import OwnProgram

F = TypeVar("F", bound=Callable[..., Any])
_OPTIONS = (
    click.option(
        "--program",
        "own_program",
        type=click.Path(path_type=Path),
        metavar="PATH",
        help="Run this compiled v1model program: a .json of p4c-bm2-ss with its P4Info beside it,"
        " or a folder that 'switchfold p4 compile' made. A version of the aggregation program gets"
        " the controller, any other program none.",
    ),
    click.option(
        "--entries",
        "own_entries",
        type=click.Path(path_type=Path, exists=True),
        metavar="PATH",
        help="With --program: entries that each switch starts with, a file for all, or a folder"
        " with s1.txt, s1.json or s1.txtpb, and so on.",
    ),
)


def with_program(command: F) -> F:
    """Give a command the options that `described_program` takes out."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def described_program(options: dict[str, Any]) -> OwnProgram | None:
    """Take the options of `with_program` out of `options`; OwnProgramError if they do not fit."""
    path, entries = options.pop("own_program"), options.pop("own_entries")
    if path is None:
        if entries is not None:
            raise click.UsageError("--entries needs --program")
        return None
    try:
        return OwnProgram(files=program_files_in(path), entries=entries)
    except ProgramFilesError as exc:
        raise OwnProgramError(str(exc)) from exc
