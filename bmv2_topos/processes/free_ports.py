# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Ports of loopback that stay free until they are bound, however many testbeds start at once."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import Final

from ..errors import PortTakenError

_PORTS: Final = range(10_240, 32_000)
"""Below the range from which the kernel itself chooses ports."""


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM, address: str = "127.0.0.1") -> int:
    """Return a free port that this function gives to no other process.

    It stays reserved as long as this process lives. Raises PortTakenError when none is left.
    """
    folder = Path(tempfile.gettempdir()) / f"switchfold-ports-{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    for port in random.sample(_PORTS, len(_PORTS)):
        reservation = os.open(folder / str(port), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(reservation, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket(socket.AF_INET, kind) as probe:
                probe.bind((address, port))
        except OSError:  # another process has it
            os.close(reservation)
            continue
        return port  # the lock stays until this process ends
    raise PortTakenError(
        f"no port of {address} from {_PORTS.start} to {_PORTS.stop - 1} is free: end processes "
        "that hold them"
    )
