# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The `softswitch` command: its verbs are in softswitch/commands."""

from __future__ import annotations

import logging

import click

from .build import build
from .run import run
from .show import check, show
from .trace import trace

_MAIN_EXAMPLE = """\b
Examples:
  softswitch run --port 1=veth:s1-eth1 --port 2=veth:s1-eth2 --grpc 127.0.0.1:9559
  softswitch build p4src/build/*/switchfold_*.json
  softswitch show switchfold_narrow.json | less
"""


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=_MAIN_EXAMPLE)
@click.version_option(package_name="switchfold", prog_name="softswitch")
def main() -> None:
    """A P4 switch that compiles BMv2 JSON to native code."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")


for verb in (run, build, check, show, trace):
    main.add_command(verb)
