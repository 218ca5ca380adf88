# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A testbed's controller with options of transfers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from switchfold.bmv2_topos import Testbed
from switchfold.bmv2_topos.processes import daemons
from switchfold.bmv2_topos.processes.tokens import controller_environment

_READY_S: Final = 120.0


def restart_controller(testbed: Testbed, transfers: Mapping[str, str]) -> None:
    """Start the controller again; `transfers`: TOML values of its table [transfers]."""
    testbed.stop_controller()
    config = testbed.run_directory / "controller.toml"
    lines = [f"{name} = {value}" for name, value in transfers.items()]
    config.write_text("\n".join([config.read_text(), "[transfers]", *lines, ""]))
    testbed.start(
        "controller",
        daemons.controller_command(config),
        environment=controller_environment(testbed.run_directory),
        ready_timeout_s=_READY_S,
    )
