# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Where drills happen: a testbed that serves one drill after the other, and the job of a drill."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self, final

from benchmarks.drills.back_network import add_back_network, back_address
from benchmarks.drills.clock_shift import ShiftedClock
from benchmarks.drills.drill import ALL, Drill, DrillFabric
from benchmarks.drills.small_disk import SmallDisk
from job_workers import WorkerProcess, Workers
from switchfold.bmv2_topos import Testbed, leaf_spine, single_switch
from switchfold.bmv2_topos.processes.daemons import Target
from switchfold.bmv2_topos.processes.processes import ProcessRecord, read_records
from switchfold.bmv2_topos.topology.topology import Topology
from switchfold.controller.api.operator_api import operator_pb2 as pb
from switchfold.controller.api.operator_client import OperatorClient
from switchfold.controller.errors import ControllerError, OperatorRefusedError
from time_bound import wait_until

VALUES: Final[Mapping[Target, int]] = {"softswitch": 20_000, "bmv2": 640}
"""Values of a tensor: a few milliseconds of either switch."""
LOG_LINES: Final = 40
"""Last ones of each log that a failed drill shows."""
SLOW_UPLINK: Final = 50_000_000
"""bit/s: two trees are faster than one."""


def topology_of(fabric: DrillFabric) -> Topology:
    """Return the network of a fabric."""
    if fabric is DrillFabric.ONE_SWITCH:
        return single_switch(len(ALL))
    if fabric is DrillFabric.ONE_TREE:
        return leaf_spine(2, 2, 2)
    return leaf_spine(2, 2, 2, uplink_rate_bits_per_s=SLOW_UPLINK)


def end_jobs(operator: OperatorClient) -> None:
    """End all live jobs, and wait until none is left."""
    for job in operator.list_jobs():
        with contextlib.suppress(OperatorRefusedError):  # it has just ended by itself
            operator.stop_job(job.name)
    wait_until(lambda: not operator.list_jobs(), lambda: f"jobs left: {operator.list_jobs()}")


@final
class Rig:
    """A testbed with a second network, a small disk for the database and a clock that can jump."""

    def __init__(
        self, fabric: DrillFabric, target: Target, folder: Path, *controller_options: str
    ) -> None:
        """`folder` is for files of the rig; `controller_options` go to the controller."""
        self.fabric, self.target = fabric, target
        self.clock = ShiftedClock(folder)
        self.disk = SmallDisk(folder / "disk")
        database = ("--database", str(self.disk.folder / "controller.sqlite3"))
        self.testbed = Testbed(
            topology_of(fabric),
            name=f"drill{os.getpid()}-{list(DrillFabric).index(fabric)}",
            target=target,
            variant="narrow",
            controller_options=(*database, *controller_options),
        )
        self._names = itertools.count()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.disk)
            stack.enter_context(self.testbed)
            add_back_network(self.testbed)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def operator(self) -> OperatorClient:
        """The controller's operator API."""
        return OperatorClient(self.testbed.controller_address)

    def record_of(self, name: str) -> ProcessRecord | None:
        """Return a process of the testbed, None if it does not run."""
        found = [p for p in read_records(self.testbed.run_directory) if p.name == name]
        return found[0] if found and found[0].is_leader_alive() else None

    def give_own_clock(self, start: Callable[[], None]) -> None:
        """Let `start`, which starts a process of the testbed, give it the rig's clock."""
        before = {name: os.environ.get(name) for name in self.clock.environment}
        os.environ.update(self.clock.environment)
        try:
            start()
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

    def lose(self, one: str, other: str, *, up: float, down: float) -> float:
        """Let a link lose these shares of what `one` sends, and of what it gets.

        Returns since when, by the monotonic clock.
        """
        shares = {sender: share for sender, share in ((one, up), (other, down)) if share}
        for sender in shares:  # so that the relays run when the time begins
            self.testbed.impair_link(one, other, "loss=0", sender=sender)
        begin_s = time.monotonic()
        for sender, share in shares.items():
            self.testbed.impair_link(one, other, f"loss={share}", sender=sender)
        return begin_s

    def carry(self) -> None:
        """Let all links carry all frames again."""
        topology = self.testbed.topology
        for link in topology.links:
            self.testbed.mend_link(link.host, link.switch)
        for cable in topology.switch_links:
            self.testbed.mend_link(cable.a, cable.b)
        self.testbed.clear_impairments()

    def restore(self) -> None:
        """Put everything back to work that a drill has broken; no job runs afterwards."""
        self.carry()
        self.clock.jump(0)
        self.disk.make_room()
        for switch in self.testbed.topology.switches:
            if self.record_of(switch.name) is None:
                self.testbed.start_switch(switch.name)
        if self.record_of("controller") is None:
            self.testbed.start_controller()
        operator = self.operator
        end_jobs(operator)
        for link in operator.list_links():
            operator.set_link(link.name, is_up=True)
        wait_until(
            lambda: all(each.state == "ready" for each in operator.list_switches()),
            lambda: f"switches that are ready: {operator.list_switches()}",
        )

    @contextmanager
    def job(self, drill: Drill) -> Generator[Scene]:
        """Run the job of a drill; all its workers sum when the block begins."""
        name = f"drill-{next(self._names)}"
        own: dict[int, dict[str, str]] = {}
        if drill.has_back_network:
            own = {w: {"SWITCHFOLD_PEER_ADDRESS": back_address(w)} for w in ALL}
        environment = {"VALUES": str(VALUES[self.target]), **drill.environment}
        if drill.have_own_clock:
            environment |= self.clock.environment
        job = Workers(self.testbed, name, drill.num_workers, own, **environment)
        with job as workers:
            yield Scene(self, name, job, dict(enumerate(workers)))


@final
class Scene:
    """The job of a drill, and what may fail around it."""

    def __init__(
        self, rig: Rig, job: str, workers: Workers, by_id: dict[int, WorkerProcess]
    ) -> None:
        self.rig, self.job = rig, job
        self._workers = workers
        self.workers = by_id

    @property
    def testbed(self) -> Testbed:
        return self.rig.testbed

    @property
    def shown(self) -> pb.Job:
        """The job, as the controller shows it."""
        return self.rig.operator.show_job(self.job)

    def describe(self) -> str:
        """Return what the workers, the controller and the switches say now: of failed drills."""
        last = {worker_id: worker.lines[-1:] for worker_id, worker in self.workers.items()}
        try:
            views = [str(view) for view in self.shown.views[-3:]]
        except ControllerError as error:
            views = [str(error)]
        names = ("controller", *(switch.name for switch in self.testbed.topology.switches))
        folder = self.testbed.run_directory
        logs = {name: (folder / f"{name}.log").read_text().splitlines() for name in names}
        ends = [f"{name}: {line}" for name in names for line in logs[name][-LOG_LINES:]]
        return "\n".join([f"the workers' last sums: {last}", "its views:", *views, *ends])

    @property
    def view(self) -> pb.JobView:
        """The newest view of the job."""
        return self.shown.views[-1]

    @property
    def roots(self) -> list[str]:
        """The root of each tree of the job."""
        return [tree.nodes[0].switch for tree in self.view.trees]

    def host_link(self, worker_id: int) -> tuple[str, str]:
        """Return both ends of the link of a worker's host: host and switch."""
        topology = self.testbed.topology
        host = topology.host_of(worker_id)
        return host.name, topology.switch_of(host).name

    def join(self, worker_id: int) -> None:
        """Start a worker that joins the running job."""
        self.workers[worker_id] = self._workers.join(worker_id)
