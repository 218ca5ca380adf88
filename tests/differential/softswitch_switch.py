# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""softswitch in this process: P4Runtime over its server, packets through `Switch.process`."""

from __future__ import annotations

import contextlib
from pathlib import Path

from differential.case import Packet, Step
from differential.runtime_client import DEVICE_ID, RuntimeClient
from switchfold.softswitch.p4runtime.service.serve import serve
from switchfold.softswitch.switch.switch import Switch

DROP_PORT = 511


class Softswitch:
    """A softswitch that runs a program; it has every port, as BMv2 behind gRPC does."""

    name = "softswitch"

    def __init__(self, json: Path, p4info: Path) -> None:
        with contextlib.ExitStack() as stack:
            self._switch = stack.enter_context(Switch(device_id=DEVICE_ID))
            for port in range(DROP_PORT):
                if port != self._switch.cpu_port:
                    self._switch.ports.add(port, "mem")
            server = stack.enter_context(serve(self._switch, address="127.0.0.1:0"))
            self._client = RuntimeClient(server.address)
            stack.callback(self._client.close)
            self._client.push(json, p4info)
            self._resources = stack.pop_all()

    def take(self, step: Step) -> object:
        """Do one step; return its code, or the (port, frame) pairs that left, in order."""
        if isinstance(step, Packet):
            return self._switch.process(step.port, step.frame)
        return self._client.write(step.update)

    def counters(self) -> dict[str, tuple[int, int]]:
        """See RuntimeClient."""
        return self._client.counters()

    def close(self) -> None:
        """Close server and switch."""
        self._resources.close()
