# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`softswitch show`: print what a program compiles to."""

from __future__ import annotations

from pathlib import Path

import click

from softswitch.bmv2_json import read_program
from softswitch.commands.options import PROGRAM_FILE, errors_in_words
from softswitch.generator import generate


@click.command(epilog="Example: softswitch show switchfold_narrow.json > switchfold_narrow.c")
@click.argument("program", type=PROGRAM_FILE)
def show(program: Path) -> None:
    """Print the C text that PROGRAM (BMv2 JSON) compiles to."""
    with errors_in_words():
        click.echo(generate(read_program(program)), nl=False)
