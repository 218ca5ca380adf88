# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Two equal leaf-spine fabrics: one whose switches add, and one of plain routers.

           s3                 an uplink has a quarter of the rate of its leaf's workers' links
         /    \\
       s1      s2
     / | | \\  / | | \\
    h1 h2 h3 h4  h5 h6 h7 h8

Workers are on h1, h2, h5 and h6. h3 is a server; h4 and h8 send other traffic.

In the plain fabric, hosts add: softswitch on a host is a UDP parameter server that has the masks,
the repair and the tolerance of a switch. A pair of interfaces within the host joins it to the
host's kernel, which routes between this pair and the host's link. To the controller it is a switch
with all workers at port 1. Switches with a Switchfold program would not let its packets pass: they
answer or drop all that goes to their UDP port, or comes from it.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, final

from benchmarks.transport.conditions import LossCondition
from switchfold.bmv2_topos import Host, Switch, Testbed, Topology, leaf_spine
from switchfold.bmv2_topos.network import namespaces
from switchfold.bmv2_topos.network.links import create_internal_pair, interface_index
from switchfold.bmv2_topos.processes import daemons
from switchfold.bmv2_topos.processes.certificates import (
    make_certificates,
    programming_folder,
    role_folder,
)
from switchfold.bmv2_topos.processes.processes import ManagedProcess
from switchfold.bmv2_topos.processes.tokens import controller_environment, draw_tokens
from switchfold.bmv2_topos.topology.topology import Link
from switchfold.hostlib.credentials import Role

ROOT: Final = Path(__file__).resolve().parents[2]
WORKERS: Final = ("h1", "h2", "h5", "h6")
SERVER: Final = "h3"
OTHERS: Final = ("h4", "h8")
"""Hosts of other traffic, on different leaves."""
OVERSUBSCRIPTION: Final = 4
_PER_LEAF: Final = 2
"""Workers on a leaf."""
_READY_S: Final = 120.0
_KERNEL_END, _SWITCH_END = "agg", "agg-sw"
"""The interfaces between a host's kernel and the softswitch on it."""
_KERNEL_MAC: Final = "02:53:46:00:00:0a"
_SERVICE_MAC: Final = "02:53:46:00:00:fe"
_THREADS: Final = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_PERMANENT: Final = 0x80  # linux/neighbour.h: NUD_PERMANENT
_LINK_SCOPE: Final = 253  # linux/rtnetlink.h: RT_SCOPE_LINK


def fabric(host_rate_bits_per_s: int) -> Topology:
    """Describe a fabric for these rates of hosts' links."""
    return leaf_spine(
        2,
        1,
        4,
        host_rate_bits_per_s=host_rate_bits_per_s,
        uplink_rate_bits_per_s=_PER_LEAF * host_rate_bits_per_s // OVERSUBSCRIPTION,
    )


def host_named(topology: Topology, name: str) -> Host:
    """Return a host."""
    return next(host for host in topology.hosts if host.name == name)


def service_address(host: str) -> str:
    """Return where workers send their contributions to softswitch on a host."""
    return f"10.9.0.{host.removeprefix('h')}"


def adder_name(host: str) -> str:
    """Return the name of the softswitch on a host, as its controller knows it."""
    return f"on-{host}"


def impair_workers(testbed: Testbed, condition: LossCondition, *, seed: int) -> None:
    """Let the links of all workers lose what a condition says, each direction by a seed of its own.

    They stay so until the next call.
    """
    topology = testbed.topology
    for number, name in enumerate(WORKERS):
        leaf = topology.switch_of(host_named(topology, name)).name
        for sender in (name, leaf):
            settings = condition.settings_of(is_up=sender == name, seed=seed + number)
            testbed.impair_link(name, leaf, settings, sender=sender)


@final
class PlainFabric:
    """A testbed of plain routers, with softswitch on some hosts and a controller for those."""

    def __init__(self, topology: Topology, adders: Sequence[str], *, name: str) -> None:
        """`adders`: names of the hosts with a softswitch."""
        self._adders = tuple(adders)
        self.testbed = Testbed(topology, name=name, has_switch=False)
        self.adder_pids: list[int] = []

    def __enter__(self) -> Self:
        self.testbed.up()
        try:
            for switch in self.testbed.topology.switches:
                self._make_router(switch)
            if self._adders:
                self._start_adders()
        except BaseException:
            self.testbed.down()
            raise
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.testbed.down()

    @property
    def controller_address(self) -> str:
        """gRPC address of the controller of the softswitches on hosts."""
        return self.testbed.controller_address

    def _namespace(self, node: Host | Switch) -> str:
        found = self.testbed.namespace_of(node)
        assert found is not None, "the testbed has namespaces"
        return found

    def _make_router(self, switch: Switch) -> None:
        """Let the kernel forward between the links of a switch, over shortest paths."""
        namespace = self._namespace(switch)

        def enter(route: Any) -> None:
            for end in self.testbed.topology.ports_of(switch):
                index = interface_index(route, end.interface)
                # Hosts know the MAC address of the switch, not those of its interfaces.
                route.link("set", index=index, address=switch.mac)
            for address, interface, mac in routes(self.testbed.topology, switch):
                _enter_route(route, address, interface, mac)

        namespaces.call_with_route(namespace, enter)
        forward(namespace)
        for link in self.testbed.topology.links_of(switch):
            self._send_all_to_router(host_named(self.testbed.topology, link.host), switch)

    def _send_all_to_router(self, host: Host, switch: Switch) -> None:
        """Let a host reach the others of its subnet through the router, as it reaches the rest."""
        mates = {link.host for link in self.testbed.topology.links_of(switch)} - {host.name}

        def enter(route: Any) -> None:
            index = interface_index(route, host.interface)
            for name in mates:
                address = host_named(self.testbed.topology, name).address
                route.neigh(
                    "replace", dst=address, lladdr=switch.mac, ifindex=index, state=_PERMANENT
                )

        namespaces.call_with_route(self._namespace(host), enter)

    def use_congestion_control(self, name: str) -> None:
        """Let new TCP connections between workers use a congestion control; "": the default.

        Namespaces may not choose any as their default, but a route may.
        """
        topology = self.testbed.topology
        hosts = [host_named(topology, worker) for worker in WORKERS]
        for host in hosts:
            others = [each.address for each in hosts if each != host]
            gateway = topology.switch_of(host).address
            enter = functools.partial(_enter_controls, name, others, gateway, host.interface)
            namespaces.call_with_route(self._namespace(host), enter)

    def _start_adders(self) -> None:
        folder = self.testbed.run_directory
        names = [adder_name(host) for host in self._adders]
        make_certificates(folder, names)
        draw_tokens(folder)
        for number, host in enumerate(self._adders, 1):
            process = self._start_adder(host, number)
            self.adder_pids.append(process.record.pid)
        config = folder / "controller.toml"
        config.write_text(self._controller_config())
        self.testbed.start(
            "controller",
            daemons.controller_command(config),
            environment=controller_environment(folder),
            ready_timeout_s=_READY_S,
        )

    def restart_adder(self, place: int) -> None:
        """Start the softswitch again that was killed; `place`: its host's among the adders."""
        process = self._run_adder(self._adders[place], place + 1)
        self.adder_pids[place] = process.record.pid

    def _start_adder(self, name: str, number: int) -> ManagedProcess:
        """Start softswitch on a host, behind a pair of interfaces of its own."""
        host = host_named(self.testbed.topology, name)
        namespace = self._namespace(host)
        create_internal_pair(_KERNEL_END, _SWITCH_END, namespace=namespace)

        def enter(route: Any) -> None:
            index = interface_index(route, _KERNEL_END)
            route.link("set", index=index, address=_KERNEL_MAC)
            _enter_route(route, service_address(name), _KERNEL_END, _SERVICE_MAC)

        namespaces.call_with_route(namespace, enter)
        forward(namespace)
        return self._run_adder(name, number)

    def _run_adder(self, name: str, number: int) -> ManagedProcess:
        host = host_named(self.testbed.topology, name)
        switch = self._switch(name, number)
        command = daemons.switch_command(
            daemons.SwitchSoftware(),
            switch,
            port_specs={1: f"veth:{_SWITCH_END}"},
            grpc_address=self.testbed.address_of(switch),
            run_directory=self.testbed.run_directory,
        )
        return self.testbed.start(switch.name, command, node=host, ready_timeout_s=_READY_S)

    def _switch(self, host: str, number: int) -> Switch:
        return Switch(
            name=adder_name(host),
            device_id=number,
            address=service_address(host),
            mac=_SERVICE_MAC,
        )

    def _controller_config(self) -> str:
        """Return the controller's file: each softswitch has all workers at its port 1."""
        folder = self.testbed.run_directory
        text = _lines(
            listen=self.controller_address,
            database=str(folder / "controller.sqlite3"),
            variant="wide",
            credentials=str(role_folder(folder, Role.CONTROLLER)),
        )
        for number, host in enumerate(self._adders, 1):
            switch = self._switch(host, number)
            text += "\n[[switch]]\n" + _lines(
                name=switch.name,
                on_host=host if host in WORKERS else "",
                address=self.testbed.address_of(switch),
                device_id=switch.device_id,
                service_address=switch.address,
                service_mac=switch.mac,
                credentials=str(programming_folder(folder)),
            )
            for worker in WORKERS:
                place = host_named(self.testbed.topology, worker)
                text += "\n[[switch.host]]\n" + _lines(
                    name=worker, port=1, address=place.address, mac=_KERNEL_MAC
                )
        return text


def routes(topology: Topology, switch: Switch) -> list[tuple[str, str, str]]:
    """Return (address, interface, MAC address of the next hop) for every station.

    Leaves reach the hosts of other leaves through the spine; there is one.
    """
    spine = next(each for each in topology.switches if each.level > 0)
    found: list[tuple[str, str, str]] = []
    for host in topology.hosts:
        leaf = topology.switch_of(host)
        if leaf == switch:
            interface, mac = topology.link_of(host).switch_interface, host.mac
        else:
            towards = leaf if switch == spine else spine
            interface = next(
                end.interface
                for end in topology.ports_of(switch)
                if not isinstance(end.link, Link) and towards.name in end.link.ends
            )
            mac = towards.mac
        found += [(host.address, interface, mac), (service_address(host.name), interface, mac)]
    return found


def forward(namespace: str) -> None:
    """Let the kernel forward IPv4 in a namespace."""
    setting = Path("/proc/sys/net/ipv4/ip_forward")  # of the namespace of the thread that writes
    namespaces.call_in_namespace(namespace, lambda: setting.write_text("1"))


def _enter_route(route: Any, address: str, interface: str, mac: str) -> None:
    index = interface_index(route, interface)
    route.neigh("add", dst=address, lladdr=mac, ifindex=index, state=_PERMANENT)
    route.route("add", dst=f"{address}/32", oif=index, scope=_LINK_SCOPE)


def _enter_controls(
    name: str, others: Sequence[str], gateway: str, interface: str, route: Any
) -> None:
    """Enter routes of a host to others whose connections use a congestion control."""
    index = interface_index(route, interface)
    metrics = {"metrics": {"cc_algo": name}} if name else {}
    for address in others:
        route.route("replace", dst=f"{address}/32", gateway=gateway, oif=index, **metrics)


def _lines(**values: str | int) -> str:
    """Return TOML: a JSON string is a basic string there."""
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())


def module_environment() -> dict[str, str]:
    """Return variables of processes that load modules of this checkout."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return {**_THREADS, "PYTHONPATH": path}


def start_module(
    testbed: Testbed, name: str, module: str, words: Sequence[str], **more: Any
) -> ManagedProcess:
    """Start a module of this folder as a process of a testbed."""
    return testbed.start(name, [sys.executable, "-m", f"{__package__}.{module}", *words], **more)
