# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a process tells the service manager that started it: systemd's protocol of sd_notify(3).

NOTIFY_SOCKET   Unix datagram socket, "@..." in the abstract namespace; unset: nobody listens
WATCHDOG_USEC   the process must say so often, in microseconds, that it is alive
WATCHDOG_PID    the process of which that is expected
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
from collections.abc import Callable, Generator, Mapping
from typing import Final, final

_LOGGER = logging.getLogger(__name__)
_SEND_S: Final = 1.0
"""How long a message waits for a service manager that does not read."""
_SIGNS_PER_LIMIT: Final = 3
"""A process says so often that it is alive before its time is over: two may come late."""


@final
class ServiceManager:
    """The process's end of the protocol; without a service manager, nothing is sent."""

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        """Read the environment."""
        given = os.environ if variables is None else variables
        self._address = given.get("NOTIFY_SOCKET", "")
        if self._address.startswith("@"):
            self._address = f"\0{self._address[1:]}"
        limit, process = given.get("WATCHDOG_USEC", ""), given.get("WATCHDOG_PID", "")
        is_meant = process in ("", str(os.getpid()))
        is_watched = self._address != "" and is_meant and limit.isdecimal() and int(limit) > 0
        self.interval_s = int(limit) / 1e6 / _SIGNS_PER_LIMIT if is_watched else None
        """How often to call `alive`; None: nobody expects it."""

    def ready(self, status: str) -> None:
        """Say that the process serves; `status` is what `systemctl status` shows."""
        self._tell(f"READY=1\nSTATUS={status}")

    def alive(self) -> None:
        """Say that the process does its work."""
        self._tell("WATCHDOG=1")

    def stopping(self) -> None:
        """Say that the process is about to end."""
        self._tell("STOPPING=1")

    @contextlib.contextmanager
    def watching(self, look: Callable[[], object]) -> Generator[None]:
        """Say from a thread that the process is alive, as often as expected and after each `look`.

        `look` does what a process cannot do that hangs, in its own time; if it raises, the process
        has given no sign. At the block's end, the thread ends.
        """
        interval_s = self.interval_s
        if interval_s is None:
            yield
            return
        is_over = threading.Event()

        def run() -> None:
            while not is_over.wait(interval_s):
                try:
                    look()
                except Exception:  # the service manager hears of it: no sign of life comes
                    _LOGGER.exception("no sign of life: what shows it has failed")
                else:
                    self.alive()

        thread = threading.Thread(target=run, name="watchdog", daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def _tell(self, text: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.settimeout(_SEND_S)
                sock.connect(self._address)  # else it would poll a socket that is always writable
                sock.send(text.encode())
        except OSError as exc:
            _LOGGER.warning("the service manager is not told %r: %s", text, exc)
