# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The controller's file as `switchfold deploy init` writes it."""

from __future__ import annotations

import json
from typing import Final

from ..config import ControllerConfig, HostConfig, SwitchConfig

_HEAD: Final = """\
# A controller's configuration, as `switchfold deploy init` has written it. Change it at will; the
# controller reads it at its start. docs/operations.md lists all options.
"""
ETHERNET_OVERHEAD_BYTES: Final = 24
"""Check sequence, preamble and gap, which an Ethernet link carries per frame."""


def controller_file(config: ControllerConfig) -> str:
    """Return the text of the TOML file: the fabric, and the options that a deployment sets."""
    lines = [_HEAD, f"listen = {_quote(config.listen)}"]
    if config.insecure:
        lines.append("insecure = true  # whoever reaches this address is let in")
    lines.append(f"variant = {_quote(config.variant)}")
    lines.append(f"frame_overhead_bytes = {config.frame_overhead_bytes}  # of Ethernet")
    for switch in config.switches:
        lines += ["", *_switch_lines(switch)]
        for host in switch.hosts:
            lines += ["", *_host_lines(host)]
    return "\n".join(lines) + "\n"


def _switch_lines(switch: SwitchConfig) -> list[str]:
    return [
        "[[switch]]",
        f"name = {_quote(switch.name)}",
        f"address = {_quote(switch.address)}  # P4Runtime",
        f"device_id = {switch.device_id}",
        f"service_address = {_quote(switch.service_address)}"
        "  # where workers send to; give it to no host, and keep it out of DHCP pools",
        f"service_mac = {_quote(switch.service_mac)}",
    ]


def _host_lines(host: HostConfig) -> list[str]:
    lines = [
        "[[switch.host]]",
        f"name = {_quote(host.name)}",
        f"port = {host.port}",
        f"address = {_quote(host.address)}",
        f"mac = {_quote(host.mac)}",
    ]
    if host.rate_bits_per_s is not None:
        lines.append(f"rate_bits_per_s = {host.rate_bits_per_s}")
    return lines


def _quote(text: str) -> str:
    """Return a TOML string; JSON's are a subset."""
    return json.dumps(text)
