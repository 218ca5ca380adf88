# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A soak: mixed jobs with random drills for a long time, and what the processes hold meanwhile.

In the first fifth of the time the switch and the controller are restarted, too. Then they live to
the end, and what they hold then is compared with what they held at the beginning of that life.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

import numpy as np

from benchmarks.drills.back_network import back_address
from benchmarks.drills.drill import Drill, DrillFabric
from benchmarks.drills.failures import controller_killed
from benchmarks.drills.footprint import ProcessFootprint, namespaces_of, process_footprint
from benchmarks.drills.random_drill import RandomDrill, RandomEvent
from benchmarks.drills.scene import VALUES, Rig, Scene, end_jobs
from hot_drill import HotDrill, Victim
from job_workers import WorkerProcess, Workers, agree
from switchfold.bmv2_topos.processes.processes import read_records

WARM_UP: Final = 0.2
"""Share of the time in which switch and controller are restarted."""
CALM_EVENTS: Final = (RandomEvent.KILL, RandomEvent.JOIN, RandomEvent.CUT, RandomEvent.FLAP)
"""What happens afterwards."""
CALM_TENSORS: Final = 50
"""Tensors of a round between which nothing happens, for the latency."""
WORKER: Final = "worker among hosts"
RETAIN_BYTES: Final = 4 << 20
"""Results that a worker keeps for others: so few that a leak is not taken for them."""
LEAST_ROUNDS: Final = 4
_HOT_EVERY: Final = 3
"""Rounds from one death of a worker with hot rows to the next."""
_SUMMING: Final = Drill(name="soak", fails="nothing", act=controller_killed)


@dataclass
class SoakRecord:
    """What a soak has seen."""

    seconds: float = 0.0
    rounds: int = 0
    tensors: int = 0
    """Sums that were verified."""
    pushes: int = 0
    """To tables with hot rows, confirmed."""
    latencies_ms: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    """By round: median and longest time between two tensors while it was calm."""
    footprints: dict[str, list[ProcessFootprint]] = field(
        default_factory=dict[str, list[ProcessFootprint]]
    )
    """By process, a sample per round since the warm-up."""
    slots_left: int = 0
    """In use when all jobs had ended."""
    namespaces: tuple[set[str], set[str], set[str]] = (set(), set(), set())
    """Of the testbed: at the beginning, at the end, when it was down."""
    logs: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Lines of the controller's and the switch's log, since their last start."""


@final
class Soak:
    """Jobs over the switch, among hosts, with hot rows, and short ones, all at once."""

    def __init__(self, folder: Path, seed: int, say: Callable[[str], None]) -> None:
        """`folder` is for files of the testbed; `say` gets a line for each event."""
        self.record = SoakRecord()
        self._rig = Rig(DrillFabric.ONE_SWITCH, "softswitch", folder, "--no-route", "600")
        self._folder, self._seed, self._say = folder, seed, say
        self._pids: dict[str, int] = {}

    def run(self, seconds: float, rounds: int = LEAST_ROUNDS) -> SoakRecord:
        """Run for so long once all jobs run, and at least for so many rounds.

        Raises AssertionError or queue.Empty for a sum that is wrong or does not come.
        """
        name = self._rig.testbed.name
        with self._rig:
            before = namespaces_of(name)
            with self._jobs() as (scene, among_hosts, hot):
                begin_s = time.monotonic()
                warm = RandomDrill(scene, self._seed, self._say)
                self._rounds(warm, among_hosts, hot, begin_s + WARM_UP * seconds, 1)
                calm = RandomDrill(scene, self._seed, self._say, CALM_EVENTS)
                calm.take_over(warm)
                self._watch_footprints(scene, among_hosts[0], hot)
                self._rounds(calm, among_hosts, hot, begin_s + seconds, rounds)
                self.record.seconds = time.monotonic() - begin_s
                hot.check()
                self.record.pushes = sum(counts.num_pushes for counts in hot.counts)
            self._await_rest()
            at_end = namespaces_of(name)
            for log in ("controller", "s1"):
                text = (self._rig.testbed.run_directory / f"{log}.log").read_text()
                self.record.logs[log] = text.splitlines()
        self.record.namespaces = (before, at_end, namespaces_of(name))
        return self.record

    @contextmanager
    def _jobs(self) -> Generator[tuple[Scene, list[WorkerProcess], HotDrill]]:
        """Run the jobs that last for the whole soak."""
        testbed = self._rig.testbed
        own = {worker: {"SWITCHFOLD_PEER_ADDRESS": back_address(worker)} for worker in range(3)}
        options = {
            "SWITCHFOLD_PATH": "host",
            "VALUES": str(VALUES["softswitch"]),
            "RETAIN_BYTES": str(RETAIN_BYTES),
        }
        hot = HotDrill(testbed, self._folder, num_workers=2, num_servers=1, hot_keys=30)
        with (
            self._rig.job(_SUMMING) as scene,
            Workers(testbed, "hosts", 3, own, **options) as among_hosts,
            hot,
        ):
            yield scene, among_hosts, hot

    def _rounds(
        self,
        drill: RandomDrill,
        among_hosts: list[WorkerProcess],
        hot: HotDrill,
        end_s: float,
        least: int,
    ) -> None:
        """Go on until a time, and at least until there have been so many rounds of the soak."""
        while time.monotonic() < end_s or self.record.rounds < least:
            number = self.record.rounds
            self.record.rounds += 1
            drill.step()
            if number % _HOT_EVERY == 0:
                self._say("kill of a worker with hot rows")
                hot.kill(Victim.WORKER, 1)
            hot.await_progress()
            self._short_job(number)
            now_s = time.monotonic()
            for worker in among_hosts:
                worker.until_later(now_s)
            self._measure_calm(drill.scene.workers[min(drill.members)])
            workers = [*drill.scene.workers.values()]
            for group in (workers, among_hosts):
                agree(group)
                self._forget(group)
            self._sample()

    def _short_job(self, number: int) -> None:
        """Let a job of two workers begin, sum and end."""
        with Workers(self._rig.testbed, f"short-{number}", 2, VALUES="2000") as workers:
            for worker in workers:
                worker.until_later(time.monotonic())
            for worker in workers:
                worker.leave()
        self.record.tensors += sum(len(worker.lines) for worker in workers)

    def _measure_calm(self, worker: WorkerProcess) -> None:
        """Note the time between tensors while nothing happens to the worker's job."""
        last_s: float = worker.until_later(time.monotonic())["at_s"]
        times_ms: list[float] = []
        for _ in range(CALM_TENSORS):
            at_s: float = worker.next()["at_s"]
            times_ms.append(1e3 * (at_s - last_s))
            last_s = at_s
        self.record.latencies_ms.append((float(np.median(times_ms)), max(times_ms)))

    def _forget(self, workers: list[WorkerProcess]) -> None:
        """Drop lines that have been verified; those that are still to be read stay."""
        for worker in workers:
            self.record.tensors += max(0, len(worker.lines) - 1)
            del worker.lines[:-1]

    def _watch_footprints(self, scene: Scene, worker: WorkerProcess, hot: HotDrill) -> None:
        """Name the processes that live from now on to the end."""
        records = read_records(scene.testbed.run_directory)
        pids = {record.name: record.pid for record in records}
        self._pids = {
            "controller": pids["controller"],
            "switch": pids["s1"],
            WORKER: worker.process.pid,
            "parameter server": hot.server_pids[0],
        }

    def _sample(self) -> None:
        for name, pid in self._pids.items():
            self.record.footprints.setdefault(name, []).append(process_footprint(pid))

    def _await_rest(self) -> None:
        """Wait until no job runs and no slot is in use."""
        operator = self._rig.operator
        end_jobs(operator)
        self.record.slots_left = sum(
            operator.show_switch(switch.name).used_slots for switch in operator.list_switches()
        )
