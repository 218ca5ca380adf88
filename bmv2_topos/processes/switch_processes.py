# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Starts the switches of a testbed as its record says, and waits until they serve P4Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Final, cast

from ...p4src.own_program import program_files_in
from ..config import child_environment
from ..network.network import namespace_name
from ..state import Record
from ..topology.topology import Switch
from . import daemons
from .certificates import switch_operator
from .daemons import Mode, Shaping, SwitchSoftware, Target, Variant
from .debugging import of_switch
from .own_program import OwnProgram, load_on_switch
from .processes import ManagedProcess, StartingProcess, launch_process

READY_TIMEOUT_S: Final = 120.0
"""For a switch to become ready, its first compilation to native code included."""


def note_own_program(record: Record, own: OwnProgram | None) -> None:
    """Note a testbed's own program in its record, so that restarted switches run it, too."""
    record.own_program = str(own.files.json) if own else ""
    record.own_entries = str(own.entries.absolute()) if own and own.entries else ""


def own_program_of(record: Record) -> OwnProgram | None:
    """Return the user's own program of a testbed; None if its switches run a variant of ours."""
    if not record.own_program:
        return None
    entries = Path(record.own_entries) if record.own_entries else None
    return OwnProgram(files=program_files_in(Path(record.own_program)), entries=entries)


class SwitchProcesses:
    """The switches of one testbed; what it starts is added to `started`."""

    def __init__(
        self, record: Record, *, dies_with_us: bool, started: list[ManagedProcess]
    ) -> None:
        self._record = record
        self._dies_with_us = dies_with_us
        self._started = started

    def start_all(self) -> None:
        """Start every switch; returns once all serve P4Runtime."""
        first, *others = self._record.topology.switches
        # The first compiles the program; the others then find it in the cache.
        self.start(first)
        starting = [self._launch(switch) for switch in others]
        try:
            for switch, each in zip(others, starting, strict=True):
                self._await(switch, each)
        finally:
            for each in starting:
                each.close()

    def start(self, switch: Switch) -> None:
        """Start one switch; returns once it serves P4Runtime."""
        self._await(switch, self._launch(switch))

    def _await(self, switch: Switch, starting: StartingProcess) -> None:
        address = daemons.switch_address(self._record.directory, switch)
        starting.await_ready(READY_TIMEOUT_S, lambda: daemons.accepts(address))
        own = own_program_of(self._record)
        if own is not None and self._record.target == "bmv2":
            load_on_switch(own, switch, address, switch_operator(self._record.directory))

    def _launch(self, switch: Switch) -> StartingProcess:
        record = self._record
        address = daemons.switch_address(record.directory, switch)
        # A killed switch leaves its socket file behind.
        Path(address.removeprefix("unix:")).unlink(missing_ok=True)
        starting = launch_process(
            switch.name,
            daemons.switch_command(
                self._software(switch),
                switch,
                port_specs=daemons.port_specs(record.topology, switch, udp_ports=record.udp_ports),
                grpc_address=address,
                run_directory=record.directory,
            ),
            run_directory=record.directory,
            environment=child_environment(record.directory),
            namespace=namespace_name(record.name, switch) if record.mode == "veth" else None,
            dies_with_us=self._dies_with_us,
        )
        self._started.append(starting.process)
        return starting

    def _software(self, switch: Switch) -> SwitchSoftware:
        record = self._record
        link_options = daemons.link_options(
            record.topology,
            switch,
            mode=cast(Mode, record.mode),
            shaping=cast(Shaping, record.shaping),
            impairments=record.impairments,
        )
        own = own_program_of(record)
        return SwitchSoftware(
            target=cast(Target, record.target),
            variant=cast(Variant, record.variant),
            files=own.files if own else None,
            entries=own.entries_of(switch.name) if own else None,
            options=(*link_options, *of_switch(record.switch_options, switch.name)),
        )
