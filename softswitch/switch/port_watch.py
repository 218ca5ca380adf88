# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Watches the interfaces of veth ports: warns if one vanishes, reopens its port if it returns."""

from __future__ import annotations

import logging
import socket
import threading

from ..errors import PortError, SwitchStateError
from .port_spec import parse_port_spec
from .switch import Switch

INTERVAL_S = 0.5
GONE = 0
logger = logging.getLogger(__name__)


class PortWatch:
    """A thread that watches the veth ports that a switch has at the start."""

    def __init__(self, switch: Switch, *, interval_s: float = INTERVAL_S) -> None:
        self._switch = switch
        self._interval_s = interval_s
        specs = {number: parse_port_spec(text) for number, text in switch.ports.specs.items()}
        self._texts = switch.ports.specs
        self._names = {number: spec.interface for number, spec in specs.items() if spec.interface}
        self._indices = {number: _index(name) for number, name in self._names.items()}
        self._complaints: dict[int, str] = {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="softswitch-ports", daemon=True)

    def start(self) -> None:
        """Begin to watch; does nothing for a switch without veth ports."""
        if self._names:
            self._thread.start()

    def close(self) -> None:
        """Stop watching; must be called before the switch is closed."""
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(self._interval_s):
            for number, name in self._names.items():
                if _index(name) != self._indices[number]:
                    self._follow(number, name)

    def _follow(self, number: int, name: str) -> None:
        what = f"port {number} ({self._texts[number]})"
        index = _index(name)
        if self._indices[number] != GONE:
            logger.warning(
                "%s: the interface has vanished; packets for it are dropped until an interface of "
                "this name appears again",
                what,
            )
            self._indices[number] = GONE
        if index == GONE:
            return
        try:
            if not self._switch.ports.reopen(number):
                return  # the data plane has not noticed yet that it vanished
        except SwitchStateError:
            return
        except PortError as exc:
            if self._complaints.get(number) != str(exc):
                logger.warning("%s", exc)
                self._complaints[number] = str(exc)
            return
        self._complaints.pop(number, None)
        self._indices[number] = index
        logger.info("%s: the interface is back", what)


def _index(name: str) -> int:
    try:
        return socket.if_nametoindex(name)
    except OSError:
        return GONE
