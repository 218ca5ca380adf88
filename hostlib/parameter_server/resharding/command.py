# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The command that moves tables to another number of servers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ...errors import HostlibError
from .reshard import ReshardReport, reshard

PROGRAM = "python -m switchfold.hostlib.parameter_server.resharding"
_DESCRIPTION = """\
Move the tables of parameter servers that are stopped to another number of servers: rows, the
state of their optimisers, learning rates, and pushes that wait for the end of an iteration. It
reads the directories that --log named, in any order, and writes new ones, in the order of the new
servers. The old directories stay as they are, and servers refuse the new ones until all are
complete. It needs as much memory as the largest old server, and prints rows and checksums, which
it has compared.
"""


def make_parser(program: str = PROGRAM) -> argparse.ArgumentParser:
    """Return the command's parser; `program` is the command's name in the help."""
    parser = argparse.ArgumentParser(prog=program, description=_DESCRIPTION)
    for option, name, text in (
        ("--from", "old", "directory of each old server"),
        ("--to", "new", "directory of each new server, new or empty"),
    ):
        parser.add_argument(
            option, dest=name, type=Path, nargs="+", required=True, metavar="DIRECTORY", help=text
        )
    return parser


def run(arguments: Sequence[str], *, program: str = PROGRAM) -> int:
    """Run the command; return its exit code. `program` is its name in the help."""
    options = make_parser(program).parse_args(arguments)
    try:
        report = reshard(options.old, options.new)
    except HostlibError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(_text_of(report))
    return 0


def _text_of(report: ReshardReport) -> str:
    lines = [
        f"{table.name}: {table.num_rows} rows, {table.num_moved} moved, checksum"
        f" {table.checksum:016x}, now {' '.join(map(str, table.by_server))}"
        for table in report.tables
    ]
    lines.append(
        f"{report.num_before} servers to {report.num_after}, complete at version {report.version}"
    )
    return "\n".join(lines)
