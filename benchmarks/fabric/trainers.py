# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's training: with a parameter server, or in step with the others by sums among them.

Computing lasts as long as the trace says: the real work, then a wait. A worker looks at each model
that it has, within this time, and all end when one of them is good enough.
"""

from __future__ import annotations

import abc
import os
import time
import zlib
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from benchmarks.fabric.run_plan import RunPlan
from benchmarks.fabric.tasks import WORKLOADS
from benchmarks.transport.among_hosts import join_among_hosts
from switchfold.hostlib import Session, SessionOptions
from switchfold.hostlib.config import join_from_environment
from switchfold.hostlib.errors import StaleUpdateError
from switchfold.hostlib.parameter_server import ClientOptions, HotRowUse
from switchfold.hostlib.parameter_server.tables import DenseTensor, TableClient
from switchfold.hostlib.parameter_server.transfers import FabricMember, FabricWorker
from switchfold.hostlib.peers import PeerServer

TIMEOUT_S: Final = 120.0
"""For an answer of a server, or a sum."""
Floats = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class IterationRow:
    """One iteration of a worker. Times are those of the machine's monotonic clock."""

    iteration: int
    asked_s: float
    """When it asked for the model."""
    got_s: float
    """When it had the model, and began to compute."""
    pushed_s: float
    """When it had computed, and asked to send the update."""
    done_s: float
    """When it knew what became of the update."""
    overrun_s: float
    """By how much the real work was longer than the trace's time."""
    computed_on: int
    """Version of the model."""
    version: int
    """Of the model with the update; 0: it was dropped."""
    delay: int
    is_granted: bool
    drop_reason: str
    score: float | None
    """Of the model; None: not looked at."""


class FabricTrainer(abc.ABC):
    """What both kinds have in common."""

    def __init__(self, plan: RunPlan, number: int) -> None:
        self._plan, self._number = plan, number
        self._workload = WORKLOADS[plan.workload]
        self._task = plan.task.make(number)
        self._times = plan.computing_times
        self._stack = ExitStack()
        self._sent: dict[int, Floats] = {}
        """Updates that were applied, by version."""
        self._rows: list[IterationRow] = []

    @abc.abstractmethod
    def start(self) -> None:
        """Connect, and bring the first model where it has to be."""

    @abc.abstractmethod
    def train(self) -> dict[str, Any]:
        """Train; return rows and counters."""

    @abc.abstractmethod
    def final_model(self) -> Floats:
        """Return the model after the last update."""

    def leave(self) -> dict[str, Any]:
        """Write updates and, at the first worker, the final model."""
        np.savez(
            self._plan.updates_file(self._number),
            versions=np.array(list(self._sent), np.int64),
            updates=np.array(list(self._sent.values()), np.float32),
        )
        if self._number == 0:
            np.save(self._plan.model_file, self.final_model())
        checksum = self.checksum()
        self._stack.close()
        return {"checksum": checksum}

    def checksum(self) -> int | None:
        """Return that of a model that this worker has for itself; None: it has none."""
        return None

    def compute(self, model: Floats, iteration: int) -> tuple[Floats, float | None, float]:
        """Return an update, the model's score, and by how much they took longer than they may."""
        began_s = time.monotonic()
        update = self._task.update(model, iteration)
        score = self._task.score(model) if self.is_judge else None
        left_s = began_s + self._times.time_s(self._number, iteration) - time.monotonic()
        if left_s > 0:
            time.sleep(left_s)
        return update, score, max(0.0, -left_s)

    @property
    def share(self) -> np.float32:
        """What an update is multiplied by before it is added: in step, the mean of all is."""
        is_mean = self._plan.is_stepwise and self._workload.has_rate
        return np.float32(1 / self._plan.num_workers if is_mean else 1)

    @property
    def is_judge(self) -> bool:
        """Whether this worker looks at models."""
        return True

    def has_reached(self, score: float | None) -> bool:
        """Return whether a model is good enough."""
        return score is not None and self._workload.reaches(score, self._plan.target)

    def answer(self, counters: dict[str, int]) -> dict[str, Any]:
        """Return what the rig gets to know."""
        return {"rows": [asdict(row) for row in self._rows], "counters": counters}


@final
class ServedTrainer(FabricTrainer):
    """Gets models from a parameter server, and pushes updates, with a scheduler or without."""

    def __init__(self, plan: RunPlan, number: int, port: int) -> None:
        super().__init__(plan, number)
        if plan.is_switched:
            self._stack.enter_context(_session(plan))
        options = ClientOptions(
            worker_id=number,
            source=plan.addresses[number],
            timeout_s=TIMEOUT_S,
            use_hot_rows=HotRowUse.NEVER,
            insecure=True,
        )
        client = self._stack.enter_context(TableClient([(plan.server_address, port)], options))
        is_mean = plan.is_stepwise and self._workload.has_rate
        self._tensor = DenseTensor(client, plan.tensor(is_mean=is_mean))
        transfers = plan.transfers(os.environ["SWITCHFOLD_CREDENTIALS"], number)
        self._fabric = self._stack.enter_context(FabricWorker(self._tensor, transfers))

    def start(self) -> None:
        """Give the server the first model."""
        if self._number == 0:
            self._tensor.start(self._task.start()).result(TIMEOUT_S)

    def train(self) -> dict[str, Any]:
        """Train; return rows and counters."""
        end_s = time.monotonic() + self._plan.limit_s
        model: Floats | None = None
        for iteration in range(self._plan.most_iterations):
            if self._is_over(iteration):
                break
            asked_s = time.monotonic()
            if is_new := model is None:
                model = self._fabric.get().result(TIMEOUT_S)
            computed_on, got_s = self._version(iteration), time.monotonic()
            if self._is_over(iteration):
                break
            update, score, overrun_s = self.compute(model, iteration)
            pushed_s = time.monotonic()
            if self.has_reached(score) or pushed_s > end_s:
                self._end_all(iteration)
            model, version, delay, is_granted, reason = self._push(update, iteration)
            self._rows.append(
                IterationRow(
                    iteration=iteration,
                    asked_s=asked_s if is_new else got_s,
                    got_s=got_s,
                    pushed_s=pushed_s,
                    done_s=time.monotonic(),
                    overrun_s=overrun_s,
                    computed_on=computed_on,
                    version=version,
                    delay=delay,
                    is_granted=is_granted,
                    drop_reason=reason,
                    score=score,
                )
            )
        return self.answer(dict(self._fabric.counters))

    def _version(self, iteration: int) -> int:
        """Return that of the model that this worker has got."""
        return iteration if self._plan.is_stepwise else int(self._fabric.commits[0])

    def _end_all(self, iteration: int) -> None:
        """Let this be the last iteration of all workers that are in step, and of others at once.

        In step, nobody gets the next model before this worker's push, which comes later.
        """
        stop = self._plan.stop_file
        partial = stop.with_suffix(f".{self._number}")
        partial.write_text(f"{iteration}")
        partial.rename(stop)

    def _is_over(self, iteration: int) -> bool:
        stop = self._plan.stop_file
        if not stop.exists():
            return False
        return not self._plan.is_stepwise or iteration > int(stop.read_text())

    def _push(self, update: Floats, iteration: int) -> tuple[Floats | None, int, int, bool, str]:
        """Push; return a newer model if there is one, then version, delay, grant and reason."""
        try:
            outcome = self._fabric.push(update).result(TIMEOUT_S)
        except StaleUpdateError:
            self._task.settle(is_applied=False)
            return None, 0, 0, False, "refused by the server"
        self._task.settle(is_applied=outcome.is_committed)
        (part,) = outcome.parts
        version, delay = part.version, part.delay
        if self._plan.is_stepwise:
            version, delay = iteration + 1, 0
        if outcome.is_committed:
            self._sent[version] = update * self.share
        return outcome.model, version, delay, part.is_granted, part.drop_reason

    def final_model(self) -> Floats:
        """Return the server's model."""
        return self._fabric.get().result(TIMEOUT_S)


def _session(plan: RunPlan) -> Session:
    """Join the run's job at the controller, with all other workers: its switch adds up for it."""
    variables = {
        **os.environ,
        "SWITCHFOLD_JOB": plan.job,
        "SWITCHFOLD_JOB_TOKEN": plan.job_token,
        "SWITCHFOLD_NUM_WORKERS": str(plan.num_workers),
    }
    options = SessionOptions(join_timeout_s=TIMEOUT_S, timeout_s=TIMEOUT_S)
    return join_from_environment(options, variables=variables)


class SumTrainer(FabricTrainer):
    """Sums updates with all other workers; each applies the sum to its own model."""

    def __init__(self, plan: RunPlan, number: int) -> None:
        super().__init__(plan, number)
        self._model = self._task.start().copy()

    @abc.abstractmethod
    def sum_of_all(self, vector: Floats) -> tuple[Floats, bool]:
        """Return the sum of all workers' vectors, and whether it travelled by a grant."""

    @property
    @abc.abstractmethod
    def counters(self) -> dict[str, int]:
        """What this worker has counted."""

    @property
    def is_judge(self) -> bool:
        """All workers have the same model, so one looks at it."""
        return self._number == 0

    def start(self) -> None:
        """Connect; all listen by now."""
        self.sum_of_all(np.zeros(1, np.float32))

    def train(self) -> dict[str, Any]:
        """Train in step; the last value of each sum says whether somebody wants to end."""
        plan = self._plan
        end_s = time.monotonic() + plan.limit_s
        for iteration in range(plan.most_iterations):
            got_s = time.monotonic()
            update, score, overrun_s = self.compute(self._model, iteration)
            update *= self.share
            pushed_s = time.monotonic()
            is_last = self.has_reached(score) or pushed_s > end_s
            summed, is_granted = self.sum_of_all(np.append(update, np.float32(is_last)))
            self._model += summed[:-1]
            self._task.settle(is_applied=True)
            self._sent[iteration + 1] = update
            self._rows.append(
                IterationRow(
                    iteration=iteration,
                    asked_s=got_s,
                    got_s=got_s,
                    pushed_s=pushed_s,
                    done_s=time.monotonic(),
                    overrun_s=overrun_s,
                    computed_on=iteration,
                    version=iteration + 1,
                    delay=0,
                    is_granted=is_granted,
                    drop_reason="",
                    score=score,
                )
            )
            if summed[-1] > 0:
                break
        return self.answer(self.counters)

    def final_model(self) -> Floats:
        """Return this worker's model, which is that of all."""
        return self._model

    def checksum(self) -> int:
        """Return that of the model."""
        return zlib.crc32(self._model.tobytes())


@final
class RingTrainer(SumTrainer):
    """Sums by a ring over TCP, without a scheduler."""

    def __init__(self, plan: RunPlan, number: int) -> None:
        super().__init__(plan, number)
        self._peers = PeerServer(plan.addresses[number], plan.peer_port)
        self._session: Session | None = None

    def start(self) -> None:
        """Connect; all listen by now."""
        workers = self._plan.addresses[: self._plan.num_workers]
        session = join_among_hosts(workers, self._number, self._peers, TIMEOUT_S)
        self._session = self._stack.enter_context(session)  # it closes the peer server, too
        super().start()

    def sum_of_all(self, vector: Floats) -> tuple[Floats, bool]:
        """Return the sum; nothing here has a grant."""
        assert self._session is not None, "it is started first"
        return self._session.allreduce(vector).result(), False

    @property
    def counters(self) -> dict[str, int]:
        """Nothing is counted."""
        return {}


@final
class MemberTrainer(SumTrainer):
    """Sums as a member of a job without servers, as the controller's scheduler plans it."""

    def __init__(self, plan: RunPlan, number: int) -> None:
        super().__init__(plan, number)
        members = [(address, plan.peer_port) for address in plan.addresses[: plan.num_workers]]
        transfers = plan.transfers(os.environ.get("SWITCHFOLD_CREDENTIALS"), number)
        client = ClientOptions(
            worker_id=number, source=plan.addresses[number], timeout_s=TIMEOUT_S, insecure=True
        )
        self._member = self._stack.enter_context(FabricMember(members, transfers, client))

    def sum_of_all(self, vector: Floats) -> tuple[Floats, bool]:
        """Return the sum; without a grant in time, members send directly, and count that."""
        before = self._ungranted
        summed = self._member.all_reduce(vector).result(TIMEOUT_S)
        return summed, self._ungranted == before

    @property
    def counters(self) -> dict[str, int]:
        """Calls by what became of them, the one of `start` included."""
        return dict(self._member.counters)

    @property
    def _ungranted(self) -> int:
        return self._member.counters["ungranted_allreduces"]


def make_trainer(plan: RunPlan, number: int, port: int) -> FabricTrainer:
    """Return the trainer of a worker; `port`: of the server, if the run has one."""
    if plan.is_served:
        return ServedTrainer(plan, number, port)
    return MemberTrainer(plan, number) if plan.is_scheduled else RingTrainer(plan, number)
