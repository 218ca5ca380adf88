# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Topologies as Mininet networks: Mininet's hosts and links, our switches and controller.

with FabricNet(leaf_spine(2, 1, 2), run_directory=Path("/tmp/fabric")) as net:
    net.pingAll()
    net.get("h1").popen([...], env=net.environment(0, job="sum"))

Needs root and Mininet 2.3 (Debian's package `mininet`, also found from a virtual environment).
Unlike a testbed, it keeps no records: the namespaces of a killed network vanish with its processes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Self

from .config import child_environment
from .mininet_module import load_mininet
from .network import links, namespaces
from .processes import daemons
from .processes.certificates import make_certificates, worker_folder
from .processes.daemons import SwitchSoftware, Target, Variant
from .processes.processes import ManagedProcess, launch_process
from .processes.tokens import controller_environment, draw_tokens, worker_token
from .processes.worker_runs import endpoint_of
from .topology.topology import Host, Switch, Topology

MAX_RATE_BITS_PER_S: Final = 1_000_000_000
"""Mininet leaves links with a higher rate unshaped."""
READY_TIMEOUT_S: Final = 120.0
CONTROLLER_TIMEOUT_S: Final = 60.0


_LINK: Final = load_mininet("mininet.link")
_NET: Final = load_mininet("mininet.net")
_NODE: Final = load_mininet("mininet.node")
_TOPO: Final = load_mininet("mininet.topo")


class FabricHost(_NODE.Host):
    """A host with permanent neighbours and a gateway, without ARP and without offloads."""

    def config(self, *, fabric: Topology, station: Host, **parameters: Any) -> Any:
        """Configure addresses as Mininet does, then neighbours and gateway."""
        result: Any = _NODE.Host.config(self, **parameters)
        namespace = _namespace_of(self)
        namespaces.quieten(namespace)
        namespaces.call_in_namespace(namespace, lambda: links.turn_offloads_off(station.interface))
        links.set_neighbours(station, fabric, namespace=namespace)
        return result


class FabricSwitch(_NODE.Switch):
    """A P4 switch in a namespace of its own: softswitch or BMv2."""

    def __init__(
        self,
        name: str,
        *,
        fabric: Topology,
        station: Switch,
        software: SwitchSoftware,
        run_directory: Path,
        **parameters: Any,
    ) -> None:
        self.controlIntf = None  # Mininet reads it, but sets none for a switch in a namespace
        _NODE.Switch.__init__(self, name, **{**parameters, "inNamespace": True})
        self._fabric = fabric
        self._station = station
        self._software = software
        self._run_directory = run_directory
        self._process: ManagedProcess | None = None

    def start(self, _controllers: Sequence[object]) -> None:
        """Start the switch; returns once it serves P4Runtime."""
        namespace = _namespace_of(self)
        namespaces.quieten(namespace)
        ends = self._fabric.ports_of(self._station)
        for end in ends:
            namespaces.call_in_namespace(
                namespace, lambda interface=end.interface: links.turn_offloads_off(interface)
            )
        links.wait_for_carrier(
            [end.interface for end in ends], namespace=namespace, timeout_s=links.CARRIER_TIMEOUT_S
        )
        address = _address(self._run_directory, self._station.name)
        starting = launch_process(
            self._station.name,
            daemons.switch_command(
                self._software,
                self._station,
                port_specs=daemons.port_specs(self._fabric, self._station, udp_ports={}),
                grpc_address=address,
                run_directory=self._run_directory,
            ),
            run_directory=self._run_directory,
            environment=child_environment(self._run_directory),
            namespace=namespace,
        )
        self._process = starting.await_ready(READY_TIMEOUT_S, lambda: daemons.accepts(address))

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803 - Mininet's name
        """Stop the switch."""
        if self._process is not None:
            self._process.stop()
            self._process = None
        _NODE.Switch.stop(self, deleteIntfs)


class FabricTopo(_TOPO.Topo):
    """A topology in Mininet's form: pass it to Mininet, or let FabricNet do that."""

    def build(self, fabric: Topology, **switch_parameters: Any) -> None:
        """Add hosts, switches and links; ValueError for rates that Mininet cannot shape."""
        for host in fabric.hosts:
            self.addHost(
                host.name,
                cls=FabricHost,
                ip=f"{host.address}/24",
                mac=host.mac,
                fabric=fabric,
                station=host,
            )
        for switch in fabric.switches:
            self.addSwitch(
                switch.name, cls=FabricSwitch, fabric=fabric, station=switch, **switch_parameters
            )
        for link in fabric.links:
            self.addLink(
                link.host,
                link.switch,
                port1=0,
                port2=link.port,
                **_shaping(link.name, link.rate_bits_per_s),
            )
        for link in fabric.switch_links:
            self.addLink(
                link.a,
                link.b,
                port1=link.a_port,
                port2=link.b_port,
                **_shaping(link.name, link.rate_bits_per_s),
            )


class FabricNet(_NET.Mininet):
    """A Mininet network of our switches with our controller; a context manager.

    `run_directory` must exist, and its path must be short: it holds sockets, logs and the
    controller's files. `has_controller=False` leaves the controller out.
    """

    def __init__(
        self,
        topology: Topology,
        *,
        run_directory: Path,
        target: Target = "softswitch",
        variant: Variant = "wide",
        switch_options: Sequence[str] = (),
        has_controller: bool = True,
    ) -> None:
        namespaces.require_root()
        # Otherwise Mininet raises limits of the whole machine, for thousands of nodes.
        _NET.Mininet.inited = True
        self.topology = topology
        self.run_directory = run_directory
        self._variant: Variant = variant
        self._has_controller = has_controller
        self._controller: ManagedProcess | None = None
        topo = FabricTopo(
            topology,
            software=SwitchSoftware(target=target, variant=variant, options=switch_options),
            run_directory=run_directory,
        )
        _NET.Mininet.__init__(self, topo=topo, controller=None)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def controller_address(self) -> str:
        """gRPC address of the session and operator API, from every namespace."""
        return _address(self.run_directory, "controller")

    @property
    def switch_addresses(self) -> dict[str, str]:
        """gRPC address of every switch's P4Runtime server by its name."""
        return {
            switch.name: _address(self.run_directory, switch.name)
            for switch in self.topology.switches
        }

    def start(self) -> None:
        """Start the switches, then the controller; returns once it accepts workers."""
        names = [switch.name for switch in self.topology.switches]
        make_certificates(self.run_directory, names, has_controller=self._has_controller)
        _NET.Mininet.start(self)
        if not self._has_controller:
            return
        draw_tokens(self.run_directory)
        config = self.run_directory / "controller.toml"
        daemons.write_controller_config(
            config,
            self.topology,
            listen=self.controller_address,
            switch_addresses=self.switch_addresses,
            variant=self._variant,
        )
        starting = launch_process(
            "controller",
            daemons.controller_command(config),
            run_directory=self.run_directory,
            environment={
                **child_environment(self.run_directory),
                **controller_environment(self.run_directory),
            },
        )
        self._controller = starting.await_ready(CONTROLLER_TIMEOUT_S)

    def stop(self) -> None:
        """Stop everything; only the run directory remains."""
        if self._controller is not None:
            self._controller.stop()
            self._controller = None
        _NET.Mininet.stop(self)

    def environment(self, worker_id: int, *, job: str) -> dict[str, str]:
        """Return the environment of a worker's process on its host."""
        endpoint = replace(
            endpoint_of(
                self.topology,
                worker_id,
                controller_address=self.controller_address,
                mode="veth",
            ),
            token=worker_token(self.run_directory),
            credentials=worker_folder(self.run_directory),
        )
        return {**os.environ, **endpoint.environment(job)}


def _address(run_directory: Path, name: str) -> str:
    return f"unix:{run_directory}/{name}.sock"


def _namespace_of(node: Any) -> str:
    """Return the path of a node's namespace, which has no name."""
    return f"/proc/{node.pid}/ns/net"


def _shaping(name: str, rate_bits_per_s: int | None) -> dict[str, Any]:
    if rate_bits_per_s is None:
        return {"cls": _LINK.Link}
    if rate_bits_per_s > MAX_RATE_BITS_PER_S:
        raise ValueError(
            f"Mininet shapes links up to {MAX_RATE_BITS_PER_S} bits per second; link {name} has "
            f"{rate_bits_per_s}: choose a lower rate, or None for no shaping"
        )
    latency_ms = links.QUEUE_BYTES * 8e3 / rate_bits_per_s
    return {
        "cls": _LINK.TCLink,
        "bw": rate_bits_per_s / 1e6,
        "use_tbf": True,
        "latency_ms": latency_ms,
    }
