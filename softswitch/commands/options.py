# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the verbs share: options as fields of a dataclass, and errors as one message."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import click

from ..errors import SoftswitchError

PROGRAM_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_Options = TypeVar("_Options")
Decorator = Callable[[Callable[..., None]], Callable[..., None]]


@dataclasses.dataclass(frozen=True)
class CommandParameter:
    """How a dataclass field appears on the command line; the field's `Annotated` holds it."""

    declare: Callable[[str], Decorator]
    """Takes the field's name, and returns click's decorator for the command function."""


def argument(**settings: Any) -> CommandParameter:
    """Make a field an argument; the settings are those of `click.argument`."""
    return CommandParameter(lambda name: click.argument(name, **settings))


def option(flag: str, **settings: Any) -> CommandParameter:
    """Make a field an option; the settings are those of `click.option`."""
    return CommandParameter(lambda name: click.option(flag, name, **settings))


def takes(kind: type[_Options]) -> Callable[[Callable[[_Options], None]], Callable[..., None]]:
    """Give a command the parameters that the fields of a dataclass declare, as one object."""

    def decorate(command: Callable[[_Options], None]) -> Callable[..., None]:
        @functools.wraps(command)
        def call(**values: Any) -> None:
            command(kind(**values))

        decorated: Callable[..., None] = call
        for name, hint in reversed(get_type_hints(kind, include_extras=True).items()):
            parameter: CommandParameter = hint.__metadata__[0]
            decorated = parameter.declare(name)(decorated)
        return decorated

    return decorate


@contextlib.contextmanager
def errors_in_words() -> Generator[None]:
    """Turn errors of the switch into an error message and exit status 1."""
    try:
        yield
    except (SoftswitchError, OSError) as exc:
        raise click.ClickException(str(exc)) from exc


@contextlib.contextmanager
def writable(option: str) -> Generator[None]:
    """Exit with status 1 if a file or folder cannot be made; the message names its option."""
    try:
        yield
    except OSError as exc:
        raise click.ClickException(
            f"{option} {exc.filename}: {exc.strerror}; choose another place"
        ) from exc
