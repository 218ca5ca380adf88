# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold dissector`: Switchfold packets field by field in Wireshark and tshark."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import click

from ...errors import ToolError

FILE = "switchfold.lua"
PLUGINS = Path(".local/lib/wireshark/plugins")
"""Wireshark's folder of personal plugins, in the home folder."""


@click.command(epilog="Exit codes: 0 done, 1 the file cannot be written.")
@click.option(
    "--install",
    is_flag=True,
    help=f"Write it to ~/{PLUGINS}/{FILE}, where Wireshark and tshark find it.",
)
def dissector(install: bool) -> None:
    """Print the dissector for Wireshark, or install it for this user.

    \b
    Examples:
      switchfold dissector --install
      tshark -r port1.pcap -Y 'switchfold.round == 5'
      switchfold dissector >switchfold.lua
      tshark -X lua_script:switchfold.lua -r port1.pcap
    """
    text = resources.files("switchfold.hostlib.captures").joinpath(FILE).read_text("utf-8")
    if not install:
        click.echo(text, nl=False)
        return
    file = Path.home() / PLUGINS / FILE
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    except OSError as error:
        raise ToolError(
            f"cannot write {file}: {error.strerror}; print the dissector to another file, and name"
            f" that: switchfold dissector >{FILE}; tshark -X lua_script:{FILE} ..."
        ) from error
    click.echo(f"{file}: Wireshark and tshark load it when they start")
