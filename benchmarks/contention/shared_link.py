# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs and TCP flows over two switches with one link between them, measured at the same time."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from switchfold.bmv2_topos import Testbed, Topology
from switchfold.bmv2_topos.errors import ProcessFailedError
from switchfold.bmv2_topos.processes.processes import ManagedProcess, log_tail
from switchfold.bmv2_topos.topology.topology import (
    Host,
    Link,
    SwitchLink,
    join_host,
    make_host,
    make_switch,
)
from switchfold.hostlib.config import SessionOptions

WORKER = Path(__file__).with_name("shared_link_worker.py")
SETTLE_S = 1.0
"""Time before counting starts, in which windows get past slow start."""
PROCESS_TIMEOUT_S = 60.0
"""Limit for processes to start and join, and to end after their measured time."""
TIMES = "times"


@dataclass(frozen=True, kw_only=True)
class Load:
    """Jobs and flows that share the link."""

    jobs: int
    """Number of jobs, each with one worker behind each switch."""
    flows: int = 0
    """Number of TCP flows from the first switch's hosts to the second's."""
    tcp: str = "cubic"
    """Congestion control of the flows."""
    tcp_ecn: bool = True
    rate_bits_per_s: int = 100_000_000
    queue_packets: int = 660
    """Length of the link's queue in each direction; it drops further packets."""
    slots: int = 0
    """Slots per job; 0: the controller chooses."""
    window: int = SessionOptions().window
    """Most chunks that a worker has in flight."""
    elements: int = 65_536
    """Values of each int32 tensor."""


Report = dict[str, Any]


def two_switches(hosts_per_switch: int) -> Topology:
    """Return switches s1 and s2 with equally many hosts, joined by one link."""
    switches = (make_switch(1), make_switch(2))
    hosts: list[Host] = []
    links: list[Link] = []
    for switch in switches:
        for place in range(1, hosts_per_switch + 1):
            hosts.append(make_host(len(hosts) + 1, subnet=switch.device_id, place=place))
            links.append(join_host(hosts[-1], switch, place, None))
    port = hosts_per_switch + 1
    shared = SwitchLink(
        a="s1",
        a_port=port,
        b="s2",
        b_port=port,
        a_interface=f"s1-eth{port}",
        b_interface=f"s2-eth{port}",
        rate_bits_per_s=None,  # the switches shape it, in `measure`
    )
    return Topology(
        hosts=tuple(hosts), switches=switches, links=tuple(links), switch_links=(shared,)
    )


def measure(load: Load, seconds: float) -> dict[str, list[Report]]:
    """Run a load; return the report of each process, by the name of its job or flow.

    Workers check every sum. Raises TestbedError with the output of a process that failed.
    """
    pairs = load.jobs + load.flows
    topology = two_switches(pairs)
    shaping = f"rate_bits_per_s={load.rate_bits_per_s},queue_packets={load.queue_packets}"
    options = ["--impair", f"{pairs + 1}:out:{shaping}"]
    with Testbed(topology, switch_options=options, tcp_ecn=load.tcp_ecn) as testbed:
        started: dict[str, list[ManagedProcess]] = {}
        sizes = ["--slots", str(load.slots), "--window", str(load.window)]
        sizes += ["--elements", str(load.elements)]
        for number in range(load.jobs):
            name = f"job{number + 1}"
            started[name] = [
                start_worker(testbed, host, "job", sizes, job=(name, worker_id))
                for worker_id, host in enumerate((number, pairs + number))
            ]
        for number in range(load.jobs, pairs):
            receiver = start_worker(testbed, pairs + number, "receive", [])
            await_line(receiver, "listening")
            peer = ["--peer", topology.hosts[pairs + number].address, "--congestion", load.tcp]
            sender = start_worker(testbed, number, "send", peer)
            started[f"tcp{number - load.jobs + 1}"] = [receiver, sender]
        reports = run(testbed, [each for group in started.values() for each in group], seconds)
        return {name: [reports.pop(0) for _ in group] for name, group in started.items()}


def run(testbed: Testbed, processes: Sequence[ManagedProcess], seconds: float) -> list[Report]:
    """Let started processes count for `seconds`, and return their reports."""
    for process in processes:
        await_line(process, "ready")
    begin_s = time.monotonic() + SETTLE_S
    path = testbed.run_directory / TIMES
    complete = path.with_suffix(".new")
    complete.write_text(f"{begin_s} {begin_s + seconds}")
    complete.rename(path)
    return [_report(process, SETTLE_S + seconds + PROCESS_TIMEOUT_S) for process in processes]


def start_worker(
    testbed: Testbed,
    host: int,
    role: str,
    arguments: Sequence[str],
    *,
    job: tuple[str, int] = ("none", 0),
    num_workers: int = 2,
) -> ManagedProcess:
    """Start a process on the host with this number; `job` holds the job's name and a worker id."""
    job_name, worker_id = job
    endpoint = testbed.endpoint(host)
    endpoint = dataclasses.replace(endpoint, worker_id=worker_id, num_workers=num_workers)
    environment: Mapping[str, str] = {**endpoint.environment(job_name), "OMP_NUM_THREADS": "1"}
    times = ["--times", str(testbed.run_directory / TIMES)]
    command = [sys.executable, str(WORKER), role, *times, *arguments]
    name = f"{role}-{endpoint.host.name}"
    return testbed.start(name, command, node=endpoint.host, environment=environment)


def await_line(process: ManagedProcess, line: str) -> None:
    """Wait until a process has printed a line; ProcessFailedError shows the end of its log."""
    deadline_s = time.monotonic() + PROCESS_TIMEOUT_S
    while line not in process.log.read_text().splitlines():
        if time.monotonic() > deadline_s or process.popen.poll() is not None:
            raise ProcessFailedError(f"{process.record.name}: {log_tail(process.log)}")
        time.sleep(0.02)


def _report(process: ManagedProcess, timeout_s: float) -> Report:
    status = process.wait(timeout_s=timeout_s)
    if status != 0:
        raise ProcessFailedError(
            f"{process.record.name} ended with status {status}:\n{log_tail(process.log)}"
        )
    return json.loads(process.log.read_text().splitlines()[-1])
