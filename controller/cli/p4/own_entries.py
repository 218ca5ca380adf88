# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold switch write` and `table`: entries of the user's own on a running switch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from finsy.proto import p4r

from ....softswitch.p4runtime.entities.entries import read_entries
from ...api.operator_client import OperatorClient
from ...switches.own_entries import (
    PlacedUpdate,
    WrittenEntries,
    check_own,
    deletion,
    running_program,
    write_own,
)
from ...switches.table_read import read_table
from ..output import (
    controller_option,
    json_option,
    print_json,
    print_table,
    switch_credentials_option,
)
from .entries import named_switch

_EXIT_CODES: Final = "Exit codes: 0 done, 1 no such switch, or it refuses, 3 no controller."
_F = TypeVar("_F", bound=Callable[..., Any])


def _address_options(function: _F) -> _F:
    function = click.option(
        "--device-id", type=int, default=1, show_default=True, help="Device id, with --address."
    )(function)
    return click.option(
        "--address",
        metavar="HOST:PORT",
        help="Address of the switch, without controller; NAME is what you call it.",
    )(function)


@click.command("write", epilog=_EXIT_CODES)
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--delete", is_flag=True, help="Delete the entries of FILE instead.")
@_address_options
@switch_credentials_option
@controller_option
def write_entries(  # noqa: PLR0913 - click passes options by name
    name: str,
    file: Path,
    *,
    delete: bool,
    address: str | None,
    device_id: int,
    switch_credentials: Path | None,
    client: OperatorClient,
) -> None:
    """Write the entries of FILE into your own tables on switch NAME.

    FILE has one of the forms of 'softswitch run --entries'. Entries that are there already get what
    FILE says. What the controller keeps for itself is refused: the tables of the aggregation
    program, and multicast groups below 24576.

    BMv2 has one primary: there, the controller is a backup for the moment of writing.

    \b
    Examples:
      switchfold switch write s1 senders.txt
      switchfold switch write s1 senders.txt --delete
    """  # fmt: skip
    config = named_switch(client, name, address, device_id, switch_credentials)
    info = asyncio.run(running_program(config))
    updates: list[PlacedUpdate] = [
        (f"{file}: {where}", update) for where, update in read_entries(file, info)
    ]
    if delete:
        updates = [_deletion(where, update) for where, update in reversed(updates)]
    check_own(info, updates)
    _tell(config.name, asyncio.run(write_own(config, updates)))


@click.command("table", epilog=_EXIT_CODES)
@click.argument("name")
@click.argument("table")
@_address_options
@switch_credentials_option
@controller_option
@json_option
def show_table(  # noqa: PLR0913 - click passes options by name
    name: str,
    table: str,
    *,
    address: str | None,
    device_id: int,
    switch_credentials: Path | None,
    client: OperatorClient,
    is_json: bool,
) -> None:
    """Show the entries of TABLE on switch NAME, with what they have counted.

    \b
    Examples:
      switchfold switch table s1 sender
      switchfold switch table s1 ipv4_forward --json
    """
    config = named_switch(client, name, address, device_id, switch_credentials)
    info = asyncio.run(running_program(config))
    found = asyncio.run(read_table(config, info, table))
    if is_json:
        print_json([asdict(entry) for entry in found.entries])
        return
    if not found.entries:
        click.echo(f"table {table} on switch {config.name} has no entries")
        return
    has_counts = any(entry.packets is not None for entry in found.entries)
    print_table(
        f"Table {table} on switch {config.name}",
        (*found.keys, "action", *(("packets", "bytes") if has_counts else ())),
        [
            (
                *(entry.match[key] for key in found.keys),
                entry.action,
                *((entry.packets, entry.bytes) if has_counts else ()),
            )
            for entry in found.entries
        ],
    )


def _deletion(where: str, update: p4r.Update) -> PlacedUpdate:
    try:
        return where, deletion(update)
    except ValueError as exc:
        raise click.UsageError(f"{where}: {exc}") from exc


def _tell(name: str, written: WrittenEntries) -> None:
    kinds = ("inserted", "modified", "deleted")
    told = [f"{getattr(written, kind)} {kind}" for kind in kinds if getattr(written, kind)]
    click.echo(f"switch {name}: {', '.join(told) or 'nothing to write'}")
    if written.has_displaced:
        click.echo(
            "This switch has one primary; whoever was it takes over again from now on.", err=True
        )
