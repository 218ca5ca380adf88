# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""TCP's congestion controls: which ones this kernel has, and how hosts of a fabric use one."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Final

from benchmarks.transport.contenders import TransportContender

_SETTINGS: Final = Path("/proc/sys/net/ipv4")


def default_control() -> str:
    """Return the congestion control of connections that ask for none."""
    return (_SETTINGS / "tcp_congestion_control").read_text().strip()


def why_skipped(contender: TransportContender) -> str:
    """Return why a contender cannot be measured, or tells nothing; "": it can."""
    name = contender.congestion_control
    if not name:
        return ""
    if name == default_control():
        return f"{name} is what TCP uses here by default"
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
        try:
            # Loads the module, if there is one.
            tried.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except OSError as exc:
            known = (_SETTINGS / "tcp_available_congestion_control").read_text().split()
            return (
                f"this kernel does not let TCP use {name}: {exc.strerror}; it has"
                f" {', '.join(known)}. Load the module tcp_{name}, where there is one"
            )
    return ""
