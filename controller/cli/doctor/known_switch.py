# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of the switches that a controller has named, some of which only it can call."""

from __future__ import annotations

from ...api.endpoint import is_local, is_this_host
from ...api.operator_client import OperatorClient
from ...config import SwitchConfig
from .check import Check, ok
from .system import check_switch


def check_known_switch(client: OperatorClient, config: SwitchConfig, program: str) -> list[Check]:
    """Check a switch of the controller, unless its address leads nowhere from this host.

    A switch at 127.0.0.1 or at a Unix socket is on the controller's host; on a worker's, the same
    address is another one.
    """
    if is_local(config.address) and not is_this_host(client.address):
        text = (
            f"{config.address} is on the controller's host, {client.address}: not called from"
            " here; the controller's own verdict follows"
        )
        return [ok(f"switch {config.name}", text)]
    return check_switch(client, config, program)
