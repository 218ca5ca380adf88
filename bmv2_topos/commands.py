# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold testbed up|down|status`."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Generator
from contextlib import contextmanager

import click

from bmv2_topos import state
from bmv2_topos.daemons import Mode, Target, Variant
from bmv2_topos.errors import TestbedError
from bmv2_topos.status import TestbedStatus
from bmv2_topos.testbed import Testbed
from bmv2_topos.topology import MAX_HOSTS, single_switch

_UNITS = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000}
DEFAULT_NAME = "main"


class _Rate(click.ParamType[int]):
    """Bits per second with an optional k, M or G behind; 0 means unshaped."""

    name = "rate"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        if isinstance(value, int):
            return value
        text = str(value).lower().removesuffix("bit/s").removesuffix("bit").strip()
        unit = text[-1:] if text[-1:] in {"k", "m", "g"} else ""
        try:
            return round(float(text.removesuffix(unit)) * _UNITS[unit])
        except ValueError:
            self.fail(f"{value!r} is not a rate such as 100M or 2.5G", param, ctx)


@click.group()
def testbed() -> None:
    """Make, show and remove a testbed: one switch, its workers' hosts, the controller."""


@testbed.command()
@click.option("--name", default=DEFAULT_NAME, show_default=True, help="Tells testbeds apart.")
@click.option(
    "--workers", type=click.IntRange(1, MAX_HOSTS), default=4, show_default=True, help="Hosts."
)
@click.option(
    "--rate", type=_Rate(), default="100M", show_default=True, help="Of each link; 0: unshaped."
)
@click.option(
    "--target",
    type=click.Choice(["softswitch", "bmv2"]),
    default="softswitch",
    show_default=True,
    help="What runs the P4 program.",
)
@click.option(
    "--mode",
    type=click.Choice(["veth", "udp"]),
    help="veth: namespaces, needs root; udp: loopback ports. Default: veth for root, else udp.",
)
@click.option(
    "--variant",
    type=click.Choice(["wide", "narrow"]),
    default="wide",
    show_default=True,
    help="Values per packet: 352 or 32.",
)
@click.option("--udp-base-port", type=click.IntRange(1024, 65000), help="First port of mode udp.")
@click.option("--json", "as_json", is_flag=True, help="Print the status as JSON.")
def up(
    *,
    name: str,
    workers: int,
    rate: int,
    target: Target,
    mode: Mode | None,
    variant: Variant,
    udp_base_port: int | None,
    as_json: bool,
) -> None:
    """Make a testbed and leave it up.

    \b
    Examples:
      switchfold testbed up --workers 8 --rate 1G
      switchfold testbed up --mode udp --name mine

    \b
    Exit codes: 0 up, 1 error, 2 wrong use.
    """  # fmt: skip
    with _errors_shown():
        chosen: Mode = mode or ("veth" if os.geteuid() == 0 else "udp")
        if chosen == "udp" and target == "bmv2":
            raise click.UsageError("--target bmv2 has no UDP ports: use --mode veth")
        rate_bits_per_s = rate if rate and chosen == "veth" else None
        try:
            topology = single_switch(workers, rate_bits_per_s=rate_bits_per_s)
            made = Testbed(
                topology,
                name=name,
                target=target,
                mode=chosen,
                variant=variant,
                detached=True,
                udp_base_port=udp_base_port,
            )
            made.up()
        except ValueError as exc:
            raise click.UsageError(str(exc)) from exc
        _show(made.status(), as_json=as_json)


@testbed.command()
@click.option("--name", default=DEFAULT_NAME, show_default=True, help="Which testbed.")
@click.option("--all", "is_all", is_flag=True, help="Every testbed of this user that was left up.")
def down(name: str, is_all: bool) -> None:
    """Remove a testbed, and whatever a killed one left behind.

    \b
    Examples:
      switchfold testbed down
      switchfold testbed down --all

    \b
    Exit codes: 0 gone (also when it was not there), 1 error, 2 wrong use.
    """  # fmt: skip
    with _errors_shown():
        for swept in state.sweep():
            click.echo(f"removed what {swept} had left behind")
        for candidate in state.record_names():
            if not is_all and candidate != name:
                continue
            record = state.load_record(candidate)
            if record.is_owner_alive():
                if is_all:
                    continue
                raise TestbedError(
                    f"testbed {candidate} belongs to the live process {record.owner_pid}, which "
                    "takes it down itself: end that process"
                )
            record.remove()
            click.echo(f"testbed {candidate} is down")


@testbed.command()
@click.option("--name", help="Only this testbed.")
@click.option("--json", "as_json", is_flag=True, help="A JSON list, one object per testbed.")
def status(name: str | None, as_json: bool) -> None:
    """Show testbeds: processes, links, rates, bytes.

    \b
    Examples:
      switchfold testbed status
      switchfold testbed status --name main --json

    \b
    Exit codes: 0 shown, 1 a named testbed is missing or not whole, 2 wrong use.
    """  # fmt: skip
    with _errors_shown():
        names = [name] if name else state.record_names()
        found = [Testbed.attach(each).status() for each in names]
        if as_json:
            click.echo(json.dumps([dataclasses.asdict(each) for each in found], indent=2))
        else:
            for each in found:
                _show(each, as_json=False)
            if not found:
                click.echo("no testbed")
        if name and not found[0].is_up:
            raise click.exceptions.Exit(1)


def _show(shown: TestbedStatus, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(shown), indent=2))
        return
    state_word = "up" if shown.is_up else "broken"
    click.echo(
        f"testbed {shown.name}: {state_word}, {shown.target} ({shown.variant}), mode {shown.mode}"
    )
    click.echo(f"  controller {shown.controller_address}")
    for process, pid, is_alive in shown.processes:
        click.echo(f"  {process:<12} pid {pid:<8} {'alive' if is_alive else 'dead'}")
    for host, port, rate, counted in shown.links:
        speed = f"{rate / 1e6:g} Mbit/s by {shown.shaper}" if rate else "unshaped"
        traffic = (
            f", {counted.from_host_bytes} bytes from it, {counted.to_host_bytes} to it"
            if counted
            else ""
        )
        click.echo(f"  {host} on port {port}: {speed}{traffic}")


@contextmanager
def _errors_shown() -> Generator[None]:
    try:
        yield
    except TestbedError as exc:
        raise click.ClickException(str(exc)) from exc
