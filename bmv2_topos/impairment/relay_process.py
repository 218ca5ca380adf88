# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The process that relays the impaired links of a testbed, and the requests that it serves.

One process per testbed, started with the first impairment. A request is a line of JSON on its
socket, which lies in the testbed's directory; so is the answer.

Usage: relay_process SOCKET READY_FD
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Any, Final

from ...softswitch.errors import SoftswitchError
from ...softswitch.switch.impairments import Impairments, parse_settings
from ..errors import ImpairmentError, TestbedError
from .relay import LinkDirection, Relay

_REQUEST_TIMEOUT_S: Final = 10.0


class RelaySet:
    """The relays of a testbed by the names of their directions."""

    def __init__(self) -> None:
        """Without relays."""
        self._relays: dict[str, Relay] = {}

    def impair(self, directions: list[LinkDirection], impairments: Impairments) -> None:
        """Set the impairments of all these directions, or of none if an error is raised."""
        made: list[Relay] = []
        try:
            for direction in directions:
                if direction.name not in self._relays:
                    made.append(Relay(direction, impairments))
            for relay in made:
                relay.attach()
        except BaseException:
            for relay in made:
                relay.close()
            raise
        for direction in directions:
            if relay := self._relays.get(direction.name):
                relay.set(impairments)
        self._relays.update((relay.direction.name, relay) for relay in made)

    def clear(self, directions: list[LinkDirection] | None = None) -> list[dict[str, Any]]:
        """Take the impairments off these directions, or off all; return what is left to show."""
        names = [each.name for each in directions] if directions is not None else list(self._relays)
        shown: list[dict[str, Any]] = []
        for name in names:
            if relay := self._relays.pop(name, None):
                shown.append(_shown(relay, relay.close()))
        return shown

    def show(self) -> list[dict[str, Any]]:
        """Return settings and counters of every impaired direction."""
        return [_shown(relay, relay.counters()) for relay in self._relays.values()]

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what a request asks for."""
        named = request.get("directions")
        directions = None if named is None else [LinkDirection(**each) for each in named]
        try:
            if request["verb"] == "impair":
                assert directions is not None
                self.impair(directions, parse_settings(request["settings"]))
                return {"shown": self.show()}
            return {"shown": self.clear(directions) if request["verb"] == "clear" else self.show()}
        except (TestbedError, SoftswitchError, OSError) as exc:
            return {"error": str(exc)}


def _shown(relay: Relay, counters: dict[str, int]) -> dict[str, Any]:
    direction = relay.direction
    return {
        "sender": direction.sender,
        "receiver": direction.receiver,
        "settings": relay.impairments.describe(),
        "counters": counters,
    }


def ask(path: Path, request: dict[str, Any], *, timeout_s: float) -> list[dict[str, Any]]:
    """Send a request to the process; raises ImpairmentError with its reason if it refuses."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        connection.connect(str(path))
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile("rb") as lines:
            answer = json.loads(lines.readline() or "{}")
    if "shown" not in answer:
        ended = f"the process that serves {path} ended during the request: its log says why"
        raise ImpairmentError(answer.get("error", ended))
    return answer["shown"]


def serve(path: Path, ready_fd: int) -> None:
    """Serve requests until SIGTERM; the links then carry frames as if nothing had been set."""
    relays = RelaySet()
    path.unlink(missing_ok=True)
    ended, waker = socket.socketpair()
    waker.setblocking(False)
    signal.signal(signal.SIGTERM, _wake_up)
    signal.set_wakeup_fd(waker.fileno())
    with ended, waker, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()
        os.write(ready_fd, b"1")
        os.close(ready_fd)
        while ended not in select.select([listener, ended], [], [])[0]:
            connection, _ = listener.accept()
            with connection:
                _serve_one(relays, connection)
        signal.set_wakeup_fd(-1)
    relays.clear()


def _serve_one(relays: RelaySet, connection: socket.socket) -> None:
    connection.settimeout(_REQUEST_TIMEOUT_S)
    try:
        with connection.makefile("rb") as lines:
            line = lines.readline()
        if line:
            connection.sendall(json.dumps(relays.answer(json.loads(line))).encode() + b"\n")
    except OSError as exc:  # the caller has gone
        print(f"request of a caller that has gone: {exc}", file=sys.stderr)


def _wake_up(*_: object) -> None:
    """Leave it to the descriptor that wakes the loop."""


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
