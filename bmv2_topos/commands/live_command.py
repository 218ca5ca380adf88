# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold testbed live`: the rates that a switch of a running testbed writes."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Final

import click

from .. import state
from ..errors import TestbedError
from ..processes.debugging import of_switch
from .command_errors import errors_shown

_INTERVAL_S: Final = 1.0
_OPTION: Final = "--live-file"


@click.command()
@click.option("--name", default="main", show_default=True, help="Name of the testbed.")
@click.argument("switch", required=False)
def live(*, name: str, switch: str | None) -> None:
    """Show rates of ports, tables and entries of SWITCH, by default the first one, until Ctrl-C.

    The testbed must be up with --live. Where the output is no terminal, print them once.

    \b
    Examples:
      switchfold testbed live s2

    \b
    Exit codes: 0 shown, 1 no such switch, or it writes no rates, 2 wrong use.
    """  # fmt: skip
    with errors_shown():
        path = live_file(name, switch)
        if not sys.stdout.isatty():
            click.echo(_text(path), nl=False)
            return
        ended = threading.Event()
        while not ended.wait(_INTERVAL_S):
            shown = _text(path)
            click.clear()
            click.echo(f"{shown}\nCtrl-C ends")


def live_file(name: str, switch: str | None) -> Path:
    """Return the file that a switch of a testbed writes its rates into; TestbedError if none."""
    record = state.load_record(name)
    chosen = record.topology.switch_named(switch) if switch else record.topology.switches[0]
    words = of_switch(record.switch_options, chosen.name)
    if _OPTION not in words:
        raise TestbedError(
            f"the switches of testbed {name} write no rates: 'switchfold testbed down', then up"
            " again with --live DIRECTORY"
        )
    return Path(words[words.index(_OPTION) + 1])


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as exc:
        raise TestbedError(f"cannot read {path}: {exc.strerror}; is the switch running?") from exc
