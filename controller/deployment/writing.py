# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes a deployment's folder.

controller.toml         the controller's configuration
systemd/                units of what runs on this machine
authority/              certificates of all processes; ca.key is secret
hosts/NAME/             what host NAME gets: its certificate and worker.env
operator.env            variables of operators' commands on this machine
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ...hostlib.credentials import Role
from ..config import ControllerConfig
from ..errors import DeploymentError
from .controller_file import controller_file
from .folders import (
    CONTROLLER_NAME,
    SERVER_NAME,
    Certificates,
    write_host_folders,
    write_operator_file,
)
from .plan import SERVER_PORT, DeploymentRequest
from .units import (
    CONTROLLER_UNIT,
    SERVER_UNIT,
    SOFTSWITCH_UNIT,
    Installation,
    ServiceUnit,
    controller_unit,
    server_unit,
    softswitch_unit,
    unit_text,
)

CONTROLLER_FILE: Final = "controller.toml"
UNITS: Final = "systemd"


def open_certificates(request: DeploymentRequest) -> Certificates | None:
    """Return the deployment's certificates, None without TLS; makes the folder and the authority.

    Raises DeploymentError, CredentialsError.
    """
    try:
        request.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as exc:
        raise DeploymentError(f"cannot make {request.directory}: {exc.strerror}") from exc
    return None if request.is_insecure else Certificates(request.directory)


def check_unwritten(directory: Path) -> None:
    """Raise DeploymentError if a deployment was written there before."""
    if (directory / CONTROLLER_FILE).exists():
        raise DeploymentError(
            f"{directory} has a {CONTROLLER_FILE} already; to write it and the units again, give"
            " --replace: certificates stay, those of new hosts are added"
        )


def write_deployment(
    request: DeploymentRequest,
    config: ControllerConfig,
    certificates: Certificates | None,
    installed: Installation,
) -> list[Path]:
    """Write all files but those of the authority; return the units in the order of their start."""
    directory = request.directory
    (directory / CONTROLLER_FILE).write_text(controller_file(config), "utf-8")
    hosts = config.switches[0].hosts
    write_host_folders(directory, hosts, config.listen, certificates)
    write_operator_file(directory, config.listen, certificates)
    (directory / UNITS).mkdir(exist_ok=True)
    written: list[Path] = []
    for name, unit in _units(request, config, certificates, installed).items():
        written.append(directory / UNITS / name)
        written[-1].write_text(unit_text(unit, sees_homes=installed.is_in_a_home), "utf-8")
    return written


def give_to_caller(directory: Path) -> None:
    """Give the folder to the user who has called sudo: root is needed to find hosts, not to copy.

    systemd reads the files as root, whoever's they are.
    """
    user, group = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if os.geteuid() != 0 or not user.isdecimal() or not group.isdecimal():
        return
    for path in (directory, *directory.rglob("*")):
        os.chown(path, int(user), int(group), follow_symlinks=False)


def _units(
    request: DeploymentRequest,
    config: ControllerConfig,
    certificates: Certificates | None,
    installed: Installation,
) -> dict[str, ServiceUnit]:
    def folder(role: Role, name: str) -> Path | None:
        return None if certificates is None else certificates.folder(role, name)

    units: dict[str, ServiceUnit] = {}
    if request.cards:
        cards = {port: card.name for port, card in request.cards.items()}
        switch = folder(Role.SWITCH, request.switch.name)
        units[SOFTSWITCH_UNIT] = softswitch_unit(installed, cards, request.switch.address, switch)
    units[CONTROLLER_UNIT] = controller_unit(
        installed,
        request.directory / CONTROLLER_FILE,
        folder(Role.CONTROLLER, CONTROLLER_NAME),
        has_softswitch=bool(request.cards),
    )
    if request.has_server:
        address = config.listen.rpartition(":")[0]
        units[SERVER_UNIT] = server_unit(
            installed, address, SERVER_PORT, len(request.hosts), folder(Role.SERVER, SERVER_NAME)
        )
    return units
