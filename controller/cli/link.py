# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold link`: links between switches, their load, and taking them out of use."""

from __future__ import annotations

import click

from ..api.operator_client import OperatorClient
from ..fabric.trees.tree_text import amount
from .output import (
    controller_option,
    json_option,
    message_dict,
    print_json,
    print_table,
)

_EXIT_CODES = "Exit codes: 0 done, 1 no such link or switch, 3 no controller."


@click.group(epilog=_EXIT_CODES)
def link() -> None:
    """Look at links between switches and take them out of use."""


@link.command("list", epilog=_EXIT_CODES)
@controller_option
@json_option
def list_links(client: OperatorClient, is_json: bool) -> None:
    """List links with their state and measured load in both directions.

    \b
    Examples:
      switchfold link list
      switchfold link list --json
    """
    links = client.list_links()
    if is_json:
        print_json([message_dict(message) for message in links])
        return
    print_table(
        f"Links of the controller at {client.address}",
        ("link", "ends", "state", "rate", "forward", "backward"),
        [
            (
                message.name,
                message.key,
                message.state,
                amount(message.rate_bits_per_s, "bit/s"),
                amount(message.forward_bits_per_s, "bit/s"),
                amount(message.backward_bits_per_s, "bit/s"),
            )
            for message in links
        ],
    )


@link.command("set", epilog=_EXIT_CODES)
@click.argument("name")
@click.argument("state", type=click.Choice(["up", "down"]))
@click.option("--switch", "is_switch", is_flag=True, help="NAME is a switch with all its links.")
@controller_option
def set_link(name: str, state: str, is_switch: bool, client: OperatorClient) -> None:
    """Take the link NAME out of all trees and routes, or back; the setting survives restarts.

    Jobs leave the link between two tensors. "up" also puts a dead link back into use.

    \b
    Examples:
      switchfold link set s1-s3 down
      switchfold link set s1:3-s3:1 up
      switchfold link set s5 down --switch
    """
    if is_switch:
        click.echo(f"switch {name} is {client.set_switch(name, is_up=state == 'up')}")
        return
    message = client.set_link(name, is_up=state == "up")
    click.echo(f"link {message.name} ({message.key}) is {message.state}")
