# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What each machine of a deployment gets: its certificate, and its variables for a shell."""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ...hostlib.credentials import Role
from ...hostlib.credentials.authority import CertificateAuthority
from ..config import HostConfig

AUTHORITY: Final = "authority"
HOSTS: Final = "hosts"
OPERATOR_FILE: Final = "operator.env"
WORKER_FILE: Final = "worker.env"
WORKER_FOLDER: Final = "switchfold"
"""In the home of whoever trains."""
CONTROLLER_NAME: Final = "controller"
OPERATOR_NAME: Final = "operator"
SERVER_NAME: Final = "server"
_RENEWED_BEFORE: Final = datetime.timedelta(days=30)
_MASTER_PORT: Final = 29500
"""Where torchrun's ranks meet by default."""


class Certificates:
    """The authority of a deployment, and what it has issued."""

    def __init__(self, directory: Path) -> None:
        """Open the authority in `directory`, or make one there; raises CredentialsError."""
        folder = directory / AUTHORITY
        if (folder / "ca.pem").exists():
            self._authority = CertificateAuthority(folder)
        else:
            self._authority = CertificateAuthority.create(folder)

    def folder(self, role: Role, name: str) -> Path:
        """Return the folder of one process's certificate.

        It is issued if there is none, and renewed if it ends soon. Raises CredentialsError.
        """
        soon = datetime.datetime.now(datetime.UTC) + _RENEWED_BEFORE
        for issued in self._authority.list_issued():
            if issued.name == name and issued.role is role and not issued.is_revoked:
                if issued.not_after > soon:
                    return self._authority.folder / "issued" / name
                return self._authority.renew(name).folder
        return self._authority.issue(role, name).folder


def write_host_folders(
    directory: Path, hosts: Sequence[HostConfig], controller: str, certificates: Certificates | None
) -> None:
    """Write the folder of each host: what its workers need, to be copied to its trainer's home."""
    for rank, host in enumerate(hosts):
        folder = directory / HOSTS / host.name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if certificates is not None:
            for file in certificates.folder(Role.WORKER, host.name).iterdir():
                shutil.copy2(file, folder)
        text = _worker_text(hosts, rank, controller, is_secured=certificates is not None)
        (folder / WORKER_FILE).write_text(text, "utf-8")


def write_operator_file(
    directory: Path, controller: str, certificates: Certificates | None
) -> None:
    """Write the variables with which operators' commands on this machine call the controller."""
    lines = [
        "# For operators' commands on this machine, in a shell:",
        f"#   . {directory / OPERATOR_FILE}",
        f"export SWITCHFOLD_CONTROLLER={controller}",
        f"export SWITCHFOLD_CREDENTIALS={certificates.folder(Role.OPERATOR, OPERATOR_NAME)}"
        if certificates is not None
        else "export SWITCHFOLD_INSECURE=1",
    ]
    (directory / OPERATOR_FILE).write_text("\n".join(lines) + "\n", "utf-8")


def _worker_text(
    hosts: Sequence[HostConfig], rank: int, controller: str, *, is_secured: bool
) -> str:
    lines = [
        f"# For a worker on host {hosts[rank].name}, in a shell:",
        f"#   . ~/{WORKER_FOLDER}/{WORKER_FILE}",
        f"export SWITCHFOLD_CONTROLLER={controller}",
        f"export SWITCHFOLD_ADDRESS={hosts[rank].address}",
        f"export SWITCHFOLD_CREDENTIALS=$HOME/{WORKER_FOLDER}"
        if is_secured
        else "export SWITCHFOLD_INSECURE=1",
        "# torchrun's options: a process on each host, all of which meet at the first one. Its",
        "# command line takes precedence. The job of the controller is called as the run.",
        f"export PET_NNODES={len(hosts)}",
        f"export PET_NODE_RANK={rank}",
        "export PET_NPROC_PER_NODE=1",
        f"export PET_MASTER_ADDR={hosts[0].address}",
        f"export PET_MASTER_PORT={_MASTER_PORT}",
        "export PET_RDZV_ID=train",
    ]
    return "\n".join(lines) + "\n"
