# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Options that let several simple_switch_grpc run at the same time."""

from __future__ import annotations

import subprocess

from switchfold.bmv2_topos.processes.free_ports import free_port

BINARY = "simple_switch_grpc"


def free_tcp_port() -> int:
    """Return a TCP port of 127.0.0.1 that stays free until a switch listens there."""
    return free_port()


def thrift_options() -> list[str]:
    """Return the option for a Thrift port of its own, if the build has Thrift.

    Without it such a build listens on one fixed port.
    """
    usage = subprocess.run([BINARY, "--help"], capture_output=True, check=False, timeout=120)
    if b"--thrift-port" not in usage.stdout + usage.stderr:
        return []
    return ["--thrift-port", str(free_tcp_port())]
