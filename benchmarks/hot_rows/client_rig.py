# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Workers and parameter servers on hosts around one switch, for measurements of single requests."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, final

import grpc
from finsy.proto import p4r, p4r_grpc

from switchfold.bmv2_topos import Testbed, single_switch
from switchfold.bmv2_topos.processes.processes import ManagedProcess
from switchfold.bmv2_topos.processes.tokens import job_environment
from switchfold.bmv2_topos.processes.worker_runs import run_workers
from switchfold.controller.cli.hot.plan import Offload, TablePlan, TableWorkload
from switchfold.controller.cli.hot.server import port_of
from switchfold.hostlib.credentials import Credentials, Role, role_name
from switchfold.hostlib.credentials.grpc_channels import open_channel

READY_S: Final = 60.0
TIMEOUT_S: Final = 900.0
JOB: Final = "clients"
ROOT: Final = Path(__file__).resolve().parents[2]
THREADS: Final = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


@dataclass(frozen=True, kw_only=True)
class RunFiles:
    """What a worker's process gets."""

    plan: Path
    switch: str
    """Address of the switch's P4Runtime server."""
    credentials: Path
    """For calls of it."""
    switch_pid: int
    peers: Path
    """Socket of the process that counts the peers of server 0."""
    servers: list[Path]
    options: dict[str, Any]

    def write(self, path: Path) -> None:
        """Write them as JSON."""
        path.write_text(json.dumps(self.__dict__, default=str), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> RunFiles:
        """Read what `write` wrote."""
        raw = json.loads(path.read_text(encoding="utf-8"))
        raw["servers"] = [Path(one) for one in raw["servers"]]
        return cls(**raw | {name: Path(raw[name]) for name in ("plan", "peers", "credentials")})


@final
class ClientRig:
    """A testbed with two parameter servers; one run."""

    def __init__(self, plan: TablePlan, *, variant: str = "narrow") -> None:
        self._plan = plan
        self._environment = {**THREADS, **job_environment()}
        size = plan.num_workers + plan.num_servers
        self.testbed = Testbed(single_switch(size), mode="veth", variant=variant)

    def run(self, module: str, options: dict[str, Any]) -> list[Any]:
        """Run a worker's module on each worker's host; return what each has recorded."""
        with self.testbed as testbed:
            folder = testbed.run_directory / "run"
            folder.mkdir()
            plan = replace(
                self._plan,
                controller=testbed.controller_address,
                job=JOB,
                server_credentials=str(testbed.server_credentials.folder),
            )
            plan.write(folder / "server.json")
            with self._servers(folder) as sockets:
                return self._run(plan, folder, sockets, module, options)

    @contextmanager
    def _servers(self, folder: Path) -> Iterator[list[Path]]:
        started: list[ManagedProcess] = []
        try:
            for shard in range(self._plan.num_servers):
                host = self.testbed.endpoint(self._plan.num_workers + shard).host
                words = (folder / "server.json", shard, host.address, folder / f"{shard}.sock")
                self._start("switchfold.controller.cli.hot.server", shard, words, started)
            self._start("benchmarks.hot_rows.peers", 0, (folder / "peers.sock",), started)
            yield [folder / f"{shard}.sock" for shard in range(self._plan.num_servers)]
        finally:
            for process in started:
                process.stop()

    def _start(
        self, module: str, shard: int, words: tuple[Any, ...], started: list[ManagedProcess]
    ) -> None:
        endpoint = self.testbed.endpoint(self._plan.num_workers + shard)
        started.append(
            self.testbed.start(
                f"{module.rpartition('.')[2]}{shard}",
                [sys.executable, "-m", module, *map(str, words), "{ready_fd}"],
                node=endpoint.host,
                environment={**endpoint.environment(JOB), **self._environment},
                ready_timeout_s=READY_S,
            )
        )

    def _run(
        self,
        plan: TablePlan,
        folder: Path,
        sockets: list[Path],
        module: str,
        options: dict[str, Any],
    ) -> list[Any]:
        testbed = self.testbed
        hosts = [testbed.endpoint(plan.num_workers + shard).host for shard in range(len(sockets))]
        ports = map(port_of, sockets)
        servers = tuple(zip((host.address for host in hosts), ports, strict=True))
        replace(plan, servers=servers).write(folder / "worker.json")
        status = testbed.status()
        files = RunFiles(
            plan=folder / "worker.json",
            switch=testbed.switch_address,
            credentials=testbed.switch_operator.folder,
            switch_pid=next(
                pid for name, pid, _ in status.processes if name == testbed.switch.name
            ),
            peers=folder / "peers.sock",
            servers=sockets,
            options=options,
        )
        files.write(folder / "files.json")
        records = [folder / f"worker{number}" for number in range(plan.num_workers)]
        results = run_workers(
            lambda endpoint, name, words, variables: testbed.start(
                name, words, node=endpoint.host, environment=variables
            ),
            [
                replace(testbed.endpoint(number), num_workers=plan.num_workers)
                for number in range(plan.num_workers)
            ],
            lambda endpoint: [
                *(sys.executable, "-m", module),
                *(str(folder / "files.json"), str(records[endpoint.worker_id])),
            ],
            job=JOB,
            timeout_s=TIMEOUT_S,
            environment=self._environment,
        )
        for result in results:
            if result.exit_status:
                raise SystemExit(f"worker {result.worker_id} failed:\n{result.output[-2000:]}")
        return [json.loads(record.read_text(encoding="utf-8")) for record in records]


def plan_of(num_workers: int, **rest: Any) -> TablePlan:
    """Return a plan of a job with hot rows."""
    return TablePlan(
        workload=TableWorkload.ZIPF_1070,
        offload=Offload.HOT,
        num_workers=num_workers,
        num_servers=2,
        **rest,
    )


def processor_s(pid: int) -> float:
    """Return the processor time of a process with all its threads."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def table_sizes(address: str, credentials: Path) -> dict[str, int]:
    """Return how many entries each table of a switch has, as its P4Runtime server says."""
    request = p4r.ReadRequest(device_id=1)
    request.entities.add().table_entry.SetInParent()
    sizes: dict[str, int] = {}
    server = role_name(Role.SWITCH, "s1")
    ours = Credentials(credentials)
    with open_channel(grpc, address, credentials=ours, server=server) as channel:
        stub: Any = p4r_grpc.P4RuntimeStub(channel)
        info = stub.GetForwardingPipelineConfig(
            p4r.GetForwardingPipelineConfigRequest(device_id=1)
        ).config.p4info
        names = {table.preamble.id: table.preamble.alias for table in info.tables}
        for answer in stub.Read(request):
            for entity in answer.entities:
                name = names[entity.table_entry.table_id]
                sizes[name] = sizes.get(name, 0) + 1
    return sizes
