# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Two controller processes with one PostgreSQL database, softswitches, and workers on loopback."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import grpc
from finsy.proto import U128, p4r

from cable import Cable
from postgres_server import PostgresServer
from switch_process import softswitch_command
from switchfold.bmv2_topos import Topology
from switchfold.bmv2_topos.config import source_root
from switchfold.bmv2_topos.processes.daemons import port_specs
from switchfold.bmv2_topos.processes.free_ports import free_port
from switchfold.bmv2_topos.processes.worker_runs import WorkerEndpoint, endpoint_of
from switchfold.bmv2_topos.topology.fabrics import leaf_spine
from switchfold.bmv2_topos.topology.topology import Host, Switch, single_switch
from switchfold.controller.api.endpoint import connect
from switchfold.controller.api.operator_api import operator_pb2 as pb
from switchfold.controller.api.operator_client import OperatorClient
from switchfold.controller.errors import ControllerUnreachableError
from time_bound import wait_until

NUM_HOSTS = 3
LEASE_S = 3.0
RECONCILE_S = 1.0
_DATAGRAMS = socket.SOCK_DGRAM


def leaves_and_root() -> Topology:
    """Return a host at each of leaves s1 and s2, and the root s3, without limits of rate."""
    return leaf_spine(2, 1, 1, host_rate_bits_per_s=None, uplink_rate_bits_per_s=None)


class ControllerProcess:
    """One of the two: its cables to database and switches, and what it has said."""

    def __init__(
        self, folder: Path, name: str, switch_ports: Mapping[str, int], database: PostgresServer
    ) -> None:
        self.log = folder / f"{name}.log"
        self.address = f"127.0.0.1:{free_port()}"
        self.switches = {switch: Cable(port) for switch, port in switch_ports.items()}
        self.switch = next(iter(self.switches.values()))
        self.database = Cable(database.port, database.address)
        self._config = folder / f"{name}.toml"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, database_name: str, server: PostgresServer, topology: Topology) -> None:
        fabric = "".join(self._described(topology, switch) for switch in topology.switches)
        fabric += "".join(
            f'[[link]]\na = "{link.a}"\na_port = {link.a_port}\n'
            f'b = "{link.b}"\nb_port = {link.b_port}\n'
            for link in topology.switch_links
        )
        self._config.write_text(
            f'listen = "{self.address}"\ninsecure = true\n'
            f'database = "{server.url(self.database.port, database_name)}"\n'
            f"leader_lease_s = {LEASE_S}\nreconcile_interval_s = {RECONCILE_S}\n"
            # Nobody is evicted because a process is slow on a busy machine.
            f"lease_s = 60.0\nreconnect_grace_s = 60.0\nresume_grace_s = 120.0\n"
            f"no_route_s = 600.0\nswitch_gone_s = 600.0\n"
            f"{fabric}"
        )
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable, "-m", "switchfold.controller", "controller", "run",
                    "--config", str(self._config),
                ],
                stdout=log, stderr=log, cwd=source_root(),
            )  # fmt: skip

    def _described(self, topology: Topology, switch: Switch) -> str:
        """Return a switch and its hosts for the configuration."""
        port = self.switches[switch.name].port
        hosts = "".join(
            f'[[switch.host]]\nname = "{host.name}"\nport = {topology.link_of(host).port}\n'
            f'address = "{host.address}"\nmac = "{host.mac}"\n'
            for host in topology.hosts
            if topology.switch_of(host) is switch
        )
        return (
            f'[[switch]]\nname = "{switch.name}"\naddress = "127.0.0.1:{port}"\n'
            f"device_id = {switch.device_id}\n"
            f'service_address = "{switch.address}"\nservice_mac = "{switch.mac}"\n{hosts}'
        )

    @property
    def said(self) -> str:
        return self.log.read_text("utf-8")

    def shown(self) -> pb.Controller:
        """Return what it answers about itself; nothing if it does not answer."""
        try:
            return OperatorClient(self.address).show_controller()
        except ControllerUnreachableError:
            return pb.Controller()

    def until(self, role: str) -> None:
        """Wait until it is leader or standby."""

        def lives_and_is_it() -> bool:
            assert self.is_running, self.said
            return self.shown().role == role

        wait_until(lives_and_is_it, lambda: f"{role}: {self.said}")

    def term(self) -> int:
        """Return the term in which it leads, once it does."""
        terms: list[int] = []

        def leads() -> bool:
            shown = self.shown()
            terms.append(shown.term)
            return shown.role == "leader"

        wait_until(leads, lambda: f"leader: {self.said}")
        return terms[-1]

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait()

    def stop(self) -> int:
        self._signal(signal.SIGTERM)
        assert self._process is not None
        return self._process.wait(60)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def _signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.go_on()
            self.kill()
        for switch in self.switches.values():
            switch.__exit__(None, None, None)
        self.database.__exit__(None, None, None)


class ControllerPair:
    """Of the two controllers, one leads and the other stands by; workers know only the leader."""

    def __init__(
        self,
        folder: Path,
        server: PostgresServer,
        database_name: str,
        topology: Topology | None = None,
    ) -> None:
        """`topology`: NUM_HOSTS hosts at one switch, if none is given."""
        self.topology = topology or single_switch(NUM_HOSTS)
        self._udp_ports = {
            link.name: (free_port(_DATAGRAMS), free_port(_DATAGRAMS))
            for link in (*self.topology.links, *self.topology.switch_links)
        }
        self._stack = ExitStack()
        self._server, self._name = server, database_name
        server.make_database(database_name)
        self._p4runtime_ports = {switch.name: free_port() for switch in self.topology.switches}
        for switch in self.topology.switches:
            self._stack.callback(self._start_switch(folder, switch))
        self.leader = ControllerProcess(folder, "one", self._p4runtime_ports, server)
        self.standby = ControllerProcess(folder, "other", self._p4runtime_ports, server)
        for controller in (self.leader, self.standby):
            self._stack.callback(controller.close)

    def __enter__(self) -> ControllerPair:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def settle(self) -> None:
        """Start what does not run, wait until one leads and knows of the other; end all jobs."""
        for controller in (self.leader, self.standby):
            if not controller.is_running:
                self.start(controller)
            controller.go_on()  # an earlier test may have failed
            for cable in (controller.database, *controller.switches.values()):
                if cable.is_cut:
                    cable.mend()
        self.until_one_leads()
        client = OperatorClient(f"{self.leader.address},{self.standby.address}")
        for job in client.list_jobs():
            client.stop_job(job.name)

    def until_one_leads(self) -> None:
        """Wait until one leads and the other stands by, and note which."""
        both = (self.leader, self.standby)

        def is_settled() -> bool:
            assert all(controller.is_running for controller in both)
            shown = {controller: controller.shown() for controller in both}
            roles = {one.role: controller for controller, one in shown.items()}
            if roles.keys() != {"leader", "standby"}:
                return False
            self.leader, self.standby = roles["leader"], roles["standby"]
            return all(len(one.controllers) == 2 for one in shown.values())

        wait_until(is_settled, lambda: f"a leader and a standby: {[one.said for one in both]}")

    def start(self, controller: ControllerProcess) -> None:
        controller.start(self._name, self._server, self.topology)

    def endpoint(self, worker_id: int) -> WorkerEndpoint:
        """Return what a worker gets to know."""
        return endpoint_of(
            self.topology,
            worker_id,
            controller_address=self.leader.address,
            mode="udp",
            udp_ports=self._udp_ports,
        )

    def namespace_of(self, host: Host) -> None:
        """Hosts of this pair are plain processes."""

    def write(self, election_id: int, switch: str = "s1") -> tuple[grpc.StatusCode, str]:
        """Write nothing to a switch under an election id; return the switch's answer."""
        request = p4r.WriteRequest(
            device_id=self.topology.switch_named(switch).device_id,
            election_id=U128.encode(election_id),
        )
        with grpc.insecure_channel(f"127.0.0.1:{self._p4runtime_ports[switch]}") as channel:
            call = channel.unary_unary(
                "/p4.v1.P4Runtime/Write", request_serializer=p4r.WriteRequest.SerializeToString
            )
            try:
                call(request, timeout=60.0)
            except grpc.RpcError as error:
                return error.code(), error.details()
        return grpc.StatusCode.OK, ""

    def _start_switch(self, folder: Path, switch: Switch) -> Callable[[], None]:
        specs = port_specs(self.topology, switch, udp_ports=self._udp_ports)
        ports = tuple(f"{port}={spec}" for port, spec in specs.items())
        address = f"127.0.0.1:{self._p4runtime_ports[switch.name]}"
        path = folder / f"{switch.name}.log"
        with path.open("ab") as log:
            process = subprocess.Popen(
                softswitch_command(address, ports, switch.device_id), stdout=log, stderr=log
            )

        def answers() -> bool:
            assert process.poll() is None, path.read_text()
            try:
                connect(address, 1.0)
            except OSError:
                return False
            return True

        def stop() -> None:
            process.terminate()
            process.wait()

        wait_until(answers, f"an answer of {switch.name}")
        return stop
