# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold testbed up|run|down|status|restart|cut|mend|impair|rate|live`."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any

import click

from .. import state
from ..errors import TestbedError
from ..processes.daemons import Mode, Shaping, Target, Variant
from ..status import TestbedStatus
from ..testbed import Testbed
from ..topology.topology_options import described_topology, with_topology
from .command_errors import errors_shown
from .debugging_options import described_debugging, with_debugging
from .impair_command import impair
from .live_command import live
from .program_options import described_program, with_program
from .rate_command import rate
from .run_command import run

DEFAULT_NAME = "main"


@click.group()
def testbed() -> None:
    """Make, show and remove a testbed: switches, hosts with workers, the controller."""


testbed.add_command(run)
testbed.add_command(live)
testbed.add_command(impair)
testbed.add_command(rate)


@testbed.command()
@click.option("--name", default=DEFAULT_NAME, show_default=True, help="Name of the testbed.")
@with_topology
@click.option(
    "--shaping",
    type=click.Choice(["links", "switch"]),
    default="links",
    show_default=True,
    help="What limits rates: the kernel on each link, or the softswitch, which then sees queues.",
)
@click.option(
    "--impair",
    default="",
    metavar="NAME=VALUE,...",
    help="Impairments of every link, in each direction, such as loss=0.01 (softswitch).",
)
@click.option(
    "--offloads",
    is_flag=True,
    help="Let many packets cross a link as one, as between virtual machines (veth, softswitch).",
)
@click.option("--tcp-ecn", is_flag=True, help="Let TCP between hosts use ECN (mode veth).")
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
    help="Lanes per packet: 352 (wide) or 32 (narrow).",
)
@click.option(
    "--lease",
    "lease_s",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Time without a message after which a job evicts a worker whose connection still stands;"
    " a job may ask for more.  [default: 6]",
)
@with_program
@with_debugging
@click.option("--udp-base-port", type=click.IntRange(1024, 65000), help="First port of mode udp.")
@click.option("--json", "as_json", is_flag=True, help="Print the status as JSON.")
def up(  # noqa: PLR0913 - click passes options by name
    *,
    name: str,
    target: Target,
    mode: Mode | None,
    variant: Variant,
    shaping: Shaping,
    impair: str,
    offloads: bool,
    tcp_ecn: bool,
    lease_s: float | None,
    udp_base_port: int | None,
    as_json: bool,
    **shape: Any,
) -> None:
    """Make a testbed and leave it up; then `switchfold testbed run` starts workers on its hosts.

    \b
    Examples:
      switchfold testbed up --workers 8 --rate 1G
      switchfold testbed up --mode udp --name mine --lease 60
      switchfold testbed up --topology leaf-spine --leaves 4 --spines 2 --hosts-per-leaf 2 --rate 100M --uplink-rate 25M
      switchfold testbed up --topology fat-tree --k 4
      switchfold testbed up --topology-file mine.toml
      switchfold testbed up --program router.json --entries router-entries.txt
      switchfold testbed up --trace traces --trace-count 1000 --pcap-dir captures

    \b
    Exit codes: 0 up, 1 error, 2 wrong use.
    """  # fmt: skip # noqa: E501 - a command line that can be copied
    with errors_shown():
        chosen: Mode = mode or ("veth" if os.geteuid() == 0 else "udp")
        if chosen == "udp" and target == "bmv2":
            raise click.UsageError("--target bmv2 has no UDP ports: use --mode veth")
        if offloads and (chosen == "udp" or target == "bmv2"):
            raise click.UsageError("--offloads needs --mode veth and --target softswitch")
        debugging, program = described_debugging(shape), described_program(shape)
        made = Testbed(
            described_topology(shape, is_shaped=chosen == "veth" or shaping == "switch"),
            name=name,
            target=target,
            mode=chosen,
            variant=variant,
            detached=True,
            controller_options=() if lease_s is None else ("--lease", str(lease_s)),
            udp_base_port=udp_base_port,
            shaping=shaping,
            impairments=impair,
            offloads=offloads,
            tcp_ecn=tcp_ecn,
            debugging=debugging,
            program=program,
        )
        made.up()
        _show(made.status(), as_json=as_json)


@testbed.command()
@click.option("--name", default=DEFAULT_NAME, show_default=True, help="Name of the testbed.")
@click.option("--all", "is_all", is_flag=True, help="Every testbed of this user that was left up.")
def down(name: str, is_all: bool) -> None:
    """Remove a testbed, and whatever killed testbeds left behind.

    \b
    Examples:
      switchfold testbed down
      switchfold testbed down --all

    \b
    Exit codes: 0 gone (also when it was not there), 1 error, 2 wrong use.
    """  # fmt: skip
    with errors_shown():
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
    Exit codes: 0 shown, 1 a named testbed is missing or broken, 2 wrong use.
    """  # fmt: skip
    with errors_shown():
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


@testbed.command()
@click.option("--name", default=DEFAULT_NAME, show_default=True, help="Name of the testbed.")
@click.argument("node")
def restart(*, name: str, node: str) -> None:
    """Kill NODE, a switch or "controller", and start it again; a switch starts with empty tables.

    \b
    Examples:
      switchfold testbed restart s2
      switchfold testbed restart --name main controller

    \b
    Exit codes: 0 it runs again, 1 error, 2 wrong use.
    """  # fmt: skip
    with errors_shown():
        made = Testbed.attach(name)
        if node == "controller":
            made.restart_controller()
        else:
            made.restart_switch(node)
        click.echo(f"{node} of testbed {name} runs again")


@testbed.command()
@click.option("--name", default=DEFAULT_NAME, show_default=True, help="Name of the testbed.")
@click.argument("one")
@click.argument("other")
def cut(*, name: str, one: str, other: str) -> None:
    """Let the link between two nodes carry nothing (mode veth); its interfaces stay up.

    \b
    Examples:
      switchfold testbed cut s1 s5

    \b
    Exit codes: 0 cut, 1 error, 2 wrong use.
    """  # fmt: skip
    with errors_shown():
        Testbed.attach(name).cut_link(one, other)
        click.echo(f"the link between {one} and {other} is cut")


@testbed.command()
@click.option("--name", default=DEFAULT_NAME, show_default=True, help="Name of the testbed.")
@click.argument("one")
@click.argument("other")
def mend(*, name: str, one: str, other: str) -> None:
    """Mend a link that was cut.

    \b
    Examples:
      switchfold testbed mend s1 s5

    \b
    Exit codes: 0 mended, 1 error, 2 wrong use.
    """  # fmt: skip
    with errors_shown():
        Testbed.attach(name).mend_link(one, other)
        click.echo(f"the link between {one} and {other} is whole")


def _show(shown: TestbedStatus, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(shown), indent=2))
        return
    state_word = "up" if shown.is_up else "broken"
    click.echo(
        f"testbed {shown.name}: {state_word}, {shown.target} ({shown.variant}), mode {shown.mode}"
    )
    if any(process == "controller" for process, _, _ in shown.processes):
        click.echo(f"  controller {shown.controller_address}")
    if shown.places:
        click.echo(f"  for torchrun: export SWITCHFOLD_PLACES={shown.places}")
    for process, pid, is_alive in shown.processes:
        click.echo(f"  {process:<12} pid {pid:<8} {'alive' if is_alive else 'dead'}")
    for host, port, link_rate, counted in shown.links:
        traffic = (
            f", {counted.from_host_bytes} bytes from it, {counted.to_host_bytes} to it"
            if counted
            else ""
        )
        switch = shown.switch_of[host]
        speed = _speed(shown, link_rate, (host, switch), is_cut=host in shown.cut_links)
        click.echo(f"  {host} on port {port} of {switch}: {speed}{traffic}")
    for a, a_port, b, b_port, link_rate, between in shown.switch_links:
        traffic = (
            f", {between.from_a_bytes} bytes from {a}, {between.from_b_bytes} from {b}"
            if between
            else ""
        )
        speed = _speed(shown, link_rate, (a, b), is_cut=f"{a}-{b}" in shown.cut_links)
        click.echo(f"  {a} port {a_port} to {b} port {b_port}: {speed}{traffic}")


def _speed(
    shown: TestbedStatus, rate_bits_per_s: int | None, ends: tuple[str, str], *, is_cut: bool
) -> str:
    if is_cut:
        return "CUT"
    text = f"{rate_bits_per_s / 1e6:g} Mbit/s by {shown.shaper}" if rate_bits_per_s else "unshaped"
    changed = [
        f"now {now / 1e6:g} Mbit/s from {sender}" if now else f"now unshaped from {sender}"
        for sender, receiver, now in shown.changed_rates
        if {sender, receiver} == set(ends)
    ]
    return ", ".join([text, *changed])
