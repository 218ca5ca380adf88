# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold top`: jobs, trees, links and switches, with what they do now."""

from __future__ import annotations

import time
from typing import Final

import click

from ...api.operator_client import OperatorClient
from ..activity.looks import INTERVAL_S, look_at
from ..activity.window import ActivityWindow
from ..output import controller_option, json_option, print_json, print_table
from .text import (
    JOB_COLUMNS,
    LINK_COLUMNS,
    SLOT_COLUMNS,
    SWITCH_COLUMNS,
    TREE_COLUMNS,
    TopScreen,
)

_REFRESH_S: Final = 1.0
_KEPT: Final = 25
"""Looks at each job that `--watch` keeps."""


@click.command(epilog="Exit codes: 0 done, 1 error or refused, 3 no controller.")
@click.option("--watch", "is_watched", is_flag=True, help="Refresh each second, until Ctrl-C.")
@controller_option
@json_option
def top(is_watched: bool, client: OperatorClient, is_json: bool) -> None:
    """Show what jobs, trees, links and switches do, over the last second, or 5 s with --watch.

    It looks 5 times a second at up to 256 slots of each tree, on each of its switches. A slot waits
    while its round has some contributions but not all; "hold" is how long rounds do so at the root,
    on average. "last worker" is the one for which most rounds waited alone, and in which share of
    the looks; for single slots, it is in "Slots that wait now". "idle" is the share of the time
    without any round. BMv2 does not show its slots.

    \b
    Examples:
      switchfold top
      switchfold top --watch
      switchfold top --json | python -m json.tool
    """
    windows: dict[str, ActivityWindow] = {}
    try:
        while True:
            screen = _look(client, windows)
            if is_json:
                print_json(screen.as_dict())
            else:
                if is_watched:
                    click.clear()
                _print(screen, client.address)
            if not is_watched:
                return
    except KeyboardInterrupt:
        if not is_watched:
            raise


def _look(client: OperatorClient, windows: dict[str, ActivityWindow]) -> TopScreen:
    """Look at all running jobs for a while."""
    until_s = time.monotonic() + _REFRESH_S
    while True:
        began_s = time.monotonic()
        jobs = client.list_jobs()
        look_at(client, windows, (j.name for j in jobs if j.state == "running"), most=_KEPT)
        if began_s >= until_s or not windows:
            break
        time.sleep(max(0.0, began_s + INTERVAL_S - time.monotonic()))
    if not windows:
        time.sleep(max(0.0, until_s - time.monotonic()))
    return TopScreen(
        jobs=jobs,
        switches=client.list_switches(),
        links=client.list_links(),
        windows=windows,
    )


def _print(screen: TopScreen, address: str) -> None:
    if not screen.jobs:
        click.echo(f"no live jobs at {address}")
    else:
        print_table(f"Jobs at {address}", JOB_COLUMNS, screen.job_rows())
    for title, columns, rows in (
        ("Trees", TREE_COLUMNS, list(screen.tree_rows())),
        ("Slots that wait now", SLOT_COLUMNS, screen.slot_rows()),
        ("Links of trees, the busiest first", LINK_COLUMNS, screen.link_rows()),
        ("Switches", SWITCH_COLUMNS, list(screen.switch_rows())),
    ):
        if rows:
            print_table(title, columns, rows)
    for error in screen.errors():
        click.echo(f"not read: {error}")
