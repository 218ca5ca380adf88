# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Workers of a testbed: the environment of each, and one process per host that runs to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import ProcessTimeoutError
from ..topology.topology import Host, Switch, Topology
from .processes import ManagedProcess, log_tail
from .tokens import job_environment


@dataclass(frozen=True, kw_only=True)
class WorkerEndpoint:
    """A worker's host, link and controller."""

    worker_id: int
    num_workers: int
    host: Host
    switch: Switch
    switch_port: int
    """P4 port that the worker's link ends at."""
    controller_address: str
    mode: str
    switch_udp_port: int
    """Loopback port of the switch's end of the link in mode udp, else 0."""
    host_udp_port: int
    """Loopback port of the host's end of the link in mode udp, else 0."""
    token: str = field(default="", repr=False)
    """Token that the controller demands of workers; empty if it demands none."""
    credentials: Path | None = None
    """Folder with the workers' certificate; None: no TLS."""

    def environment(self, job: str) -> dict[str, str]:
        """Return the environment variables that pass all this to a worker."""
        variables = {
            "SWITCHFOLD_CONTROLLER": self.controller_address,
            "SWITCHFOLD_JOB": job,
            "SWITCHFOLD_WORKER_ID": str(self.worker_id),
            "SWITCHFOLD_NUM_WORKERS": str(self.num_workers),
            "SWITCHFOLD_INGRESS_PORT": str(self.switch_port),
            "SWITCHFOLD_ADDRESS": self.host.address,
            "SWITCHFOLD_MAC": self.host.mac,
            "SWITCHFOLD_TOKEN": self.token,
            "SWITCHFOLD_CREDENTIALS": str(self.credentials or ""),
        }
        if self.mode == "veth":
            return {
                **variables,
                "SWITCHFOLD_TRANSPORT": "udp",
                "SWITCHFOLD_PEER_ADDRESS": self.host.address,
                "SWITCHFOLD_INTERFACE": self.host.interface,
            }
        return {
            **variables,
            "SWITCHFOLD_TRANSPORT": "tunnel",
            "SWITCHFOLD_PEER_ADDRESS": "127.0.0.1",
            "SWITCHFOLD_TUNNEL_LOCAL": f"127.0.0.1:{self.host_udp_port}",
            "SWITCHFOLD_TUNNEL_SWITCH": f"127.0.0.1:{self.switch_udp_port}",
        }


def endpoint_of(
    topology: Topology,
    worker_id: int,
    *,
    controller_address: str,
    mode: str,
    udp_ports: Mapping[str, tuple[int, int]] | None = None,
) -> WorkerEndpoint:
    """Return the endpoint of a topology's worker; `udp_ports` are by link name, in mode udp.

    It has neither token nor credentials.
    """
    host = topology.host_of(worker_id)
    link = topology.link_of(host)
    switch_udp_port, host_udp_port = (udp_ports or {}).get(link.name, (0, 0))
    return WorkerEndpoint(
        worker_id=worker_id,
        num_workers=len(topology.hosts),
        host=host,
        switch=topology.switch_of(host),
        switch_port=link.port,
        controller_address=controller_address,
        mode=mode,
        switch_udp_port=switch_udp_port,
        host_udp_port=host_udp_port,
    )


@dataclass(frozen=True, kw_only=True)
class WorkerResult:
    """How a worker ended."""

    worker_id: int
    exit_status: int
    """-N if signal N ended the worker."""
    output: str
    """Standard output and standard error together."""
    log: Path


StartWorker = Callable[[WorkerEndpoint, str, Sequence[str], Mapping[str, str]], ManagedProcess]


def run_workers(
    start: StartWorker,
    endpoints: Sequence[WorkerEndpoint],
    command: Sequence[str] | Callable[[WorkerEndpoint], Sequence[str]],
    *,
    job: str,
    timeout_s: float,
    environment: Mapping[str, str],
) -> list[WorkerResult]:
    """Start one process per endpoint and wait for all; results in the order of worker ids.

    They get a new job token, unless `environment` has one for them and their parameter servers.
    Raises ProcessTimeoutError, after stopping all, when any still runs after `timeout_s`.
    """
    started: list[tuple[WorkerEndpoint, ManagedProcess]] = []
    deadline = time.monotonic() + timeout_s
    common = {**job_environment(), **environment}
    try:
        for endpoint in endpoints:
            words = command(endpoint) if callable(command) else command
            variables = {**endpoint.environment(job), **common}
            name = f"{job}-{endpoint.host.name}"
            started.append((endpoint, start(endpoint, name, words, variables)))
        return [_collect(endpoint, process, deadline) for endpoint, process in started]
    except ProcessTimeoutError as exc:
        running = [
            f"worker {endpoint.worker_id}:\n{log_tail(process.log)}"
            for endpoint, process in started
            if process.popen.poll() is None
        ]
        raise ProcessTimeoutError(
            f"job {job} did not end within {timeout_s} s; still running were\n" + "\n".join(running)
        ) from exc
    finally:
        for _, process in started:
            process.stop()


def _collect(endpoint: WorkerEndpoint, process: ManagedProcess, deadline: float) -> WorkerResult:
    status = process.wait(timeout_s=max(0.0, deadline - time.monotonic()))
    return WorkerResult(
        worker_id=endpoint.worker_id,
        exit_status=status,
        output=process.log.read_text(errors="replace"),
        log=process.log,
    )
