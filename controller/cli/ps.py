# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold ps`: parameter servers."""

from __future__ import annotations

import click

from ...hostlib.parameter_server.command import run as run_server
from ...hostlib.parameter_server.resharding.command import run as run_reshard


@click.group()
def ps() -> None:
    """Run parameter servers: sums of dense keys; tables and tensors that outlive a crash."""


@ps.command(name="run", context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(arguments: tuple[str, ...]) -> int:
    """Run one shard until SIGINT or SIGTERM. `switchfold ps run --help` lists the options."""
    return run_server(arguments, program="switchfold ps run")


@ps.command(
    name="reshard", context_settings={"ignore_unknown_options": True, "help_option_names": []}
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def reshard(arguments: tuple[str, ...]) -> int:
    """Move tables to another number of servers: `--from DIRECTORY ... --to DIRECTORY ...`."""
    return run_reshard(arguments, program="switchfold ps reshard")
