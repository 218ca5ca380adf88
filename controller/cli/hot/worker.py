# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One worker of a run: pulls rows, pushes gradients, and measures both.

`python -m switchfold.controller.cli.hot.worker PLAN RECORD SOCKET...`, with the environment of a
session; the sockets are those of the servers.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Final, Self, final

import numpy as np
from numpy.typing import NDArray

from ....hostlib.config import (
    credentials_from_environment,
    join_from_environment,
    secret_from_environment,
)
from ....hostlib.errors import HostlibError
from ....hostlib.parameter_server import ClientOptions, HotRowUse
from ....hostlib.parameter_server.rows import Versions
from ....hostlib.parameter_server.tables import SparseTable, TableClient
from ....hostlib.session import Session
from .errors import TableRunError
from .plan import BlockDifference, Offload, TablePlan
from .rivals import NoKeys, RandomKeys, RecentKeys
from .server import ServerReading, have_hot_rows, pause_logs, read_servers
from .steps import TableStep, hottest_keys, plain_table, steps_of, sums_table, weights_table

_MOST_OPEN: Final = 256
"""Steps whose pushes have no receipt; the next step waits."""
_STEPS_OF_HOTTEST: Final = 4
"""Steps from one pull of the hottest keys alone to the next."""
_BARRIER_S: Final = 120.0
_HOT_S: Final = 60.0
"""Longest wait for the first hot rows, after the warm-up."""
_ASK_S: Final = 0.5


@dataclass(frozen=True, kw_only=True)
class WorkerTimes:
    """What a worker has done after its warm-up."""

    num_steps: int
    """Steps of the whole run, with those of the warm-up."""
    pull_s: NDArray[np.float64]
    """Time of each pull."""
    hottest_pull_s: NDArray[np.float64]
    """Time of each pull of the hottest keys alone; empty where nobody knows them."""
    push_s: NDArray[np.float64]
    """Time of each push until its receipt."""
    seconds: float
    """From the start of the measurement to the last receipt."""
    processor_s: float
    """Processor time of the process in that time."""
    block_s: NDArray[np.float64]
    """`seconds` of each of the plan's `num_blocks`; empty without."""
    samples: int
    pushed_keys: int
    pulled_keys: int

    def write(self, path: Path) -> None:
        """Write the record."""
        with path.open("wb") as file:
            np.savez(file, **asdict(self))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote."""
        with np.load(path) as arrays:
            found = {name: arrays[name] for name in cls.__dataclass_fields__}
        return cls(**{name: array if array.ndim else array.item() for name, array in found.items()})


def open_client(plan: TablePlan, session: Session) -> TableClient:
    """Connect to the servers."""
    worker_id = session.view.worker_id
    options = ClientOptions(
        worker_id=worker_id,
        token=secret_from_environment(),
        credentials=credentials_from_environment() if plan.encrypts_tables else None,
        insecure=not plan.encrypts_tables,
        latency_log=plan.latency_directory,
        use_hot_rows=HotRowUse.NEVER if plan.offload is Offload.NONE else plan.use,
    )
    if plan.offload not in (Offload.LRU, Offload.RANDOM):
        return TableClient(plan.servers, options)

    def rival(capacity: int, _sample: float, _seed: int) -> NoKeys | RecentKeys | RandomKeys:
        """Count such that the servers choose the keys of a rival."""
        if worker_id != 0:
            return NoKeys()
        if plan.offload is Offload.LRU:
            return RecentKeys(plan.hot_keys, capacity)
        return RandomKeys(plan.hot_keys, capacity, plan.seed)

    return TableClient(plan.servers, options, make_counts=rival)


@final
class _Trainer:
    """Takes the steps of a worker."""

    def __init__(self, plan: TablePlan, client: TableClient) -> None:
        self._pause_s = plan.pause_s
        self._sums = client.define(sums_table(plan))
        self._plain = client.define(plain_table(plan)) if plan.has_plain_table else None
        self._weights = client.define(weights_table(plan)) if plan.is_training else None
        self._open: deque[list[Future[float]]] = deque()
        self._hottest = hottest_keys(plan)
        self._pull_s: list[float] = []
        self._hottest_pull_s: list[float] = []
        self._push_s: list[float] = []
        self._samples = self._pushed_keys = self._pulled_keys = self._num_steps = 0
        self._block_s: list[float] = []
        self._uses_plain = False
        self._begun_s, self._begun_processor_s = time.perf_counter(), time.process_time()

    def take(self, step: TableStep) -> None:
        """Pull the rows of a step, push, and pause; wait only while too many pushes are open."""
        pulled = self._weights or self._sums
        rows = _timed_pull(pulled, step.keys, self._pull_s)
        if self._hottest.size and self._num_steps % _STEPS_OF_HOTTEST == 0:
            _timed_pull(pulled, self._hottest, self._hottest_pull_s)
            self._pulled_keys += self._hottest.size
        pushes: list[Future[float]] = []
        if self._weights is not None and step.bag is not None:
            pushes.append(_push(self._weights, step, step.bag.gradient(rows)[1]))
        pushes.append(_push(self._sums, step, step.numbers.astype(np.float32)))
        self._open.append(pushes)
        self._num_steps += 1
        self._samples += step.num_samples
        self._pushed_keys += len(pushes) * step.keys.size
        self._pulled_keys += step.keys.size
        self._settle(_MOST_OPEN)
        time.sleep(self._pause_s)

    def end(self) -> WorkerTimes:
        """Wait for all receipts; return what was done since the last call, or the start."""
        self._settle(0)
        now_s = time.perf_counter()
        times = WorkerTimes(
            num_steps=self._num_steps,
            pull_s=np.array(self._pull_s),
            hottest_pull_s=np.array(self._hottest_pull_s),
            push_s=np.array(self._push_s),
            seconds=now_s - self._begun_s,
            processor_s=time.process_time() - self._begun_processor_s,
            block_s=np.array(self._block_s),
            samples=self._samples,
            pushed_keys=self._pushed_keys,
            pulled_keys=self._pulled_keys,
        )
        self._pull_s.clear()
        self._hottest_pull_s.clear()
        self._push_s.clear()
        self._samples = self._pushed_keys = self._pulled_keys = 0
        return times

    def use_plain(self, uses_plain: bool) -> None:
        """Push to the table without hot keys from now on, if the plan has one, or do so no more."""
        if self._plain is not None and uses_plain != self._uses_plain:
            self._sums, self._plain = self._plain, self._sums
            self._uses_plain = uses_plain

    def take_block(self, steps: Sequence[TableStep]) -> None:
        """Take the steps of a block, and wait for their receipts."""
        begun_s = time.perf_counter()
        for step in steps:
            self.take(step)
        self._settle(0)
        self._block_s.append(time.perf_counter() - begun_s)

    def begin(self) -> None:
        """Measure from now on."""
        self._begun_s, self._begun_processor_s = time.perf_counter(), time.process_time()

    def _settle(self, most: int) -> None:
        """Wait until the pushes of at most so many steps are open; raise their errors."""
        while len(self._open) > most:
            self._push_s.extend(push.result() for push in self._open.popleft())


def _timed_pull(
    table: SparseTable, keys: NDArray[np.int64], times: list[float]
) -> NDArray[np.float32]:
    begun_s = time.perf_counter()
    rows = table.pull(keys).result().values
    times.append(time.perf_counter() - begun_s)
    return rows


def _push(table: SparseTable, step: TableStep, gradients: NDArray[np.float32]) -> Future[float]:
    """Push; return a future of the time until the receipt."""
    timed: Future[float] = Future()
    begun_s = time.perf_counter()

    def note(push: Future[Versions]) -> None:
        error = push.exception()
        if error is None:
            timed.set_result(time.perf_counter() - begun_s)
        else:
            timed.set_exception(error)

    table.push(step.keys, gradients).add_done_callback(note)
    return timed


def run(
    session: Session, plan: TablePlan, sockets: list[Path]
) -> tuple[WorkerTimes, ServerReading | None]:
    """Take all steps; return the times, and in worker 0 what the servers did meanwhile."""
    with open_client(plan, session) as client:
        trainer = _Trainer(plan, client)
        steps = steps_of(plan, session.view.worker_id)
        session.barrier("start", _BARRIER_S)
        num_steps = 0
        for _ in _warm_up(plan, sockets):
            trainer.take(next(steps))
            num_steps += 1
        if plan.has_plain_table:
            trainer.use_plain(True)
            for step in islice(steps, num_steps):  # so that both tables have about as many rows
                trainer.take(step)
        trainer.end()
        measured = list(islice(steps, plan.steps))
        before = _read_at_rest(session, "warm", sockets)
        trainer.begin()
        if plan.num_blocks:
            size = plan.steps // plan.num_blocks
            for block in range(plan.num_blocks):
                _begin_block(session, plan, client, sockets, block)
                steps_of_block = measured[block * size : (block + 1) * size]
                trainer.use_plain(not plan.has_difference(block))
                trainer.take_block(steps_of_block)
        else:
            for step in measured:
                trainer.take(step)
        times = trainer.end()
        after = _read_at_rest(session, "end", sockets)
    return times, after - before if after is not None and before is not None else None


def _begin_block(
    session: Session, plan: TablePlan, client: TableClient, sockets: list[Path], block: int
) -> None:
    """Let all processes begin a block together, with their logs at work or not."""
    session.barrier(f"block {block - 1} has ended", _BARRIER_S)
    if plan.blocks_differ_in is BlockDifference.LOG:
        is_paused = not plan.has_difference(block)
        client.pause_latency_log(is_paused)
        if session.view.worker_id == 0:
            pause_logs(sockets, is_paused=is_paused)
    session.barrier(f"block {block} begins", _BARRIER_S)


def _warm_up(plan: TablePlan, sockets: list[Path]) -> Iterator[None]:
    """Yield as long as the warm-up lasts. Raises TableRunError if no keys become hot."""
    begun_s = asked_s = time.perf_counter()
    is_hot = plan.offload is Offload.NONE or not plan.warm_up_s
    while (now_s := time.perf_counter()) < begun_s + plan.warm_up_s or not is_hot:
        if now_s > begun_s + plan.warm_up_s + _HOT_S:
            raise TableRunError(
                f"no sums from the switch in {_HOT_S:.0f} s; see the logs of servers and controller"
            )
        if not is_hot and now_s > asked_s + _ASK_S:
            is_hot, asked_s = have_hot_rows(sockets), now_s
        yield


def _read_at_rest(session: Session, name: str, sockets: list[Path]) -> ServerReading | None:
    """Read the servers in worker 0, while no worker uses them."""
    session.barrier(f"{name} is reached", _BARRIER_S)
    reading = read_servers(sockets) if session.view.worker_id == 0 else None
    session.barrier(f"{name} is read", _BARRIER_S)
    return reading


def main(arguments: list[str]) -> int:
    """Run one worker; 1 when it failed."""
    plan, record, *sockets = map(Path, arguments)
    try:
        with join_from_environment() as session:
            times, reading = run(session, TablePlan.read(plan), sockets)
    except (HostlibError, TableRunError) as error:
        print(f"error: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    times.write(record)
    if reading is not None:
        reading.write(record.with_suffix(".servers"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
