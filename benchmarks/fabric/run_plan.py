# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the processes of one run do, as a JSON object: who trains what, by which contender."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final, Self

from benchmarks.fabric.settings import Cell, ClusterSize
from benchmarks.fabric.tasks import TaskPlan
from benchmarks.simulator.traces import ComputeSetting, ComputeTrace, LinkSetting
from switchfold.hostlib.parameter_server.switch_groups.options import SwitchGroupOptions
from switchfold.hostlib.parameter_server.tables import TensorDefinition
from switchfold.hostlib.parameter_server.transfers import TransferOptions

BLOCK_VALUES: Final = 4096
"""Values of a block on a server."""
AT_ONCE_S: Final = 1e-6
"""Wait for a grant where there is no scheduler."""
FIRST_WAIT_S: Final = 60.0
"""Where there is one: until it has said how long its workers wait."""


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """One run of one contender in one cell."""

    job: str
    """Its name at the scheduler, another one for each run."""
    job_token: str
    """Of the job in which workers have sessions, if the switch adds up."""
    is_served: bool
    is_scheduled: bool
    is_stepwise: bool
    is_grouping: bool
    is_switched: bool
    is_relaying: bool
    is_chained: bool
    workload: str
    num_workers: int
    seed: int
    links: str
    computing: str
    rate_bits_per_s: int
    num_values: int
    learning_rate: float
    target: float
    limit_s: float
    """After which a run ends without its target."""
    most_iterations: int
    """Of a worker."""
    data: str
    folder: str
    """For what processes leave to the rig."""
    controller: str
    addresses: tuple[str, ...]
    """Of the workers' hosts, then the server's, then the one of a replica."""
    peer_port: int
    """Where workers listen that sum among themselves."""
    server_credentials: str
    """Folder of the server's certificate for the controller."""

    def request(self, verb: str, **more: Any) -> dict[str, Any]:
        """Return what to ask all processes for."""
        return {"verb": verb, "plan": asdict(self), **more}

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> Self:
        """Read what `request` made."""
        raw: Mapping[str, Any] = request["plan"]
        plan: dict[str, Any] = {field.name: raw[field.name] for field in fields(cls)}
        plan["addresses"] = tuple(plan["addresses"])
        return cls(**plan)

    @property
    def size(self) -> ClusterSize:
        """The cluster."""
        return ClusterSize(
            num_workers=self.num_workers,
            num_values=self.num_values,
            rate_bits_per_s=self.rate_bits_per_s,
        )

    @property
    def cell(self) -> Cell:
        """The setting."""
        return Cell(
            links=LinkSetting(self.links),
            computing=ComputeSetting(self.computing),
            seed=self.seed,
        )

    @property
    def task(self) -> TaskPlan:
        """What workers train."""
        return TaskPlan(
            workload=self.workload,
            num_workers=self.num_workers,
            seed=self.seed,
            learning_rate=self.learning_rate,
            data=self.data,
        )

    @property
    def computing_times(self) -> ComputeTrace:
        """How long workers compute."""
        return self.size.compute_trace(self.cell)

    @property
    def stop_file(self) -> Path:
        """A worker that has a good enough model makes this file, with the last iteration in it."""
        return Path(self.folder) / f"{self.job}.stop"

    def updates_file(self, worker: int) -> Path:
        """What a worker has sent."""
        return Path(self.folder) / f"{self.job}-{worker}.npz"

    @property
    def model_file(self) -> Path:
        """The final model."""
        return Path(self.folder) / f"{self.job}-model.npy"

    @property
    def replica_file(self) -> Path:
        """The final model of the replica."""
        return Path(self.folder) / f"{self.job}-replica.npy"

    @property
    def server_address(self) -> str:
        """Of the workers' server."""
        return self.addresses[self.num_workers]

    @property
    def staleness(self) -> int | None:
        """How far a server's workers may be ahead of each other; None: any number of iterations."""
        return 0 if self.is_stepwise and self.is_served else None

    def tensor(self, *, is_mean: bool) -> TensorDefinition:
        """Return the model as servers have it; `is_mean`: of the updates of an iteration."""
        return TensorDefinition(
            name="model",
            num_values=self.num_values,
            block_values=BLOCK_VALUES,
            staleness=self.staleness,
            is_mean=is_mean,
        )

    def switch_groups(self, credentials: str) -> SwitchGroupOptions | None:
        """Return how the server leases rows of its switch; None: it does not."""
        if not self.is_switched:
            return None
        return SwitchGroupOptions(
            controller=self.controller,
            job=self.job,
            token=os.environ["SWITCHFOLD_TOKEN"],
            credentials=credentials,
            job_token=self.job_token,
        )

    def transfers(self, credentials: str | None, place: int) -> TransferOptions:
        """Return the options of a station; `place`: of its host. Without a scheduler, nobody is at
        the address, and updates leave at once.
        """
        nobody = f"unix:{self.folder}/nobody"
        is_bounded = self.is_scheduled and not self.is_stepwise
        is_worker = place < self.num_workers
        return TransferOptions(
            controller=self.controller if self.is_scheduled else nobody,
            job=self.job,
            host=self.size.hosts[place],
            tau_max=self.size.tau_max if is_bounded else None,
            staleness=self.staleness,
            aggregate=self.is_grouping and is_worker,
            relay_models=self.is_relaying and is_worker,
            token=os.environ["SWITCHFOLD_TOKEN"],
            job_token=self.job_token if self.is_switched else "",
            credentials=credentials,
            grant_wait_s=FIRST_WAIT_S if self.is_scheduled else AT_ONCE_S,
        )
