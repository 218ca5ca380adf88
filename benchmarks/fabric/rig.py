# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A testbed with workers, two servers and the controller; it trains by one contender at a time."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, final

import numpy as np

from benchmarks.fabric.contenders import FabricContender
from benchmarks.fabric.link_use import sampled_link
from benchmarks.fabric.run_plan import RunPlan
from benchmarks.fabric.run_record import FabricRun, FabricRunError, SentUpdates
from benchmarks.fabric.settings import Cell, ClusterSize, RateOverTime
from benchmarks.fabric.tasks import FabricWorkload, TaskPlan, write_data
from benchmarks.support.processor import read_times
from benchmarks.support.transfers import restart_controller
from benchmarks.transport.fabrics import module_environment
from switchfold.bmv2_topos import Testbed, single_switch
from switchfold.bmv2_topos.network.rate_trace import changing_rates
from switchfold.bmv2_topos.processes.processes import read_records
from switchfold.controller.cli.tolerance.ranks import TrainingRanks

PEER_PORT: Final = 29_900
_SPARE_S: Final = 180.0
"""How much longer than its limit a run may take to end."""


@dataclass(frozen=True, kw_only=True)
class RunLimits:
    """When runs end."""

    target: float
    limit_s: float
    most_iterations: int = 1 << 20


@final
class FabricRig:
    """Up until the end of a `with` block."""

    def __init__(
        self, workload: FabricWorkload, size: ClusterSize, transfers: Mapping[str, str]
    ) -> None:
        """Make nothing yet. `transfers`: TOML values of the controller's table [transfers]."""
        self.size, self.workload = size, workload
        # The last host has the replica of a chain: its link keeps the nominal rate.
        topology = single_switch(size.num_workers + 2, rate_bits_per_s=size.rate_bits_per_s)
        self.testbed = Testbed(topology, name=f"fb{os.getpid()}")
        module = f"{__package__}.process"
        self._ranks = TrainingRanks(self.testbed, topology.hosts, module, module_environment())
        self._transfers = transfers
        self._stack = ExitStack()
        self._num_runs = 0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self._ranks)
            values = {**self._transfers, "log": json.dumps(self.transfer_log)}
            restart_controller(self.testbed, values)
            write_data(self.workload.name, self._data)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.__exit__(exc_type, exc, traceback)

    @property
    def _data(self) -> Path:
        return self.testbed.run_directory / "data.npz"

    @property
    def transfer_log(self) -> str:
        """File of the controller's timeline."""
        return str(self.testbed.run_directory / "transfers.jsonl")

    def run(
        self, contender: FabricContender, cell: Cell, learning_rate: float, limits: RunLimits
    ) -> FabricRun:
        """Train once; verify the model. Raises FabricRunError and ToleranceRunError."""
        plan = self._plan(contender, cell, learning_rate, limits)
        port, tail_port = (each["port"] for each in self._ask(plan, "open")[-2:])
        if plan.is_chained:
            self._ask(plan, "chain", port=tail_port)
        self._ask(plan, "join", port=port)
        self._ask(plan, "start")
        rates = RateOverTime(size=self.size, trace=self.size.link_trace(cell))
        changes = rates.changes(limits.limit_s + _SPARE_S)
        before = self._processor()
        watched = sampled_link(self.testbed, self.size.hosts[-1])
        with changing_rates(self.testbed.link_rates, changes), watched as link:
            began_s = time.monotonic()
            answers = self._ask(plan, "train")
        after = self._processor()
        left = self._ask(plan, "leave")
        served, copied = self._ask(plan, "close")[-2:]
        if len({each.get("checksum") for each in left[: plan.num_workers]}) != 1:
            raise FabricRunError(f"{contender.name}, {cell.name}: workers have different models")
        record = FabricRun(
            contender=contender.name,
            cell=cell,
            learning_rate=learning_rate,
            began_s=began_s,
            rows=[answer["rows"] for answer in answers[: plan.num_workers]],
            worker_counters=total_counters(answers[: plan.num_workers]),
            commits=served["commits"],
            num_copied=len(copied["commits"]),
            reads=[(time_s, worker) for time_s, worker in served["reads"]],
            link_samples=link.samples,
            server_counters=served["counters"],
            processor_s={name: after[name] - before[name] for name in after},
            job=plan.job,
        )
        record.verify(self._sent(plan), plan.task.make(0).start())
        return record

    def task(self, cell: Cell, learning_rate: float) -> TaskPlan:
        """Return what the workers of a run train."""
        return TaskPlan(
            workload=self.workload.name,
            num_workers=self.size.num_workers,
            seed=cell.seed,
            learning_rate=learning_rate,
            data=str(self._data),
        )

    def _plan(
        self, contender: FabricContender, cell: Cell, learning_rate: float, limits: RunLimits
    ) -> RunPlan:
        self._num_runs += 1
        folder = self.testbed.run_directory
        return RunPlan(
            job=f"run-{self._num_runs}",
            job_token=secrets.token_hex(16),
            is_served=contender.is_served,
            is_scheduled=contender.is_scheduled,
            is_stepwise=contender.is_stepwise,
            is_grouping=contender.is_grouping,
            is_switched=contender.is_switched,
            is_relaying=contender.is_relaying,
            is_chained=contender.is_chained,
            workload=self.workload.name,
            num_workers=self.size.num_workers,
            seed=cell.seed,
            links=cell.links.value,
            computing=cell.computing.value,
            rate_bits_per_s=self.size.rate_bits_per_s,
            num_values=self.size.num_values,
            learning_rate=learning_rate,
            target=limits.target,
            limit_s=limits.limit_s,
            most_iterations=limits.most_iterations,
            data=str(self._data),
            folder=str(folder),
            controller=self.testbed.controller_address,
            addresses=tuple(host.address for host in self.testbed.topology.hosts),
            peer_port=PEER_PORT + self._num_runs,
            server_credentials=str(self.testbed.server_credentials.folder),
        )

    def _ask(self, plan: RunPlan, verb: str, **more: Any) -> list[dict[str, Any]]:
        where = f"{plan.job}, {plan.cell.name}"
        return self._ranks.ask(plan.request(verb, **more), plan.limit_s + _SPARE_S, where)

    def _processor(self) -> dict[str, float]:
        """Return processor seconds by kind of process, and of the machine."""
        pids: dict[str, list[int]] = {"controller": [], "switch": [], "server": [], "workers": []}
        servers = tuple(f"-{host.name}" for host in self.testbed.topology.hosts[-2:])
        for record in read_records(self.testbed.run_directory):
            if record.name == "controller":
                pids["controller"].append(record.pid)
            elif record.name == self.testbed.switch.name:
                pids["switch"].append(record.pid)
            else:
                kind = "server" if record.name.endswith(servers) else "workers"
                pids[kind].append(record.pid)
        found: dict[str, float] = {}
        for kind, each in pids.items():
            times = read_times(each)
            found[kind] = sum(times.switches_s)
            found["busy"], found["total"] = times.busy_s, times.total_s
        return found

    def _sent(self, plan: RunPlan) -> SentUpdates:
        """Read what workers have left, and remove it."""
        by_version: dict[int, list[Any]] = {}
        for worker in range(self.size.num_workers):
            path = plan.updates_file(worker)
            with np.load(path) as found:
                for version, update in zip(found["versions"], found["updates"], strict=True):
                    by_version.setdefault(int(version), []).append(update)
            path.unlink()
        model = np.load(plan.model_file)
        plan.model_file.unlink()
        plan.stop_file.unlink(missing_ok=True)
        replica = None
        if plan.is_chained:
            replica = np.load(plan.replica_file)
            plan.replica_file.unlink()
        return SentUpdates(by_version=by_version, model=model, replica=replica)


def total_counters(answers: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the sums of the workers' counters, by name."""
    return dict(sum((Counter[str](answer["counters"]) for answer in answers), Counter[str]()))


def waits_for_grants(log: str, job: str) -> list[float]:
    """Return how long the scheduler had each request of a job until it granted it, in seconds."""
    asked: dict[tuple[int, int], float] = {}
    waits: list[float] = []
    with open(log, encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            if event["job"] != job or "transfer" not in event:  # as of allreduces
                continue
            key = event["worker"], event["transfer"]
            if event["event"] == "requested":
                asked[key] = event["time"]
            elif event["event"] == "granted" and key in asked:
                waits.append(event["time"] - asked.pop(key))
    return waits
