# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A testbed: hosts, links, a switch and the controller, made together and always taken down again.

Mode veth: every host and the switch has a network namespace `sf-<testbed>-<node>`; a veth pair per
link, shaped in both directions. Nothing is made in the caller's own namespace. Mode udp: hosts are
plain processes, links are loopback UDP ports that carry frames, unshaped; no privileges needed.
The switch's P4Runtime server and the controller listen on Unix sockets, which every namespace sees.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self, cast

from bmv2_topos import daemons, links, namespaces, state
from bmv2_topos.config import child_environment
from bmv2_topos.daemons import Mode, Target, Variant
from bmv2_topos.errors import TestbedError
from bmv2_topos.links import LinkBytes
from bmv2_topos.network import make_network, namespace_name, reserve_udp_ports
from bmv2_topos.port_counters import read_port_bytes
from bmv2_topos.processes import ManagedProcess, start_process
from bmv2_topos.status import TestbedStatus, read_status
from bmv2_topos.topology import Host, Switch, Topology
from bmv2_topos.worker_runs import WorkerEndpoint, WorkerResult, run_workers

READY_TIMEOUT_S: Final = 120.0
"""For a switch to become ready, its first compilation to native code included."""
_MAX_UNIX_PATH_BYTES: Final = 107


class Testbed:
    """Build a topology for the length of a `with` block, or until `down`.

    `name` tells testbeds of one user apart (default: made from the pid). With `detached` the
    processes outlive this one until `switchfold testbed down`. `switch_options` go to the switch's
    command line. `has_switch` and `has_controller` leave those processes out. `has_bridge` puts a
    bridge of the kernel where the switch would be (mode veth; no switch, no controller): the same
    links for peers that need no P4.
    """

    __test__ = False

    def __init__(
        self,
        topology: Topology,
        *,
        name: str | None = None,
        target: Target = "softswitch",
        mode: Mode = "veth",
        variant: Variant = "wide",
        detached: bool = False,
        switch_options: Sequence[str] = (),
        udp_base_port: int | None = None,
        has_switch: bool = True,
        has_controller: bool = True,
        has_bridge: bool = False,
    ) -> None:
        if mode == "udp" and target == "bmv2":
            raise ValueError("target bmv2 has no UDP ports; choose mode veth or target softswitch")
        if mode == "udp" and has_bridge:
            raise ValueError("mode udp has no interfaces to bridge; choose mode veth")
        if len(topology.switches) != 1:
            raise ValueError(f"{len(topology.switches)} switches; a testbed has exactly one")
        self.topology = topology
        self.name = name or f"p{os.getpid()}-{id(self) & 0xFFFF:x}"
        self.target: Target = target
        self.mode: Mode = mode
        self.variant: Variant = variant
        self.detached = detached
        self._switch_options = tuple(switch_options)
        self._udp_base_port = udp_base_port
        self._has_bridge = has_bridge
        self._has_switch = has_switch and not has_bridge
        self._has_controller = has_controller and self._has_switch
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
        """The switch."""
        return self.topology.switches[0]

    @property
    def controller_address(self) -> str:
        """gRPC address of the session and operator API, from every namespace."""
        return f"unix:{self.run_directory}/controller.sock"

    @property
    def switch_address(self) -> str:
        """gRPC address of the switch's P4Runtime server, from every namespace."""
        return f"unix:{self.run_directory}/{self.switch.name}.sock"

    def namespace_of(self, node: Host | Switch) -> str | None:
        """Return the namespace of a host or switch, None in mode udp."""
        return namespace_name(self.name, node) if self.mode == "veth" else None

    def up(self) -> Self:
        """Make everything; on any error take down what was made and raise.

        Raises the errors of `bmv2_topos.errors`. What testbeds of dead processes left is removed.
        """
        if self.mode == "veth":
            namespaces.require_root()
        if self._has_switch:
            daemons.program_files(self.variant)
            if self.target == "bmv2":
                daemons.bmv2_path()
        self._record = state.create_record(
            self.name, self.topology, target=self.target, mode=self.mode, variant=self.variant
        )
        try:
            if len(os.fsencode(self.switch_address)) > _MAX_UNIX_PATH_BYTES:
                raise TestbedError(f"{self.run_directory} is too long for sockets; use --name")
            if self.mode == "veth":
                make_network(self._record)
            else:
                reserve_udp_ports(self._record, self._udp_base_port)
            if self._has_bridge:
                links.create_bridge(
                    self.topology,
                    self.switch,
                    switch_namespace=namespace_name(self.name, self.switch),
                )
            if self._has_switch:
                self._start_switch()
            if self._has_controller:
                self._start_controller()
            if self.detached:
                self._record.owner_pid = None
                self._record.save()
        except BaseException:
            self.down()
            raise
        return self

    def down(self) -> None:
        """Stop every process, remove every namespace and link; nothing happens when it is down."""
        for process in reversed(self._processes):
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
        is_ready: Callable[[], bool] | None = None,
    ) -> ManagedProcess:
        """Start a process of this testbed, on a host or switch if one is named."""
        process = start_process(
            name,
            command,
            run_directory=self.run_directory,
            environment={**child_environment(self.run_directory), **(environment or {})},
            namespace=self.namespace_of(node) if node else None,
            ready_timeout_s=ready_timeout_s,
            is_ready=is_ready,
            dies_with_us=not self.detached,
        )
        self._processes.append(process)
        return process

    def endpoint(self, worker_id: int) -> WorkerEndpoint:
        """Return what a worker must know to take part."""
        host = self.topology.host_of(worker_id)
        link = self.topology.link_of(host)
        switch_udp_port, host_udp_port = self._recorded().udp_ports.get(host.name, (0, 0))
        return WorkerEndpoint(
            worker_id=worker_id,
            num_workers=len(self.topology.hosts),
            host=host,
            switch=self.switch,
            switch_port=link.port,
            controller_address=self.controller_address,
            mode=self.mode,
            switch_udp_port=switch_udp_port,
            host_udp_port=host_udp_port,
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

        A callable makes each worker's command. After `timeout_s` all are stopped and
        ProcessTimeoutError names those that were still running; exit statuses are the caller's.
        """
        endpoints = [self.endpoint(host.worker_id) for host in self.topology.hosts]
        return run_workers(
            lambda endpoint, name, words, variables: self.start(
                name, words, node=endpoint.host, environment=variables
            ),
            endpoints,
            command,
            job=job,
            timeout_s=timeout_s,
            environment=environment or {},
        )

    def link_bytes(self) -> tuple[LinkBytes, ...]:
        """Return what crossed each link: by the kernel's counters, in mode udp by the switch's."""
        namespace = self.namespace_of(self.switch)
        if namespace is not None:
            return links.read_link_bytes(self.topology, switch_namespace=namespace)
        return read_port_bytes(
            self.topology,
            switch_address=self.switch_address,
            p4info=daemons.program_files(self.variant)[1],
        )

    def status(self) -> TestbedStatus:
        """Return processes, rates and bytes as they are now."""
        return read_status(self._recorded(), self.controller_address, self.link_bytes)

    def _recorded(self) -> state.Record:
        if self._record is None:
            raise TestbedError(f"testbed {self.name} is down")
        return self._record

    def _start_switch(self) -> None:
        record = self._recorded()
        specs: dict[int, str] = {}
        for link in self.topology.links_of(self.switch):
            specs[link.port] = f"veth:{link.switch_interface}"
            if self.mode == "udp":
                ours, theirs = record.udp_ports[link.host]
                specs[link.port] = f"udp:127.0.0.1:{ours}-127.0.0.1:{theirs}"
        command = daemons.switch_command(
            self.target,
            self.switch,
            port_specs=specs,
            grpc_address=self.switch_address,
            variant=self.variant,
            run_directory=self.run_directory,
            options=self._switch_options,
        )
        self.start(
            self.switch.name,
            command,
            node=self.switch,
            ready_timeout_s=READY_TIMEOUT_S,
            is_ready=lambda: _accepts(self.switch_address),
        )

    def _start_controller(self) -> None:
        config = self.run_directory / "controller.toml"
        daemons.write_controller_config(
            config,
            self.topology,
            listen=self.controller_address,
            switch_addresses={self.switch.name: self.switch_address},
            variant=self.variant,
        )
        self.start("controller", daemons.controller_command(config), ready_timeout_s=60.0)


def _accepts(address: str) -> bool:
    """Tell whether somebody listens on a `unix:` address."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(address.removeprefix("unix:")) == 0
