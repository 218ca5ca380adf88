# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Options and output that several subcommands share."""

from __future__ import annotations

import functools
import json
import textwrap
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...bmv2_topos.config import records_directory
from ..api.endpoint import UNIX_PREFIX
from ..api.operator_client import OperatorClient
from ..config import DEFAULT_LISTEN

_F = TypeVar("_F", bound=Callable[..., Any])
_R = TypeVar("_R")
_LEAST_WIDTH: Final = 12
"""Of a column whose words are cut: narrower ones are hard to read."""


def default_controller() -> str:
    """Return the controller of the only testbed that is up, else the default address."""
    sockets = list(records_directory().glob("*/controller.sock"))
    return f"{UNIX_PREFIX}{sockets[0]}" if len(sockets) == 1 else DEFAULT_LISTEN


def controller_option(function: Callable[..., _R]) -> Callable[..., _R]:
    """Add the options of a call; the function gets a `client` made from them."""

    @functools.wraps(function)
    def call(
        *arguments: Any,
        controller_address: str,
        token: str,
        credentials: Path | None,
        insecure: bool,
        **options: Any,
    ) -> _R:
        client = OperatorClient(controller_address, token, credentials, insecure=insecure)
        return function(*arguments, client=client, **options)

    with_choice = click.option(
        "--insecure",
        is_flag=True,
        help="Call over TCP without TLS, where there are no credentials (SWITCHFOLD_INSECURE=1).",
    )(call)
    with_credentials = click.option(
        "--credentials",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIRECTORY",
        help="Folder of 'switchfold certs issue'.  [default: a testbed's own, else "
        "SWITCHFOLD_CREDENTIALS]",
    )(with_choice)
    with_token = click.option(
        "--token",
        default="",
        metavar="TOKEN",
        help="Token of that controller.  [default: a testbed's own, else "
        "SWITCHFOLD_OPERATOR_TOKEN, else SWITCHFOLD_TOKEN]",
    )(with_credentials)
    return click.option(
        "--controller",
        "controller_address",
        default=default_controller,
        envvar="SWITCHFOLD_CONTROLLER",
        show_default=f"the only testbed's, else {DEFAULT_LISTEN}",
        show_envvar=True,
        metavar="ADDRESS",
        help="Controller to ask, HOST:PORT or unix:/PATH.",
    )(with_token)


def switch_credentials_option(function: _F) -> _F:
    """Add --switch-credentials."""
    return click.option(
        "--switch-credentials",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIRECTORY",
        help="Folder of 'switchfold certs issue', for calls of switches.  [default: a testbed's "
        "own, else that of --credentials]",
    )(function)


def json_option(function: _F) -> _F:
    """Add --json."""
    return click.option(
        "--json", "is_json", is_flag=True, help="Print JSON for scripts instead of a table."
    )(function)


def message_dict(message: Message) -> dict[str, Any]:
    """Return all fields of a protobuf message, defaults included, with numbers as numbers."""
    result: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        is_message = field.type == FieldDescriptor.TYPE_MESSAGE
        if field.is_repeated:
            result[field.name] = [message_dict(v) if is_message else v for v in value]
        else:
            result[field.name] = message_dict(value) if is_message else value
    return result


def print_json(value: object) -> None:
    """Print a value as indented JSON."""
    click.echo(json.dumps(value, indent=2))


def print_table(title: str, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Print a table; numbers are aligned to the right.

    In a narrow terminal, cells wrap between words, and where that leaves columns too narrow, each
    row becomes a block of lines. No text is cut off, and no line is longer than the terminal.
    """
    console = Console()
    console.print(fitted_table(title, columns, rows, console.width))


def fitted_table(
    title: str,
    columns: Iterable[str],
    rows: Iterable[Iterable[object]],
    width: int,
    *,
    right: Container[str] = (),
) -> Table | Text:
    """Return the table of `print_table` for a terminal of `width` columns.

    Columns of numbers are aligned to the right, and those in `right`, whose numbers are texts.
    """
    heads = list(columns)
    cells = [list(row) for row in rows]
    texts = [[str(cell) for cell in row] for row in cells]
    widths = _widths([heads, *texts], width - 3 * len(heads) - 1)
    if widths is None:
        return Text("\n".join(_blocks(title, heads, texts, width)))
    table = Table(title=title, title_justify="left")
    for index, (head, column) in enumerate(zip(heads, widths, strict=True)):
        is_number = bool(cells) and all(isinstance(row[index], int | float) for row in cells)
        is_right = is_number or head in right
        table.add_column(
            head, justify="right" if is_right else "left", width=column, overflow="fold"
        )
    for row in cells:
        table.add_row(*map(_as_text, row))
    return table


def print_grid(rows: Iterable[Sequence[str | Text]]) -> None:
    """Print rows without lines between; texts wrap between words, and none is cut off.

    All cells but a row's last are names, whose words stay together while there is room for them.
    """
    console = Console()
    cells = [[_as_text(cell) for cell in row] for row in rows]
    gaps = 2 * (max(map(len, cells), default=1) - 1)
    texts = [[cell.plain for cell in row] for row in cells]
    words = [[*(name.replace(" ", "_") for name in row[:-1]), row[-1]] for row in texts]
    widths = _widths(words, console.width - gaps)
    if widths is None:
        for row in cells:
            console.print(Text(" ").join(cell for cell in row if cell), overflow="fold")
        return
    grid = Table.grid(padding=(0, 2))
    for width in widths:
        grid.add_column(width=width, overflow="fold")
    for row in cells:
        grid.add_row(*row)
    console.print(grid)


def _as_text(cell: object) -> Text:
    return cell if isinstance(cell, Text) else Text(str(cell))  # names are not markup


def print_counts(
    title: str, columns: Iterable[str], rows: Iterable[tuple[str, Sequence[int]]]
) -> None:
    """Print counters by outcome: those that are not zero, and a line about the others."""
    counted = list(rows)
    shown = [(outcome, *numbers) for outcome, numbers in counted if any(numbers)]
    if not shown:
        click.echo(f"{title}: all zero")
        return
    print_table(title, ("outcome", *columns), shown)
    if len(shown) < len(counted):
        click.echo(f"  the other {len(counted) - len(shown)} outcomes are zero")


def _blocks(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], width: int
) -> Iterator[str]:
    """Return a line for each cell, after the head of its column."""
    left = max(map(len, heads)) + 4
    yield from textwrap.wrap(title, width)
    for row in rows:
        yield ""
        for head, text in zip(heads, row, strict=True):
            lines = textwrap.wrap(text, max(width - left, 1)) or [""]
            yield f"  {head:<{left - 2}}" + f"\n{'':<{left}}".join(lines)


def _widths(rows: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """Return the width of every column: words stay whole while all columns have room for them.

    None if a column would be narrower than its words and than `_LEAST_WIDTH`.
    """
    columns = list(zip(*rows, strict=True))
    wanted = [max(map(len, cells)) for cells in columns]
    widths = [
        max((len(word) for cell in cells for word in cell.split()), default=1) for cells in columns
    ]
    spare = room - sum(widths)
    while spare < 0:
        widest = widths.index(max(widths))
        if widths[widest] <= _LEAST_WIDTH:
            return None
        widths[widest] -= 1
        spare += 1
    for index, natural in enumerate(wanted):
        more = max(min(natural - widths[index], spare), 0)
        widths[index] += more
        spare -= more
    return widths
