# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Twin of ipv4_forward.p4: ordinary IPv4 traffic between hosts, also of different switches."""

from __future__ import annotations

from collections.abc import Iterable

from finsy import Action, Match, P4TableEntry

from ..fabric.routes import Route

TABLES = ("ipv4_forward",)


def table_entries(routes: Iterable[Route]) -> list[P4TableEntry]:
    """Return one entry per host: the port, and the MAC address of the host or next switch."""
    return [
        P4TableEntry(
            "ipv4_forward",
            match=Match(dst_address=f"{route.address}/32"),
            action=Action("forward", port=route.port, mac=route.mac),
        )
        for route in routes
    ]
