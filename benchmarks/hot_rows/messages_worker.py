# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One worker of `small_messages.py`; its arguments are the files of the run and its record."""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from benchmarks.hot_rows.client_rig import RunFiles
from switchfold.controller.cli.hot.plan import TablePlan
from switchfold.controller.cli.hot.server import have_hot_rows, read_servers
from switchfold.controller.cli.workloads.key_stream import SEARCH, KeyStream
from switchfold.hostlib.config import join_from_environment, secret_from_environment
from switchfold.hostlib.parameter_server import ClientOptions, HotRowUse
from switchfold.hostlib.parameter_server.rows import GradientSum
from switchfold.hostlib.parameter_server.tables import SparseTable, TableClient, TableDefinition
from switchfold.hostlib.session import Session

PATHS: Final = ("TCP", "switch")
_WAIT_S: Final = 120.0
_MOST: Final = 8
"""Gradients are whole numbers from minus this to this."""
Keys = NDArray[np.int64]
Gradients = NDArray[np.float32]


def split(keys: Keys, gradients: Gradients, parts: int) -> list[tuple[Keys, Gradients]]:
    """Return a mini-batch in so many messages of about the same size, none of them empty."""
    places = np.array_split(np.arange(keys.size), min(parts, keys.size))
    return [(keys[each], gradients[each]) for each in places]


def sums_of(pushed: list[tuple[Keys, Gradients]]) -> tuple[Keys, NDArray[np.float64]]:
    """Return the keys of pushes, rising, and the sums of their gradients."""
    keys, places = np.unique(np.concatenate([each for each, _ in pushed]), return_inverse=True)
    gradients = np.concatenate([each[:, 0] for _, each in pushed])
    return keys, np.bincount(places, gradients.astype(np.float64), keys.size)


@final
class MessagesWorker:
    """Pushes mini-batches, in one message or several, to a table with hot keys and one without."""

    def __init__(self, session: Session, files: RunFiles, record: Path) -> None:
        self._session = session
        self._id = session.view.worker_id
        self._files = files
        self._options = files.options
        self._plan = TablePlan.read(files.plan)
        self._folder = record.parent
        self._num_barriers = 0
        self._pushed: dict[str, list[tuple[Keys, Gradients]]] = {path: [] for path in PATHS}
        self._batches = self._draw()

    def _draw(self) -> Iterator[tuple[Keys, Gradients]]:
        """Yield mini-batches: different keys in a random order."""
        stream = KeyStream(SEARCH, 1, worker=self._id)
        rng = np.random.default_rng(self._id)
        while True:
            keys = rng.permutation(np.unique(stream.draw(self._options["batch"])))
            numbers = rng.integers(-_MOST, _MOST, (keys.size, 1), endpoint=True)
            yield keys, numbers.astype(np.float32)

    def run(self) -> list[dict[str, Any]]:
        """Measure all contenders in turn; return what was measured."""
        options = ClientOptions(
            worker_id=self._id,
            token=secret_from_environment(),
            insecure=True,
            use_hot_rows=HotRowUse.ALWAYS,
        )
        with TableClient(self._plan.servers, options) as client:
            tables = {path: client.define(self._definition(path)) for path in PATHS}
            self._warm_up(tables)
            contenders = list(itertools.product(PATHS, self._options["parts"]))
            found = [
                self._measure(tables[path], path, parts)
                for _ in range(self._options["repeats"])
                for path, parts in contenders
            ]
        self._verify()
        return found

    def _definition(self, path: str) -> TableDefinition:
        hot_keys = self._plan.hot_keys if path == "switch" else 0
        return TableDefinition(name=path, width=1, optimiser=GradientSum(), hot_keys=hot_keys)

    def _barrier(self) -> None:
        self._num_barriers += 1
        self._session.barrier(f"{self._num_barriers}", _WAIT_S)

    def _warm_up(self, tables: dict[str, SparseTable]) -> None:
        """Push until the switch sums, and for a while after that."""
        self._barrier()
        begun_s = time.monotonic()
        least_s = self._options["warm_up_s"]
        while time.monotonic() < begun_s + least_s or not have_hot_rows(self._files.servers):
            if time.monotonic() > begun_s + least_s + _WAIT_S:
                raise TimeoutError("no sums from the switch")
            for path, table in tables.items():
                self._push(table, path, 1)[0].result(_WAIT_S)

    def _push(self, table: SparseTable, path: str, parts: int) -> list[Future[Any]]:
        """Push a mini-batch; the futures' results are seconds and numbers of keys."""
        keys, gradients = next(self._batches)
        self._pushed[path].append((keys, gradients))
        begun_s = time.perf_counter()
        return [self._one(table, begun_s, *part) for part in split(keys, gradients, parts)]

    @staticmethod
    def _one(table: SparseTable, begun_s: float, keys: Keys, gradients: Gradients) -> Future[Any]:
        timed: Future[Any] = Future()

        def note(push: Future[None]) -> None:
            error = push.exception()
            if error is not None:
                timed.set_exception(error)
            else:
                timed.set_result((time.perf_counter() - begun_s, keys.size))

        table.push(keys, gradients).add_done_callback(note)
        return timed

    def _measure(self, table: SparseTable, path: str, parts: int) -> dict[str, Any]:
        self._barrier()
        before = read_servers(self._files.servers) if not self._id else None
        self._barrier()
        begun_s = time.monotonic()
        open_: deque[list[Future[Any]]] = deque()
        ended: list[tuple[float, int]] = []
        for _ in range(self._options["steps"]):
            open_.append(self._push(table, path, parts))
            if len(open_) > self._options["window"]:
                ended += [each.result(_WAIT_S) for each in open_.popleft()]
        for pushes in open_:
            ended += [each.result(_WAIT_S) for each in pushes]
        ended_s = time.monotonic()
        self._barrier()
        did = asdict(read_servers(self._files.servers) - before) if before is not None else None
        return {
            "path": path,
            "parts": parts,
            "pushes": ended,
            "begun_s": begun_s,
            "ended_s": ended_s,
            "servers": did,
        }

    def _verify(self) -> None:
        """Compare all sums of all workers with what the servers have."""
        for path in PATHS:
            keys, sums = sums_of(self._pushed[path])
            np.savez(self._folder / f"{path}{self._id}.npz", keys=keys, sums=sums)
        self._barrier()
        if self._id:
            return
        options = ClientOptions(
            worker_id=0,
            token=secret_from_environment(),
            insecure=True,
            use_hot_rows=HotRowUse.NEVER,
        )
        with TableClient(self._plan.servers, options) as client:
            for path in PATHS:
                each = [
                    np.load(self._folder / f"{path}{worker_id}.npz")
                    for worker_id in range(self._plan.num_workers)
                ]
                keys, sums = sums_of([(one["keys"], one["sums"][:, None]) for one in each])
                rows = client.define(self._definition(path)).pull(keys).result(_WAIT_S)
                if not np.array_equal(rows.values[:, 0], sums.astype(np.float32)):
                    raise ValueError(f"sums of table {path} are wrong")


def main(arguments: list[str]) -> None:
    """Run one worker."""
    files, record = map(Path, arguments)
    with join_from_environment() as session:
        found = MessagesWorker(session, RunFiles.read(files), record).run()
    record.write_text(json.dumps(found, default=float), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
