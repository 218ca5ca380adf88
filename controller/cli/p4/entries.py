# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold switch entries`: what a running switch has been told, for an offline trace."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from ...api.operator_client import OperatorClient
from ...config import SwitchConfig, check_endpoint
from ...errors import ToolError
from ...switches.entry_export import ExportedEntries, export_entries
from ..output import controller_option, switch_credentials_option

_EXIT_CODES = "Exit codes: 0 done, 1 no such switch, or it refuses, 3 no controller."


@click.command("entries", epilog=_EXIT_CODES)
@click.argument("name", required=False)
@click.option("--address", metavar="HOST:PORT", help="Address of the switch, without controller.")
@click.option(
    "--device-id", type=int, default=1, show_default=True, help="Device id, with --address."
)
@click.option(
    "--registers",
    "has_registers",
    is_flag=True,
    help="With the cells of registers that are not zero (softswitch): state of earlier packets.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write, whose name ends in .txtpb.  [default: the output]",
)
@switch_credentials_option
@controller_option
def show_entries(  # noqa: PLR0913 - click passes options by name
    name: str | None,
    *,
    address: str | None,
    device_id: int,
    has_registers: bool,
    out: Path | None,
    switch_credentials: Path | None,
    client: OperatorClient,
) -> None:
    """Write the entries of switch NAME, or of the switch at --address, as a P4Runtime WriteRequest.

    Tables, default actions, profiles, multicast groups, clone sessions, value sets and meters: what
    'softswitch trace --entries' and 'softswitch run --entries' read. Only reads the switch.

    \b
    Examples:
      switchfold switch entries s1 --out s1.txtpb
      switchfold switch entries --address 127.0.0.1:9559 --insecure --registers --out s1.txtpb
      softswitch trace my.json --p4info my.p4info.txtpb --entries s1.txtpb --pcap port1.pcap
    """  # fmt: skip
    if out is not None and out.suffix != ".txtpb":
        raise click.UsageError(f"--out {out}: the name of a WriteRequest's text ends in .txtpb")
    config = named_switch(client, name, address, device_id, switch_credentials)
    found = asyncio.run(export_entries(config, has_registers=has_registers))
    _write(found, out)


def named_switch(
    client: OperatorClient,
    name: str | None,
    address: str | None,
    device_id: int,
    credentials: Path | None,
) -> SwitchConfig:
    """Return how to call switch NAME of the controller, or that at an address.

    Raises UsageError if no switch, or more than one, is meant.
    """
    if address is not None:
        check_endpoint("--address", address)
        name = name or "s1"
    else:
        switches = client.list_switches()
        found = [switch for switch in switches if name in (None, switch.name)]
        if len(found) != 1:
            known = ", ".join(switch.name for switch in switches)
            raise click.UsageError(f"choose one switch (known: {known})")
        name, address, device_id = found[0].name, found[0].address, found[0].device_id
    return SwitchConfig(
        name=name,
        address=address,
        device_id=device_id,
        credentials=client.folder_for_switch(address, credentials),
    )


def _write(found: ExportedEntries, out: Path | None) -> None:
    if out is None:
        click.echo(found.text(), nl=False)
    else:
        try:
            out.write_text(found.text(), encoding="utf-8")
        except OSError as exc:
            raise ToolError(f"cannot write {out}: {exc.strerror or exc}") from exc
    told = ", ".join(f"{number} {kind}" for kind, number in found.counts.items()) or "nothing"
    click.echo(f"{told} of {found.program}", err=True)
    for kind in found.unreadable:
        click.echo(f"the switch does not read back {kind}", err=True)
