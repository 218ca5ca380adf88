# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold shell`: p4runtime-shell in an environment of its own, on one switch."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import click

from ...hostlib.credentials import Credentials
from ..api.endpoint import connect
from ..api.operator_client import OperatorClient
from ..config import check_endpoint
from ..errors import SwitchUnreachableError, ToolError
from .output import controller_option, switch_credentials_option

_PACKAGE = "p4runtime-shell"
_INSTALL_TIMEOUT_S = 600
_CONNECT_TIMEOUT_S = 3.0


@click.command(epilog="Exit codes: those of the shell; 1 no shell or no switch, 3 no controller.")
@click.argument("name", required=False)
@click.option(
    "--address", "switch_address", metavar="HOST:PORT", help="Address of the switch, without NAME."
)
@click.option(
    "--device-id", type=int, default=1, show_default=True, help="Device id, with --address."
)
@click.option(
    "--election-id",
    type=int,
    default=1,
    show_default=True,
    help="Below the controller's term, at least 10, the shell can only read. Above, it takes the"
    " switch over.",
)
@switch_credentials_option
@controller_option
def shell(
    name: str | None,
    *,
    switch_address: str | None,
    device_id: int,
    election_id: int,
    switch_credentials: Path | None,
    client: OperatorClient,
) -> None:
    """Open p4runtime-shell on switch NAME, or on the switch at --address.

    p4runtime-shell needs an old protobuf, so it gets an environment of its own below
    $XDG_DATA_HOME/switchfold (made on first use, needs a package index).

    \b
    Examples:
      switchfold shell s1
      switchfold shell --address 127.0.0.1:9559
    """  # fmt: skip
    if switch_address is None:
        switches = client.list_switches()
        found = [s for s in switches if name in (None, s.name)]
        if len(found) != 1:
            known = ", ".join(s.name for s in switches)
            raise click.UsageError(f"choose one switch (known: {known})")
        switch_address, device_id = found[0].address, found[0].device_id
    check_endpoint("--address", switch_address)
    _check_reachable(switch_address)
    folder = client.folder_for_switch(switch_address, switch_credentials)
    python = _environment() / "bin" / "python"
    os.execve(  # noqa: S606
        python,
        [
            str(python), "-m", "p4runtime_sh", "--grpc-addr", switch_address,
            "--device-id", str(device_id), "--election-id", f"0,{election_id}",
            *_ssl_options(folder),
        ],
        {**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"},
    )  # fmt: skip


def _ssl_options(folder: Path | None) -> list[str]:
    """Return the shell's options for a switch with TLS, whose certificate must name its address."""
    if folder is None:
        return []
    own = Credentials(folder)
    own.check()
    return [
        *("--ssl", "--cacert", str(own.authority)),
        *("--cert", str(own.certificate), "--private-key", str(own.key)),
    ]


def _check_reachable(address: str) -> None:
    try:
        connect(address, _CONNECT_TIMEOUT_S)
    except OSError as exc:
        raise SwitchUnreachableError(
            f"no switch answers at {address} ({exc.strerror or exc}); is it running?"
        ) from exc


def _environment() -> Path:
    """Return the shell's virtual environment; make it on first use."""
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    folder = data / "switchfold" / "p4runtime-shell"
    mark = folder / "complete"
    if mark.exists():
        return folder
    click.echo(f"making an environment for {_PACKAGE} in {folder}", err=True)
    try:
        venv.create(folder, clear=True, with_pip=True)
        command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", _PACKAGE]
        subprocess.run(
            command, check=True, timeout=_INSTALL_TIMEOUT_S, stdout=sys.stderr, text=True
        )
        mark.touch()
    except (OSError, subprocess.SubprocessError) as exc:
        raise ToolError(
            f"cannot install {_PACKAGE} in {folder}: {exc}; check the network and the package "
            "index, or install python3-venv"
        ) from exc
    return folder
