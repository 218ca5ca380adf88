# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Certificates of a testbed's processes, in folders that only the testbed's owner can read.

Switches and those who program them have an authority of their own: BMv2 asks only whether its
authority has signed a caller's certificate, and not what the certificate is for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from ...hostlib.credentials import Credentials, Role
from ...hostlib.credentials.authority import CertificateAuthority
from ..config import OPERATOR_CREDENTIALS, SWITCH_OPERATOR_CREDENTIALS

_ISSUED: Final = Path(OPERATOR_CREDENTIALS).parent
_SWITCHES_ISSUED: Final = Path(SWITCH_OPERATOR_CREDENTIALS).parent
_OPERATOR: Final = Path(OPERATOR_CREDENTIALS).name
_CONTROLLER: Final = "testbed.controller"
"""No switch's own certificate has this name unless a user calls a switch so."""
_SWITCH_ADDRESS: Final = "localhost"
"""What gRPC clients without a name of their own expect behind a Unix socket."""


def make_certificates(
    run_directory: Path, switches: Iterable[str], *, has_controller: bool = True
) -> None:
    """Make the authorities of a new testbed and the certificates of all its processes."""
    if has_controller:
        authority = CertificateAuthority.create(run_directory / _ISSUED.parent)
        for role in (Role.CONTROLLER, Role.WORKER, Role.SERVER, Role.READ_ONLY):
            authority.issue(role, str(role))
        authority.issue(Role.OPERATOR, _OPERATOR)
    authority = CertificateAuthority.create(run_directory / _SWITCHES_ISSUED.parent)
    authority.issue(Role.CONTROLLER, _CONTROLLER)
    authority.issue(Role.OPERATOR, _OPERATOR)
    for name in switches:
        authority.issue(Role.SWITCH, name, addresses=(_SWITCH_ADDRESS,))


def role_folder(run_directory: Path, role: Role) -> Path:
    """Return the folder for a process that takes part in jobs, or looks at them."""
    return run_directory / _ISSUED / (_OPERATOR if role is Role.OPERATOR else str(role))


def worker_folder(run_directory: Path) -> Path | None:
    """Return the workers' folder, None in a testbed without a controller of its own."""
    folder = role_folder(run_directory, Role.WORKER)
    return folder if folder.is_dir() else None


def switch_folder(run_directory: Path, name: str) -> Path:
    """Return a switch's folder."""
    return run_directory / _SWITCHES_ISSUED / name


def programming_folder(run_directory: Path) -> Path:
    """Return the folder with which the controller calls switches."""
    return run_directory / _SWITCHES_ISSUED / _CONTROLLER


def switch_operator(run_directory: Path) -> Credentials:
    """Return the credentials with which an operator calls switches."""
    return Credentials(run_directory / SWITCH_OPERATOR_CREDENTIALS)


def bmv2_options(folder: Path) -> Mapping[str, str]:
    """Return BMv2's options for these credentials; it takes no list of revoked certificates."""
    own = Credentials(folder)
    return {
        "--grpc-server-cacert": str(own.authority),
        "--grpc-server-cert": str(own.certificate),
        "--grpc-server-key": str(own.key),
    }
