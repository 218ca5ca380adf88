# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Other traffic: two hosts send to each other by TCP, as fast as it lets them, until SIGTERM."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from typing import Final

PORT: Final = 47_300
_PIECE: Final = bytes(1 << 16)


def _discard(connection: socket.socket) -> None:
    with connection:
        while connection.recv(len(_PIECE)):
            pass


def _listen(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_discard, args=(connection,), daemon=True).start()


def _send(other: str) -> None:
    with socket.create_connection((other, PORT), timeout=60) as connection:
        connection.settimeout(None)
        while True:
            connection.sendall(_PIECE)


def main(arguments: list[str]) -> None:
    """Listen at an address; with a second one, send to it instead."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    address, other, ready = arguments
    if other:
        threading.Thread(target=_send, args=(other,), daemon=True).start()
    else:
        listener = socket.create_server((address, PORT))
        threading.Thread(target=_listen, args=(listener,), daemon=True).start()
    os.write(int(ready), b"\n")
    os.close(int(ready))
    signal.sigwait({signal.SIGTERM})


if __name__ == "__main__":
    main(sys.argv[1:])
