# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold ps`: parameter servers."""

from __future__ import annotations

import click

from ...hostlib.parameter_server import command as server
from ...hostlib.parameter_server.resharding import command as resharding
from .manual.forwarding import SETTINGS, ForwardingCommand


@click.group()
def ps() -> None:
    """Run parameter servers: sums of dense keys; tables and tensors that outlive a crash."""


@ps.command(
    name="run", cls=ForwardingCommand, make_parser=server.make_parser, context_settings=SETTINGS
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(arguments: tuple[str, ...]) -> int:
    """Run one shard until SIGINT or SIGTERM. `switchfold ps run --help` lists the options."""
    return server.run(arguments, program="switchfold ps run")


@ps.command(
    name="reshard",
    cls=ForwardingCommand,
    make_parser=resharding.make_parser,
    context_settings=SETTINGS,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def reshard(arguments: tuple[str, ...]) -> int:
    """Move tables to another number of servers: `--from DIRECTORY ... --to DIRECTORY ...`."""
    return resharding.run(arguments, program="switchfold ps reshard")
