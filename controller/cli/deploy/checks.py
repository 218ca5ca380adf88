# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What `switchfold deploy init` checks of this machine, and what its findings say."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
from pathlib import Path
from typing import Final

from ....hostlib.slots import wire
from ...deployment.card_ports import Card, OwnAddress
from ...deployment.hosts import same_macs
from ...deployment.plan import DeploymentRequest, Findings
from ...deployment.units import LEAST_SYSTEMD, Installation
from ..doctor.check import Check, fail, ok, warn
from ..doctor.machine import check_compiler

_VALUES: Final = {"narrow": 32, "wide": 352}
_READABLE: Final = stat.S_IROTH


def check_machine(
    request: DeploymentRequest, own: list[OwnAddress], installed: Installation
) -> list[Check]:
    """Check this machine before anything is looked for."""
    checks = [_check_card(card, request.variant) for card in request.cards.values()]
    if request.cards:
        checks.append(check_compiler())
    checks += [_check_listen(request.listen, own), _check_systemd(), _check_program(installed)]
    here = {each.address for each in own}
    for host in request.hosts:
        if request.cards and host.address in here:
            checks.append(
                fail(
                    f"host {host.name}",
                    f"{host.address} is this machine, and softswitch does not see what its own "
                    "kernel sends by its cards",
                    "run no worker here; or run the switch on another machine",
                )
            )
    return checks


def check_findings(findings: Findings) -> list[Check]:
    """Say what was found of hosts and service address."""
    checks = [
        fail(f"host {found.named.name}", found.problem, found.remedy)
        if found.host is None
        else ok(
            f"host {found.host.name}",
            f"{found.host.address} is {found.host.mac}, at port {found.host.port}",
        )
        for found in findings.hosts
    ]
    places = [found.host for found in findings.hosts if found.host is not None]
    for first, second in same_macs(places):
        checks.append(
            fail(
                f"host {second.name}",
                f"{second.address} and {first.address} both are {first.mac}",
                "a router or a bridge answers for them: connect them to the switch itself",
            )
        )
    if findings.service_address:
        text = f"{findings.service_address}: nobody has it; keep it out of DHCP pools"
        return [*checks, ok("service address", text)]
    return [
        *checks,
        fail("service address", findings.service_problem, findings.service_remedy),
    ]


def _check_card(card: Card, variant: str) -> Check:
    name = f"interface {card.name}"
    needed = wire.IPV4_BYTES + wire.UDP_BYTES + wire.datagram_bytes(_VALUES[variant])
    if not card.is_up:
        return fail(name, "is down", f"run ip link set {card.name} up")
    if card.mtu < needed:
        remedy = f"run ip link set {card.name} mtu 1500, or give --variant narrow"
        return fail(name, f"has an MTU of {card.mtu}; packets have {needed} bytes", remedy)
    rate = f", {card.rate_bits_per_s / 1e6:g} Mbit/s" if card.rate_bits_per_s else ""
    return ok(name, f"is up, {card.mac}{rate}")


def _check_listen(listen: str, own: list[OwnAddress]) -> Check:
    host, _, port = listen.rpartition(":")
    if host not in ("0.0.0.0", *(each.address for each in own)):  # noqa: S104 - compared
        known = ", ".join(each.address for each in own) or "none"
        return fail(
            "controller",
            f"{host} is no address of this machine, which has {known}",
            "give --listen ADDRESS:PORT with an address that the hosts reach, and run this on the "
            "controller's machine",
        )
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, int(port)))
        except OSError as exc:
            remedy = "if a controller of this deployment runs there, all is well; else --listen"
            return warn("controller", f"{listen}: {exc.strerror}", remedy)
    return ok("controller", f"will listen at {listen}")


def _check_systemd() -> Check:
    path = shutil.which("systemctl")
    if path is None:
        return warn(
            "systemd",
            "there is no systemctl on the PATH",
            "run what the units' ExecStart say by other means; docs/deployment.md shows how",
        )
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    words = done.stdout.split()
    if len(words) < 2 or not words[1].isdecimal():
        return ok("systemd", "its version is not known")
    if int(words[1]) < LEAST_SYSTEMD:
        return fail(
            "systemd",
            f"version {words[1]} cannot show certificates to units",
            f"use version {LEAST_SYSTEMD} or later, or run the commands by other means",
        )
    return ok("systemd", f"version {words[1]}")


def _check_program(installed: Installation) -> Check:
    """Check that a user of a service's own could run the programs."""
    for start in (Path(installed.python), installed.package.resolve()):
        for path in (start.resolve(), *start.resolve().parents, *start.parents):
            if not os.stat(path).st_mode & _READABLE:
                return warn(
                    "installation",
                    f"{path} is readable for its owner only: services could not start {start}",
                    "install the package into an environment that all may read: "
                    'sudo install -d -o "$(id -un)" /opt/switchfold && '
                    "python3 -m venv /opt/switchfold",
                )
    return ok("installation", f"{installed.python}, readable for services")
