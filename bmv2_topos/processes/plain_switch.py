# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One switch with a program of the user's own on given interfaces, without a testbed around it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..config import child_environment
from ..topology.topology import Switch, make_switch
from .daemons import CPU_PORT, NUM_PRIORITIES, Target, accepts, bmv2_path
from .own_program import OwnProgram, load_on_switch
from .processes import READY_FD, ManagedProcess, launch_process

_READY_TIMEOUT_S: Final = 120.0


@dataclass(frozen=True, kw_only=True)
class PlainSwitch:
    """P4Runtime listens on a Unix socket in the run directory, for whoever may open its file."""

    name: str
    device_id: int
    interfaces: Mapping[int, str]
    """Interface of each P4 port."""
    program: OwnProgram
    run_directory: Path
    """For socket, log and pid; its path must be short."""
    target: Target = "softswitch"

    @property
    def address(self) -> str:
        """gRPC address of P4Runtime."""
        return f"unix:{self.run_directory}/{self.name}.sock"

    def command(self) -> list[str]:
        """Return the command line."""
        files, entries = self.program.files, self.program.entries_of(self.name)
        common = ["--cpu-port", str(CPU_PORT), "--priority-queues", str(NUM_PRIORITIES)]
        if self.target == "bmv2":
            ports = [f"{port}@{name}" for port, name in self.interfaces.items()]
            return [
                *(bmv2_path(), "--no-p4", "--device-id", str(self.device_id)),
                *(word for port in ports for word in ("-i", port)),
                *("--", "--grpc-server-addr", self.address, *common),
            ]
        ports = [f"{port}=veth:{name}" for port, name in self.interfaces.items()]
        return [
            *(sys.executable, "-m", "switchfold.softswitch", "run", str(files.json)),
            *("--p4info", str(files.p4info), "--device-id", str(self.device_id)),
            *(word for port in ports for word in ("--port", port)),
            *("--grpc", self.address, "--ready-fd", READY_FD, *common),
            *(("--entries", str(entries)) if entries is not None else ()),
        ]

    def start(self, namespace: str | None = None) -> ManagedProcess:
        """Start it in a namespace; returns once it runs the program with its entries.

        Raises the errors of `bmv2_topos.errors`; nothing runs then.
        """
        Path(self.address.removeprefix("unix:")).unlink(missing_ok=True)
        starting = launch_process(
            self.name,
            self.command(),
            run_directory=self.run_directory,
            environment=child_environment(self.run_directory),
            namespace=namespace,
        )
        process = starting.await_ready(_READY_TIMEOUT_S, lambda: accepts(self.address))
        if self.target == "bmv2":
            try:
                load_on_switch(self.program, self._station(), self.address, None)
            except BaseException:
                process.stop()
                raise
        return process

    def _station(self) -> Switch:
        """Return what P4Runtime needs to know of it."""
        made = make_switch(1)
        return Switch(name=self.name, device_id=self.device_id, address=made.address, mac=made.mac)
