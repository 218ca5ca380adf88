# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Options of `testbed up` by which its switches write traces, captures and rates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ..processes.debugging import SwitchDebugging

F = TypeVar("F", bound=Callable[..., Any])
_FOLDER = click.Path(path_type=Path, file_okay=False)
_OPTIONS = (
    click.option(
        "--trace",
        "trace_dir",
        type=_FOLDER,
        metavar="DIRECTORY",
        help="Each switch writes here, in NAME.trace, every step of every packet (softswitch).",
    ),
    click.option(
        "--trace-count",
        type=click.IntRange(min=1),
        help="With --trace: the first packets of each switch only.",
    ),
    click.option(
        "--live",
        "live_dir",
        type=_FOLDER,
        metavar="DIRECTORY",
        help="Each switch writes here, in NAME.live, the rates of ports, tables and entries once a"
        " second (softswitch); 'switchfold testbed live NAME' shows them.",
    ),
    click.option(
        "--pcap-dir",
        type=_FOLDER,
        metavar="DIRECTORY",
        help="Each switch writes a capture of each port into the folder NAME here.",
    ),
)


def with_debugging(command: F) -> F:
    """Give a command the options that `described_debugging` takes out."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def described_debugging(options: dict[str, Any]) -> SwitchDebugging:
    """Take the options of `with_debugging` out of `options`; ValueError if they do not fit."""
    names = ("trace_dir", "trace_count", "live_dir", "pcap_dir")
    return SwitchDebugging(**{name: options.pop(name) for name in names})
