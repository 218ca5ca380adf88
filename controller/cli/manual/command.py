# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold man`: manual pages of all commands, from their help."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Final

import click

from ...errors import ToolError
from .pages import manual_page, page_name
from .programs import PROGRAMS, children, contexts_below, program_context

FOLDER: Final = Path(".local/share/man/man1")
"""Folder of a user's pages, in the home folder: man looks there if ~/.local/bin is on the PATH."""


@click.command(epilog="Exit codes: 0 done, 1 no such command, or a file cannot be written.")
@click.option("--install", is_flag=True, help=f"Write all pages to ~/{FOLDER}, where man looks.")
@click.option(
    "--directory",
    type=click.Path(path_type=Path),
    metavar="DIRECTORY",
    help="Write all pages there, as for a package of a distribution.",
)
@click.argument("command", nargs=-1)
def man(install: bool, directory: Path | None, command: tuple[str, ...]) -> None:
    """Print the manual page of COMMAND, or write the pages of all commands.

    COMMAND may begin with softswitch or switchfold, which is the default.

    \b
    Examples:
      switchfold man --install     # then: man switchfold-job-show
      switchfold man job show | man -l -
      switchfold man softswitch run | man -l -
    """
    if install or directory is not None:
        folder = directory or Path.home() / FOLDER
        click.echo(f"{_write_pages(folder)} pages in {folder}")
        return
    click.echo(manual_page(_find(command), version=metadata.version("switchfold")), nl=False)


def _find(words: tuple[str, ...]) -> click.Context:
    """Return the context of the command that is named like this; raises ToolError."""
    program, *below = words if words and words[0] in PROGRAMS else (PROGRAMS[0], *words)
    context = program_context(program)
    for word in below:
        found = next((each for each in children(context) if each.info_name == word), None)
        if found is None:
            raise ToolError(f"no command {word!r} in {context.command_path}; see its --help")
        context = found
    return context


def _all_contexts() -> Iterator[click.Context]:
    for program in PROGRAMS:
        yield from contexts_below(program_context(program))


def _write_pages(folder: Path) -> int:
    """Write all pages; return how many. Raises ToolError."""
    version = metadata.version("switchfold")
    contexts = list(_all_contexts())
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for context in contexts:
            file = folder / f"{page_name(context)}.1"
            file.write_text(manual_page(context, version=version), "utf-8")
    except OSError as error:
        raise ToolError(
            f"cannot write manual pages to {folder}: {error.strerror}; choose another --directory"
        ) from error
    return len(contexts)
