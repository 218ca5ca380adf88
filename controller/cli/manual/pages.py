# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The manual page of a command, from what `--help` says.

click's help has paragraphs that are filled, and others, which begin with a line `\\b`, that stand
as they are. Of these, one whose first line ends in a colon becomes a section: examples, exit codes.
"""

from __future__ import annotations

import inspect
import textwrap
from typing import Final, NamedTuple

import click

from .forwarding import ForwardingCommand
from .programs import children
from .roff import RoffPage

_VERBATIM: Final = "\b"
_TITLES: Final = {"Exit codes": "exit status"}


class _HelpPart(NamedTuple):
    """A paragraph of a help text."""

    title: str
    """Of a section that the paragraph is; empty within one."""
    lines: list[str]
    is_verbatim: bool


def page_name(context: click.Context) -> str:
    """Return the name of a command's page, such as switchfold-job-show."""
    return context.command_path.replace(" ", "-")


def manual_page(context: click.Context, *, version: str) -> str:
    """Return the page of a command."""
    command = context.command
    page = RoffPage(page_name(context), version=version)
    parts = _parts(command.help or "")
    page.section("name")
    page.line(plain=f"{page_name(context)} - {command.get_short_help_str(limit=200)}")
    page.section("synopsis")
    page.line(bold=context.command_path, plain=" ".join(command.collect_usage_pieces(context)))
    page.section("description")
    for part in parts:
        if not part.title:
            _add(page, part)
    _add_options(page, context)
    _add_commands(page, context)
    for part in [*(part for part in parts if part.title), *_parts(command.epilog or "")]:
        if part.title:
            page.section(part.title)
        _add(page, part)
    _add_neighbours(page, context)
    return page.text


def _parts(text: str) -> list[_HelpPart]:
    """Split a help text into its paragraphs."""
    found: list[_HelpPart] = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        lines = [line.rstrip() for line in paragraph.strip("\n").splitlines()]
        is_verbatim = bool(lines) and lines[0] == _VERBATIM
        if is_verbatim:
            lines = lines[1:]
        if not lines:
            continue
        title, colon, rest = lines[0].partition(":")
        begins_section = is_verbatim and colon and not rest
        if begins_section:
            lines = textwrap.dedent("\n".join(lines[1:])).splitlines()
        elif title in _TITLES and colon:  # in one line: `Exit codes: 0 done, 1 an error.`
            begins_section, lines = True, [rest.strip(), *lines[1:]]
        name = _TITLES.get(title, title) if begins_section else ""
        found.append(_HelpPart(name, lines, is_verbatim))
    return found


def _add(page: RoffPage, part: _HelpPart) -> None:
    if part.is_verbatim:
        page.verbatim(part.lines)
    else:
        page.paragraph("\n".join(line.strip() for line in part.lines))


def _add_options(page: RoffPage, context: click.Context) -> None:
    command = context.command
    if isinstance(command, ForwardingCommand):
        page.section("options")
        page.verbatim(command.parser_help(context.command_path).splitlines())
        return
    options = [each for each in command.get_params(context) if isinstance(each, click.Option)]
    records = [option.get_help_record(context) for option in options]
    shown = [record for record in records if record is not None]
    if shown:
        page.section("options")
        for term, text in shown:
            page.entry(term, text)


def _add_commands(page: RoffPage, context: click.Context) -> None:
    below = list(children(context))
    if below:
        page.section("commands")
        for child in below:
            text = child.command.get_short_help_str(limit=200)
            page.entry(child.info_name or "", f"{text} See {page_name(child)}(1).")


def _add_neighbours(page: RoffPage, context: click.Context) -> None:
    """Name the pages of the commands above."""
    names: list[str] = []
    above = context.parent
    while above is not None:
        names.append(f"{page_name(above)}(1)")
        above = above.parent
    if names:
        page.section("see also")
        page.paragraph(", ".join(names))
