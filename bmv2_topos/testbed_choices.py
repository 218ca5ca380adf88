# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which choices of a testbed go together."""

from __future__ import annotations

from ..softswitch.switch.impairments import parse_settings
from .processes.daemons import Mode, Shaping, Target
from .topology.topology import Topology


def check_choices(  # noqa: PLR0913 - the choices are those of a testbed
    topology: Topology,
    *,
    target: Target,
    mode: Mode,
    shaping: Shaping,
    impairments: str,
    has_switch: bool,
    has_bridge: bool,
    offloads: bool,
    tcp_ecn: bool,
) -> None:
    """Raise ValueError for choices that do not go together; it says what to choose instead."""
    if mode == "udp" and target == "bmv2":
        raise ValueError("target bmv2 has no UDP ports; choose mode veth or target softswitch")
    if mode == "udp" and has_bridge:
        raise ValueError("mode udp has no interfaces to bridge; choose mode veth")
    if has_bridge and len(topology.switches) != 1:
        raise ValueError("bridges have no loop protection here; they need exactly one switch")
    if shaping == "switch" and (target == "bmv2" or has_bridge or not has_switch):
        raise ValueError("only a softswitch limits rates itself; choose shaping='links'")
    if impairments:
        if target == "bmv2":
            raise ValueError("only a softswitch impairs links; choose target softswitch")
        parse_settings(impairments)
    if offloads and (mode == "udp" or (target == "bmv2" and not has_bridge)):
        raise ValueError(
            "bmv2 and mode udp take no frames longer than the MTU; choose a softswitch in mode veth"
        )
    if mode == "udp" and tcp_ecn:
        raise ValueError("mode udp has no TCP of its own to set; choose mode veth")
