# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Twin of ipv4_forward.p4: ordinary IPv4 traffic between the configured hosts."""

from __future__ import annotations

from finsy import Action, Match, P4TableEntry

from controller.config import SwitchConfig

TABLES = ("ipv4_forward",)


def table_entries(config: SwitchConfig) -> list[P4TableEntry]:
    """Return one host route per configured host."""
    return [
        P4TableEntry(
            "ipv4_forward",
            match=Match(dst_address=f"{host.address}/32"),
            action=Action("forward", port=host.port, mac=host.mac),
        )
        for host in config.hosts
    ]
