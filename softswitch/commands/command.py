# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The `softswitch` command: its verbs are in softswitch/commands."""

from __future__ import annotations

import importlib
import logging
from typing import Final

import click

from .loading import collect_again

VERBS: Final = {"build": "build", "check": "show", "run": "run", "show": "show", "trace": "trace"}
"""The verbs and their modules."""

_MAIN_EXAMPLE = """\b
Examples:
  softswitch run --port 1=veth:s1-eth1 --port 2=veth:s1-eth2 --credentials /etc/switchfold/s1
  softswitch build p4src/build/*/switchfold_*.json
  softswitch show switchfold_narrow.json | less
"""


class _Verbs(click.Group):
    """Imports the module of a verb only when it is used, because `run` needs no generator."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the verbs."""
        del ctx
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a verb; None if there is none of this name."""
        del ctx
        if cmd_name not in VERBS:
            return None
        verb = getattr(importlib.import_module(f".{VERBS[cmd_name]}", __package__), cmd_name)
        if cmd_name != "run":  # which loads more, and has a log of its own
            logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
            collect_again()
        return verb


@click.group(
    cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]}, epilog=_MAIN_EXAMPLE
)
@click.version_option(package_name="switchfold", prog_name="softswitch")
def main() -> None:
    """A P4 switch that compiles BMv2 JSON to native code."""
