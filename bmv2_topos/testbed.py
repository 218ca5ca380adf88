# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A testbed: hosts, links, switches and the controller, made together and always taken down again.

Mode veth: every host and switch has a network namespace `sf-<testbed>-<node>`; a veth pair per
link, shaped in both directions. Nothing is made in the caller's own namespace. Mode udp: hosts are
plain processes, links are loopback UDP ports that carry frames; no privileges needed. P4Runtime
servers and the controller listen on Unix sockets, which every namespace sees.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Self, cast

from ..hostlib.credentials import Credentials, Role
from ..softswitch.switch.impairments import parse_settings
from . import state
from .config import child_environment
from .errors import TestbedBusyError, TestbedError
from .impairment.impaired_links import ImpairedDirection, ImpairedLinks
from .making import make_links, make_secrets
from .network import namespaces
from .network.cables import cut_cable, mend_cable
from .network.link_counters import LinkBytes, SwitchLinkBytes
from .network.link_rates import LinkRates
from .network.link_totals import LinkTotals
from .network.network import namespace_name
from .processes import daemons
from .processes.certificates import role_folder, switch_operator, worker_folder
from .processes.daemons import Mode, Shaping, Target, Variant
from .processes.debugging import SwitchDebugging
from .processes.own_program import OwnProgram
from .processes.processes import (
    ManagedProcess,
    launch_process,
    read_records,
)
from .processes.rendezvous import PLACES_FILE, rank_variables, write_places
from .processes.switch_processes import SwitchProcesses, note_own_program, own_program_of
from .processes.switch_program import SwitchProgram
from .processes.tokens import controller_environment, worker_token
from .processes.worker_runs import WorkerEndpoint, WorkerResult, endpoint_of, run_workers
from .status import TestbedStatus, read_status
from .testbed_choices import check_choices
from .topology.topology import Host, Switch, Topology

_LOGGER = logging.getLogger(__name__)
CONTROLLER_TIMEOUT_S: Final = 60.0
IMPAIRMENT_TIMEOUT_S: Final = 60.0


class Testbed:
    """Build a topology for the duration of a `with` block, or until `down`.

    `name` tells testbeds of one user apart (default: pid and a random number). With `detached`
    the processes outlive this one until `switchfold testbed down`. `switch_options` go to every
    switch's command line, `controller_options` to the controller's.
    `shaping="switch"` lets each softswitch limit the rates of what it sends, so that the P4 program
    sees the depth of its queues; in mode udp, only this setting limits rates.
    `impairments`, such as "loss=0.01,duplication=0.01", hit each direction of every link once.
    `offloads` lets frames longer than the MTU, and without checksum, cross the links, as between a
    virtual machine and its host (mode veth, softswitch or bridge): the kernel and the switch then
    move many packets at a time. Without it, frames are those of a cable.
    `program` is a user's own v1model program, run instead of a variant. It has a controller only if
    it is a version of the aggregation program.
    `debugging` lets the switches write traces, captures and rates into files.
    `tcp_ecn` lets the hosts' TCP negotiate ECN (mode veth). `has_switch=False` and
    `has_controller=False` leave those processes out. `has_bridge` puts a bridge of the kernel in
    the switch's place (mode veth; no switch, no controller): the same links for peers without P4.
    """

    __test__ = False

    def __init__(  # noqa: PLR0913 - a user names the few options that differ
        self,
        topology: Topology,
        *,
        name: str | None = None,
        target: Target = "softswitch",
        mode: Mode = "veth",
        variant: Variant = "wide",
        detached: bool = False,
        switch_options: Sequence[str] = (),
        controller_options: Sequence[str] = (),
        udp_base_port: int | None = None,
        has_switch: bool = True,
        has_controller: bool = True,
        has_bridge: bool = False,
        shaping: Shaping = "links",
        impairments: str = "",
        offloads: bool = False,
        tcp_ecn: bool = False,
        debugging: SwitchDebugging | None = None,
        program: OwnProgram | None = None,
    ) -> None:
        check_choices(
            topology,
            target=target,
            mode=mode,
            shaping=shaping,
            impairments=impairments,
            has_switch=has_switch,
            has_bridge=has_bridge,
            offloads=offloads,
            tcp_ecn=tcp_ecn,
        )
        self.topology = topology
        self.name = name or f"p{os.getpid()}-{secrets.token_hex(4)}"
        self.target: Target = target
        self.mode: Mode = mode
        self.variant: Variant = variant
        self.detached = detached
        more_options = debugging.options(target) if debugging is not None else []
        self._switch_options = (*switch_options, *more_options)
        self._controller_options = tuple(controller_options)
        self._udp_base_port = udp_base_port
        self._has_bridge = has_bridge
        self._shaping: Shaping = shaping
        self._impairments = impairments
        self._has_offloads = offloads
        self._tcp_ecn = tcp_ecn
        self._has_switch = has_switch and not has_bridge
        self._program = SwitchProgram(variant=variant, own=program)
        self._is_ours = self._program.is_aggregation()
        self._has_controller = has_controller and self._has_switch and self._is_ours
        self._record: state.Record | None = None
        self._processes: list[ManagedProcess] = []

    @classmethod
    def attach(cls, name: str) -> Self:
        """Return the testbed that is recorded under this name; raises TestbedNotFoundError."""
        record = state.load_record(name)
        testbed = cls(
            record.topology,
            name=name,
            target=cast(Target, record.target),
            mode=cast(Mode, record.mode),
            variant=cast(Variant, record.variant),
            detached=record.owner_pid is None,
            switch_options=record.switch_options,
            controller_options=record.controller_options,
            shaping=cast(Shaping, record.shaping),
            impairments=record.impairments,
            offloads=record.has_offloads,
            program=own_program_of(record),
        )
        testbed._record = record
        return testbed

    def __enter__(self) -> Self:
        return self.up()

    def __exit__(self, *_: object) -> None:
        self.down()

    @property
    def run_directory(self) -> Path:
        """Where logs, sockets and records are."""
        return self._recorded().directory

    @property
    def switch(self) -> Switch:
        """The first switch: in small testbeds the only one."""
        return self.topology.switches[0]

    @property
    def controller_address(self) -> str:
        """gRPC address of the session and operator API, from every namespace."""
        return daemons.controller_address(self.run_directory)

    @property
    def switch_address(self) -> str:
        """gRPC address of the first switch's P4Runtime server, from every namespace."""
        return self.address_of(self.switch)

    @property
    def switch_addresses(self) -> dict[str, str]:
        """gRPC address of every switch's P4Runtime server by its name."""
        return {switch.name: self.address_of(switch) for switch in self.topology.switches}

    def address_of(self, switch: Switch) -> str:
        """Return the gRPC address of a switch's P4Runtime server, from every namespace."""
        return daemons.switch_address(self.run_directory, switch)

    @property
    def switch_operator(self) -> Credentials:
        """What an operator shows to switches: `switchfold.hostlib.credentials`."""
        return switch_operator(self.run_directory)

    @property
    def server_credentials(self) -> Credentials:
        """What parameter servers show to workers and to the controller."""
        return Credentials(role_folder(self.run_directory, Role.SERVER))

    def namespace_of(self, node: Host | Switch) -> str | None:
        """Return the namespace of a host or switch, None in mode udp."""
        return namespace_name(self.name, node) if self.mode == "veth" else None

    def up(self) -> Self:
        """Make everything; on any error take down what was made and raise.

        Also removes what testbeds of dead processes left. Logs a warning when the compiled program
        is not that of the P4 sources. Raises the errors of `bmv2_topos.errors`.
        """
        if self.mode == "veth":
            namespaces.require_root()
        if self._has_switch:
            self._program.require_files()
            if problem := self._program.stale():
                _LOGGER.warning("%s", problem)
            if self.target == "bmv2":
                daemons.bmv2_path()
        self._record = self._make_record()
        try:
            self._make_links(self._record)
            if self._has_switch:
                self._switch_processes.start_all()
            if self._has_controller:
                self.start_controller()
            if self.detached:
                self._record.owner_pid = None
                self._record.save()
        except BaseException:
            self.down()
            raise
        return self

    def _make_record(self) -> state.Record:
        """Note what will be made before it is made."""
        record = state.create_record(
            self.name, self.topology, target=self.target, mode=self.mode, variant=self.variant
        )
        record.shaping = self._shaping
        record.impairments = self._impairments
        record.has_offloads = self._has_offloads
        record.shaper = "softswitch" if self._shaping == "switch" else None
        record.switch_options = list(self._switch_options)
        record.controller_options = list(self._controller_options)
        note_own_program(record, self._program.own)
        record.save()
        return record

    def _make_links(self, record: state.Record) -> None:
        """Make hosts and links, and the secrets of all processes."""
        make_secrets(record, has_switch=self._has_switch, has_controller=self._has_controller)
        make_links(
            record,
            udp_base_port=self._udp_base_port,
            tcp_ecn=self._tcp_ecn,
            has_bridge=self._has_bridge,
        )
        if self.mode == "udp":
            endpoints = [self.endpoint(host.worker_id) for host in self.topology.hosts]
            write_places(self.run_directory / PLACES_FILE, endpoints)

    def down(self) -> None:
        """Stop every process, remove every namespace and link; nothing happens when it is down."""
        switches = {switch.name for switch in self.topology.switches}
        started = list(reversed(self._processes))
        for process in started:
            if process.record.name not in switches:
                process.stop()
        for process in started:  # switches last and all at once: there may be many
            process.record.terminate()
        for process in started:
            process.stop()
        self._processes.clear()
        if self._record is not None:
            self._record.remove()
            self._record = None

    def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        node: Host | Switch | None = None,
        environment: Mapping[str, str] | None = None,
        ready_timeout_s: float | None = None,
        outlives_us: bool = False,
    ) -> ManagedProcess:
        """Start a process of this testbed, on a host or switch if one is named.

        With `ready_timeout_s` it is waited for, as by `StartingProcess.await_ready`. With
        `outlives_us` it goes on when this thread ends, until the testbed is taken down.
        """
        starting = launch_process(
            name,
            command,
            run_directory=self.run_directory,
            environment={**child_environment(self.run_directory), **(environment or {})},
            namespace=self.namespace_of(node) if node else None,
            dies_with_us=not (self.detached or outlives_us),
        )
        if ready_timeout_s is not None:
            starting.await_ready(ready_timeout_s)
        starting.close()
        self._processes.append(starting.process)
        return starting.process

    def endpoint(self, worker_id: int) -> WorkerEndpoint:
        """Return what a worker must know to take part."""
        return replace(
            endpoint_of(
                self.topology,
                worker_id,
                controller_address=self.controller_address,
                mode=self.mode,
                udp_ports=self._recorded().udp_ports,
            ),
            token=worker_token(self.run_directory),
            credentials=worker_folder(self.run_directory),
        )

    def run_workers(
        self,
        command: Sequence[str] | Callable[[WorkerEndpoint], Sequence[str]],
        *,
        job: str = "job",
        timeout_s: float,
        environment: Mapping[str, str] | None = None,
    ) -> list[WorkerResult]:
        """Run one process per host, with the environment of its endpoint, and collect the results.

        A callable makes each worker's command. The environment holds torch.distributed's rank, too.
        After `timeout_s` all are stopped, and ProcessTimeoutError names those that were still
        running. The caller checks the exit statuses.
        """
        endpoints = [self.endpoint(host.worker_id) for host in self.topology.hosts]
        hosts = [endpoint.host for endpoint in endpoints]
        ranks = rank_variables(endpoints, [self.namespace_of(host) for host in hosts])
        return run_workers(
            lambda endpoint, name, words, variables: self.start(
                name,
                words,
                node=endpoint.host,
                environment={**ranks[hosts.index(endpoint.host)], **variables},
            ),
            endpoints,
            command,
            job=job,
            timeout_s=timeout_s,
            environment=environment or {},
        )

    def start_switch(self, name: str) -> None:
        """Start a switch that was stopped; it has the same ports and empty tables."""
        switch = self.topology.switch_named(name)
        self._check_ours_to_start(name)
        self._switch_processes.start(switch)

    def stop_switch(self, name: str) -> None:
        """Kill a switch at once, as a power cut would; its interfaces stay, with no reader."""
        self._kill(self.topology.switch_named(name).name)

    def restart_switch(self, name: str) -> None:
        """Kill a switch and start it again with empty tables; returns once it serves P4Runtime."""
        self.stop_switch(name)
        self.start_switch(name)

    def start_controller(self) -> None:
        """Start the controller; one that was stopped continues with its database."""
        self._check_ours_to_start("controller")
        if not self._is_ours:
            raise TestbedError(f"testbed {self.name} has a program that no controller drives")
        config = self.run_directory / "controller.toml"
        daemons.write_controller_config(
            config,
            self.topology,
            listen=self.controller_address,
            switch_addresses=self.switch_addresses,
            variant=self.variant,
            program_dir=self._program.folder,
        )
        command = [*daemons.controller_command(config), *self._controller_options]
        self.start(
            "controller",
            command,
            environment=controller_environment(self.run_directory),
            ready_timeout_s=CONTROLLER_TIMEOUT_S,
        )

    def stop_controller(self) -> None:
        """Kill the controller at once."""
        self._kill("controller")

    def restart_controller(self) -> None:
        """Kill the controller and start it again on the same database."""
        self.stop_controller()
        self.start_controller()

    def cut_link(self, one: str, other: str) -> None:
        """Let the link between two named nodes carry nothing until `mend_link`.

        This holds in both directions. Interfaces stay up, and no program is notified. Only in mode
        veth.
        """
        cut_cable(self._recorded(), one, other)

    def mend_link(self, one: str, other: str) -> None:
        """Mend a link that was cut; nothing happens to one that is whole."""
        mend_cable(self._recorded(), one, other)

    def impair_link(
        self, one: str, other: str, settings: str, *, sender: str | None = None
    ) -> None:
        """Impair the link between two nodes while it runs, such as by "loss=0.01,delay_s=0.002".

        In both directions, or only for what `sender` sends. Replaces what was set there before.
        Raises ValueError for wrong names and settings, ImpairmentError where it is not possible;
        nothing has changed then. Only in mode veth.
        """
        link = self.topology.link_between(one, other)
        self.impaired_links.impair(link, parse_settings(settings), sender=sender)

    def clear_impairments(self) -> list[ImpairedDirection]:
        """Take all impairments off that `impair_link` has set; return their last counters."""
        return self.impaired_links.clear()

    @property
    def impaired_links(self) -> ImpairedLinks:
        """What `impair_link` has set, and how to show and clear it."""
        return ImpairedLinks(
            record=self._recorded(),
            # Any thread may impair a link, and so may a process that does not own the testbed.
            start=lambda name, command: self.start(
                name, command, ready_timeout_s=IMPAIRMENT_TIMEOUT_S, outlives_us=True
            ),
        )

    @property
    def link_rates(self) -> LinkRates:
        """The present rates of links, and how to change them while the testbed runs."""
        return LinkRates(record=self._recorded())

    def link_bytes(self) -> tuple[LinkBytes, ...]:
        """Return what crossed each host's link: by the kernel's counters, in mode udp by P4's."""
        return self._link_totals.of_hosts()

    def switch_link_bytes(self) -> tuple[SwitchLinkBytes, ...]:
        """Return what crossed each link between switches, counted like `link_bytes`."""
        return self._link_totals.of_switches()

    @property
    def _link_totals(self) -> LinkTotals:
        return LinkTotals(self._recorded(), self._program.p4info if self._is_ours else None)

    def status(self) -> TestbedStatus:
        """Return processes, rates and bytes as they are now."""
        return read_status(
            self._recorded(), self.controller_address, self.link_bytes, self.switch_link_bytes
        )

    def _recorded(self) -> state.Record:
        if self._record is None:
            raise TestbedError(f"testbed {self.name} is down")
        return self._record

    @property
    def _switch_processes(self) -> SwitchProcesses:
        return SwitchProcesses(
            self._recorded(), dies_with_us=not self.detached, started=self._processes
        )

    def _check_ours_to_start(self, name: str) -> None:
        record = self._recorded()
        if record.owner_pid not in {None, os.getpid()}:
            raise TestbedBusyError(
                f"testbed {self.name} belongs to the live process {record.owner_pid}: only that "
                f"one can start its {name}"
            )
        for process in read_records(self.run_directory):
            if process.name == name and process.is_leader_alive():
                raise TestbedBusyError(f"{name} of testbed {self.name} runs already")

    def _kill(self, name: str) -> None:
        for process in [each for each in self._processes if each.record.name == name]:
            process.kill()
            self._processes.remove(process)
        for record in read_records(self.run_directory):
            if record.name == name:
                record.kill()
