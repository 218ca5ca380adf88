# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The two programs of the package, and walks over their commands."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Final, cast

import click

_GROUPS: Final = {
    "switchfold": ("switchfold.controller.__main__", "switchfold"),
    "softswitch": ("switchfold.softswitch.commands.command", "main"),
}
PROGRAMS: Final = tuple(_GROUPS)
"""Names of the installed programs."""


def program_context(name: str) -> click.Context:
    """Return the context of a program's group."""
    module, attribute = _GROUPS[name]
    group = cast("click.Command", getattr(importlib.import_module(module), attribute))
    return click.Context(group, info_name=name, **group.context_settings)


def contexts_below(context: click.Context) -> Iterator[click.Context]:
    """Return the context of a command, and those of all commands below it, in their order."""
    yield context
    for child in children(context):
        yield from contexts_below(child)


def children(context: click.Context) -> Iterator[click.Context]:
    """Return the contexts of a group's commands; none of any other command."""
    group = context.command
    if not isinstance(group, click.Group):
        return
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None and not command.hidden:
            settings = command.context_settings
            yield click.Context(command, info_name=name, parent=context, **settings)
