# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""veth pairs whose one end a switch has, and packet sockets at the other."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path

from time_bound import wait_until


def ip(*words: str) -> None:
    """Run iproute2's `ip`."""
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def bring_up(*names: str) -> None:
    """Set both ends of a veth pair up, and wait until they carry frames.

    The end that is up first gets its carrier with the second. A thread of the kernel then replaces
    its queueing discipline "noop", which drops all frames, at some later moment.
    """
    for name in names:
        Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")
        ip("link", "set", name, "up")
    for name in names:
        wait_until(lambda name=name: _queueing_discipline(name) != "noop", name)


def _queueing_discipline(name: str) -> str:
    command = ["ip", "-json", "link", "show", "dev", name]
    shown = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(shown.stdout)[0]["qdisc"]


def packet_socket(interface: str) -> socket.socket:
    """Return a socket that hears what arrives at an interface, and nothing that leaves there."""
    host = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    host.setsockopt(263, 23, 1)  # SOL_PACKET, PACKET_IGNORE_OUTGOING
    host.bind((interface, 3))  # ETH_P_ALL only now: until then it would hear all interfaces
    host.settimeout(60)
    return host
