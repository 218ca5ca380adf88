# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold switch`: look at switches and their counters."""

from __future__ import annotations

import click

from ..api.operator_api import operator_pb2 as pb
from ..api.operator_client import OperatorClient
from .output import (
    controller_option,
    json_option,
    message_dict,
    print_counts,
    print_json,
    print_table,
)
from .p4.entries import show_entries
from .p4.own_entries import show_table, write_entries

_EXIT_CODES = "Exit codes: 0 done, 1 no such switch, 3 no controller."


@click.group(epilog=_EXIT_CODES)
def switch() -> None:
    """Look at switches and their counters."""


@switch.command("list", epilog=_EXIT_CODES)
@controller_option
@json_option
def list_switches(client: OperatorClient, is_json: bool) -> None:
    """List the controller's switches.

    \b
    Examples:
      switchfold switch list
      switchfold switch list --json
    """
    switches = client.list_switches()
    if is_json:
        print_json([_switch_dict(message) for message in switches])
        return
    print_table(
        f"Switches of the controller at {client.address}",
        ("switch", "address", "state", "program", "used slots", "of"),
        [(s.name, s.address, s.state, s.program, s.used_slots, s.num_slots) for s in switches],
    )


@switch.command("show", epilog=_EXIT_CODES)
@click.argument("name")
@controller_option
@json_option
def show_switch(name: str, client: OperatorClient, is_json: bool) -> None:
    """Show state, slots in use, counters per outcome, frames and losses per port of switch NAME.

    Other frames are those that are no Switchfold packets. Those that pretend to be a switch's
    results are dropped and counted as spoofed. Ports lose frames that the P4 program never sees:
    rx_foreign counts frames that the port's peer did not send, rx_overflow frames without room.

    \b
    Examples:
      switchfold switch show s1
      switchfold switch show s1 --json
    """
    message = client.show_switch(name)
    if is_json:
        print_json(_switch_dict(message))
        return
    click.echo(f"switch {message.name} at {message.address}: {message.state}")
    if message.error:
        click.echo(f"  {message.error}")
    click.echo(f"  program {message.program}, device id {message.device_id}")
    click.echo(f"  slots {message.used_slots} of {message.num_slots} in use")
    click.echo(f"  workers send to {message.service_address}")
    if message.leases:
        print_table(
            "Slots in use",
            ("slots", "hot rows", "job", "generation", "view", "tree", "parent", "weight"),
            [
                (
                    _range(lease.slot_base, lease.slot_count),
                    _range(lease.row_base, lease.row_slots),
                    lease.job,
                    lease.generation,
                    lease.state,
                    lease.tree_id,
                    lease.parent or "(root)",
                    lease.weight,
                )
                for lease in message.leases
            ],
        )
    if message.counts:
        for title, counts in (
            ("Switchfold packets by outcome", message.counts),
            ("Other frames by outcome", message.ordinary_counts),
        ):
            print_counts(
                title,
                ("packets", "bytes"),
                [(count.outcome, (count.packets, count.bytes)) for count in counts],
            )
        _print_frames(message)
        _print_losses(message)


for command in (show_entries, show_table, write_entries):
    switch.add_command(command)


def _range(first: int, count: int) -> str:
    return f"{first}..{first + count - 1}" if count else ""


def _print_frames(message: pb.Switch) -> None:
    if not message.ports:
        click.echo("No host or switch is configured at a port.")
        return
    print_table(
        "Frames by port",
        ("port", "neighbour", "packets in", "bytes in", "packets out", "bytes out"),
        [
            (p.port, p.host or p.neighbour, p.packets_in, p.bytes_in, p.packets_out, p.bytes_out)
            for p in message.ports
        ],
    )


def _print_losses(message: pb.Switch) -> None:
    if not message.tells_port_losses:
        click.echo("This switch does not count the frames that its ports lose.")
    elif not message.port_losses:
        click.echo("No port has lost or refused a frame.")
    else:
        print_table(
            "Frames lost by port",
            ("port", "cause", "frames"),
            [(loss.port, loss.cause, loss.frames) for loss in message.port_losses],
        )


def _switch_dict(message: pb.Switch) -> dict[str, object]:
    result = message_dict(message)
    for name, counts in (("counts", message.counts), ("ordinary_counts", message.ordinary_counts)):
        result[name] = {
            count.outcome: {"packets": count.packets, "bytes": count.bytes} for count in counts
        }
    return result
