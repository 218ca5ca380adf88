# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A testbed whose workers push by each kind of group in turn, to servers on one host.

Each kind has a server's process and a job of its own; only the switch's job has sessions, and only
the hosts' has processes on idle hosts that gather. So a kind is chosen by the job that pushes.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.scheduler.group_figures import GroupRound, RoundLog
from benchmarks.support.transfers import restart_controller
from fabric_process import update_of
from group_training import LIMIT_S, GroupTraining, TrainingJob
from switchfold.bmv2_topos import Testbed, single_switch
from switchfold.bmv2_topos.processes.processes import read_records
from switchfold.bmv2_topos.topology.topology import Topology
from switchfold.controller.cli.calibrate.processor_time import process_s
from switchfold.hostlib.parameter_server.transfers import PushOutcome
from time_bound import wait_until

SHARE: Final = 0.9
"""Of a link's rate, for payload."""
PORT: Final = 7000
"""Of the first kind's server; the others follow."""


@dataclass(frozen=True, kw_only=True)
class ClusterShape:
    """Hosts, links and updates."""

    kinds: Sequence[str]
    num_workers: int
    num_idle: int
    """Hosts that gather, behind those of the workers."""
    num_values: int
    rate_bits_per_s: int
    """Of the server's link."""
    host_rate_bits_per_s: int
    """Of all other links."""
    batch_wait_s: float
    batch_max: int
    """So many requests are a batch at once."""

    @property
    def topology(self) -> Topology:
        """The workers' hosts, idle ones, and the server's."""
        num_hosts = self.num_workers + self.num_idle + 1
        made = single_switch(num_hosts, rate_bits_per_s=self.host_rate_bits_per_s)
        last = dataclasses.replace(made.links[-1], rate_bits_per_s=self.rate_bits_per_s)
        return dataclasses.replace(made, links=(*made.links[:-1], last))

    @property
    def transfers(self) -> dict[str, str]:
        """Options of the controller's table [transfers]; its patience is that of a busy machine."""
        return {
            "payload_share": str(SHARE),
            "batch_wait_s": str(self.batch_wait_s),
            "batch_max": str(self.batch_max),
            "grant_wait_s": "30.0",
            "server_wait_s": "60.0",
            "gather_slack_s": "5.0",
            "overdue_least_s": "60.0",
            "lease_s": "60.0",
        }


@dataclass(frozen=True, kw_only=True)
class TrainingFigures:
    """What workers did that push without end."""

    commits_per_s: float
    bytes_per_commit: float
    """Into the server's host."""


class KindRig:
    """The workers and the server of one kind."""

    def __init__(
        self, kind: str, training: GroupTraining, log: Path, pids: dict[str, list[int]]
    ) -> None:
        """`log`: the controller's timeline. `pids`: of processes, by role."""
        self.kind, self._training, self._log = kind, training, log
        self._pids = pids | {"server": [training.server_pid]}
        self._rounds = RoundLog(training.job.name)
        self._updates = [
            update_of(0, number, training.total.size) for number in range(len(training.workers))
        ]
        self._norms = [float(np.linalg.norm(update)) for update in self._updates]

    def warm_up(self) -> None:
        """Push until the switch adds up, if it is to; workers learn of its rows in their time."""
        end_s = time.monotonic() + LIMIT_S
        expected = len(self._updates) if self.kind == "switch" else 0
        while self.push(len(self._updates)).num_grouped < expected:
            if time.monotonic() > end_s:
                raise SystemExit("the switch does not add all updates up")

    def push(self, num_updates: int, *, is_led: bool = False) -> GroupRound:
        """Push at the first workers at once; verify the model. Raises SystemExit.

        `is_led`: the last one of them pushes first, and the others when its update is granted.
        """
        training = self._training
        committed_s: list[float] = []
        before, used_s = training.received(), self._processor()
        started_s = time.monotonic()

        def note(_: Future[Any]) -> None:
            committed_s.append(time.monotonic() - started_s)

        leading: list[Future[Any]] = []
        if is_led:
            leading.append(self._push(num_updates - 1))
            self._await_log(lambda: self._rounds.is_granted(num_updates - 1), "the first grant")
        others = [self._push(number) for number in range(num_updates - len(leading))]
        futures = [*others, *leading]
        for future in futures:
            future.add_done_callback(note)
        if wait(futures, LIMIT_S).not_done:
            raise SystemExit(f"{self.kind}: an update was not committed")
        now_s = self._processor()
        ingress = training.received() - before
        outcomes = [future.result() for future in futures]
        self._verify([1] * num_updates)
        wait_until(lambda: len(committed_s) == num_updates, "the last callback")
        return GroupRound(
            kind=self.kind,
            num_updates=num_updates,
            last_s=max(committed_s),
            mean_s=statistics.mean(committed_s),
            ingress_bytes=ingress,
            num_withdrawn=self._await_ends(outcomes),
            groups=self._groups(outcomes),
            processor_s={role: now_s[role] - used_s[role] for role in used_s},
        )

    def train(self, seconds: float, num_workers: int) -> TrainingFigures:
        """Let each worker push again as soon as its update is committed; verify the model.

        There are no rounds after it.
        """
        before, started_s = self._training.received(), time.monotonic()
        counts = [0] * num_workers

        def work(number: int) -> None:
            while time.monotonic() - started_s < seconds:
                self._push(number).result(LIMIT_S)
                counts[number] += 1

        with ThreadPoolExecutor(num_workers) as pool:
            list(pool.map(work, range(num_workers)))
        took_s = time.monotonic() - started_s
        ingress = self._training.received() - before
        self._verify(counts)
        return TrainingFigures(
            commits_per_s=sum(counts) / took_s, bytes_per_commit=ingress / sum(counts)
        )

    def _push(self, number: int) -> Future[Any]:
        worker, update = self._training.workers[number], self._updates[number]
        if self.kind == "unscheduled":
            return worker._tensor.push(update)
        return worker.push(update, self._norms[number])

    def _verify(self, counts: Sequence[int]) -> None:
        """Check the model, which is an exact sum of whole numbers, and its version."""
        training = self._training
        for count, update in zip(counts, self._updates, strict=False):
            training.total += count * update
            training.num_updates += count
        training.check()
        if self.kind == "unscheduled":
            return
        if training.workers[0].commits.tolist() != [training.num_updates]:
            raise SystemExit(f"{self.kind}: the model has another version than that of its updates")
        granted = sum(worker.counters["granted_updates"] for worker in training.workers)
        if granted != training.num_updates:
            raise SystemExit(
                f"{self.kind}: {training.num_updates - granted} updates travelled without a grant;"
                " is the machine too busy?"
            )

    def _await_ends(self, outcomes: Sequence[Any]) -> int:
        """Wait until the timeline has the ends of all updates; return how many were withdrawn."""
        if self.kind == "unscheduled":
            return 0
        self._await_log(lambda: self._rounds.has(len(outcomes)), "reports of all commits")
        return self._rounds.events["withdrawn"]

    def _groups(self, outcomes: Sequence[PushOutcome | Any]) -> tuple[int, ...]:
        """Return how many updates were in each sum; the round ends."""
        if self.kind == "unscheduled":
            return ()
        return self._rounds.end_round([outcome.parts[0].is_summed for outcome in outcomes])

    def _await_log(self, is_so: Callable[[], bool], what: str) -> None:
        """Wait until the controller's timeline says so."""

        def is_logged() -> bool:
            text = self._log.read_text("utf-8")
            self._rounds.take(text[: text.rfind("\n") + 1].splitlines())
            return is_so()

        wait_until(is_logged, lambda: f"{what}, {dict(self._rounds.events)}", LIMIT_S)

    def _processor(self) -> dict[str, float]:
        """Return processor seconds by role until now."""
        found = {role: sum(map(process_s, pids)) for role, pids in self._pids.items()}
        return found | {"workers": time.process_time()}


@contextmanager
def kind_rigs(shape: ClusterShape) -> Generator[list[KindRig]]:
    """Make the testbed and all kinds; each has pushed once with all of its workers."""
    with Testbed(shape.topology) as testbed, ExitStack() as stack:
        log = testbed.run_directory / "transfers.jsonl"
        restart_controller(testbed, {**shape.transfers, "log": json.dumps(str(log))})
        records = {record.name: record.pid for record in read_records(testbed.run_directory)}
        pids = {
            "switch": [records[testbed.switch.name]],
            "controller": [records["controller"]],
        }
        made: list[KindRig] = []
        for number, kind in enumerate(shape.kinds):
            job = TrainingJob(
                name=kind, port=PORT + number, is_switched=kind == "switch", has_log=False
            )
            training = stack.enter_context(
                GroupTraining(
                    testbed,
                    testbed.run_directory,
                    shape.num_values,
                    num_idle=shape.num_idle,
                    job=job,
                )
            )
            idle = range(shape.num_workers, shape.num_workers + shape.num_idle)
            gathering = [
                training.start_process(place, aggregate=True)
                for place in (idle if kind == "hosts" else ())
            ]
            for process in gathering:
                process.await_ready()
            of_kind = {"aggregators": [each.process.pid for each in gathering]} if gathering else {}
            made.append(KindRig(kind, training, log, pids | of_kind))
        for rig in made:
            rig.warm_up()
        yield made
