# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold deploy init`: from a list of hosts to files that run on real machines."""

from __future__ import annotations

import socket
from pathlib import Path

import click

from ....hostlib.credentials import Role
from ...config import VARIANTS, SwitchConfig, parse_switch
from ...deployment.card_ports import Card, OwnAddress, find_cards, own_addresses
from ...deployment.folders import CONTROLLER_NAME, OPERATOR_FILE, WORKER_FILE, WORKER_FOLDER
from ...deployment.hosts import FORM, parse_named_host
from ...deployment.plan import (
    CONTROLLER_PORT,
    SOFTSWITCH_GRPC,
    DeploymentRequest,
    Findings,
    controller_config,
    find,
)
from ...deployment.units import Installation
from ...deployment.writing import (
    check_unwritten,
    give_to_caller,
    open_certificates,
    write_deployment,
)
from ...errors import ConfigError, SwitchUnreachableError
from ..doctor.check import Check, Status
from ..doctor_command import print_checks
from .checks import check_findings, check_machine

_SWITCH_NAME = "s1"


@click.group()
def deploy() -> None:
    """Deploy on machines of your own: docs/deployment.md."""


@deploy.command(
    epilog="Exit codes: 0 written, 1 a check failed: nothing was written, or with --switch nothing"
    " but certificates."
)
@click.argument("hosts", nargs=-1, required=True, metavar=f"HOST... ({FORM})")
@click.option(
    "--softswitch",
    "cards",
    multiple=True,
    metavar="[PORT=]INTERFACE",
    help="softswitch on this machine, with a port on this interface; repeat for several cards. A"
    " single one leads to the network that all hosts are in.",
)
@click.option(
    "--switch",
    "switch_text",
    metavar="NAME=HOST:PORT[/ID]",
    help="Another P4Runtime switch, instead.",
)
@click.option(
    "--switch-ports",
    metavar="FIRST-LAST",
    default="1-64",
    show_default=True,
    help="Ports of that switch where hosts are looked for.",
)
@click.option(
    "--service-address",
    default="",
    metavar="ADDRESS",
    help="Address to which workers send.  [default: a free one of the hosts' network]",
)
@click.option(
    "--listen",
    default="",
    metavar="HOST:PORT",
    help="Address of the controller, on this machine.  [default: the one that faces the hosts]",
)
@click.option(
    "--variant",
    type=click.Choice(VARIANTS),
    help="Program.  [default: wide for softswitch, else narrow]",
)
@click.option("--parameter-server", "has_server", is_flag=True, help="A unit for one as well.")
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("switchfold-deployment"),
    show_default=True,
    help="Folder to write.",
)
@click.option("--replace", is_flag=True, help="Write the files of such a folder again.")
@click.option("--insecure", is_flag=True, help="No certificates: for networks that you trust.")
def init(  # noqa: PLR0913 - click passes options by name
    *,
    hosts: tuple[str, ...],
    cards: tuple[str, ...],
    switch_text: str | None,
    switch_ports: str,
    service_address: str,
    listen: str,
    variant: str | None,
    has_server: bool,
    directory: Path,
    replace: bool,
    insecure: bool,
) -> int:
    """Write what a deployment needs: configuration, certificates, systemd units.

    Run it on the machine of the controller. HOSTs are the machines of workers, by their addresses
    on the network of the switch; their MAC addresses and ports are found by ARP. Whatever is wrong
    is said with a remedy.

    \b
    Examples:
      sudo switchfold deploy init 10.0.0.11 10.0.0.12 10.0.0.13 --softswitch eno1
      sudo switchfold deploy init a=10.0.0.11 b=10.0.0.12 --softswitch eno1 --softswitch eno2 \\
          --listen 192.168.1.5:50551
      switchfold deploy init 10.0.0.11 10.0.0.12 --switch s1=192.168.1.9:9559
    """  # fmt: skip
    if bool(cards) == (switch_text is not None):
        raise ConfigError("give --softswitch INTERFACE, or --switch NAME=HOST:PORT, and not both")
    named = tuple(parse_named_host(text, number) for number, text in enumerate(hosts, 1))
    if switch_text is None:
        switch = SwitchConfig(name=_SWITCH_NAME, address=SOFTSWITCH_GRPC)
    else:
        switch = parse_switch(switch_text)
    if not replace:
        check_unwritten(directory)
    request = DeploymentRequest(
        hosts=named,
        directory=directory.resolve(),
        cards=_cards(cards),
        switch=switch,
        switch_ports=_ports(switch_ports),
        service_address=service_address,
        listen=listen or f"{_address_towards(named[0].address)}:{CONTROLLER_PORT}",
        variant=variant or ("wide" if cards else "narrow"),
        has_server=has_server,
        is_insecure=insecure,
    )
    return _deploy(request)


def _deploy(request: DeploymentRequest) -> int:
    installed = Installation()
    own = own_addresses()
    checks = check_machine(request, own, installed)
    if _has_failed(checks):
        return _refuse(checks, request, "nothing")
    written = "nothing"
    if not request.cards and not request.is_insecure:
        request = _certify_switch(request)
        written = "nothing but certificates"
    findings = _find(request, own)
    checks += check_findings(findings)
    if _has_failed(checks):
        return _refuse(checks, request, written)
    config = controller_config(request, findings)
    units = write_deployment(request, config, open_certificates(request), installed)
    give_to_caller(request.directory)
    print_checks(checks)
    _print_next(request, units)
    return 0


def _certify_switch(request: DeploymentRequest) -> DeploymentRequest:
    """Make the certificates with which the switch is asked for hosts; the caller of sudo has them.

    Raises DeploymentError, CredentialsError.
    """
    certificates = open_certificates(request)
    assert certificates is not None
    click.echo(f"switch: {certificates.folder(Role.SWITCH, request.switch.name)}")
    request = request.at_switch(certificates.folder(Role.CONTROLLER, CONTROLLER_NAME))
    give_to_caller(request.directory)
    return request


def _refuse(checks: list[Check], request: DeploymentRequest, written: str) -> int:
    print_checks(checks)
    click.echo(f"{written} was written to {request.directory}: see 'do:' above", err=True)
    return 1


def _find(request: DeploymentRequest, own: list[OwnAddress]) -> Findings:
    """Look for the hosts; SwitchUnreachableError says which certificate the switch must have."""
    try:
        return find(request, own)
    except SwitchUnreachableError as exc:
        if request.cards or request.is_insecure:
            raise
        raise SwitchUnreachableError(
            f"{exc} Start it with its certificate, a copy of the folder above, and give this"
            " command again"
        ) from exc


def _print_next(request: DeploymentRequest, units: list[Path]) -> None:
    directory = request.directory
    click.echo(f"\nwritten: {directory}. Next, here:")
    click.echo(f"  sudo systemctl enable --now {' '.join(map(str, units))}")
    for host in request.hosts:
        click.echo(f"  scp -r {directory}/hosts/{host.name} {host.address}:{WORKER_FOLDER}")
    click.echo(f"  . {directory / OPERATOR_FILE} && switchfold doctor")
    click.echo("and on each host:")
    click.echo(f"  . ~/{WORKER_FOLDER}/{WORKER_FILE} && torchrun train.py")


def _has_failed(checks: list[Check]) -> bool:
    return any(check.status is Status.FAIL for check in checks)


def _cards(texts: tuple[str, ...]) -> dict[int, Card]:
    """Return the cards by port: that of PORT=INTERFACE, else the next free one."""
    found = find_cards()
    cards: dict[int, Card] = {}
    for text in texts:
        number, separator, name = text.rpartition("=")
        if separator and not number.isdecimal():
            raise ConfigError(f"--softswitch {text!r} is not [PORT=]INTERFACE, such as 1=eno1")
        port = int(number) if separator else max(cards, default=0) + 1
        if port in cards or any(card.name == name for card in cards.values()):
            raise ConfigError(f"--softswitch {text}: the port or the interface is given twice")
        if name not in found:
            known = ", ".join(sorted(found)) or "none"
            raise ConfigError(f"--softswitch {text}: no interface {name!r}; there is {known}")
        cards[port] = found[name]
    return cards


def _ports(text: str) -> range:
    first, _, last = text.partition("-")
    if not first.isdecimal() or not last.isdecimal() or not 1 <= int(first) <= int(last) < 255:
        raise ConfigError(f"--switch-ports {text!r} is not FIRST-LAST within 1-254")
    return range(int(first), int(last) + 1)


def _address_towards(address: str) -> str:
    """Return this machine's address that faces another; ConfigError if there is no route."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect((address, 9))  # no packet leaves
        except OSError as exc:
            raise ConfigError(
                f"this machine has no route to {address} ({exc.strerror}); give --listen"
                " ADDRESS:PORT: where hosts reach the controller"
            ) from exc
        return str(sock.getsockname()[0])
