# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker process that pushes whole numbers to a table, and can be killed at any time.

Worker w adds to value w of each row, so the row tells how often it has counted. What the worker has
asked for and what has been confirmed is in a file that outlives the process: `PushCounts`.

Arguments: folder, then HOST:PORT of each server. The worker writes "ready" when it begins, pushes
until the file `STOP` is in the folder, and then writes "done". MOST_OPEN and PUSHES_PER_S in its
environment say how much it pushes. With READ_ROWS=1 there, a process stores the table's values in
the file `VALUES` instead.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from switchfold.hostlib import DiskFullError, JoinError
from switchfold.hostlib.config import credentials_from_environment, join_from_environment
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.parameter_server import ClientOptions, HotRowUse
from switchfold.hostlib.parameter_server.rows import GradientSum
from switchfold.hostlib.parameter_server.tables import SparseTable, TableClient, TableDefinition
from switchfold.hostlib.session import Session

NUM_KEYS = 400
WIDTH = 8
"""Most workers."""
BATCH = 64
LIMIT_S = 120.0
STOP = "stop"
STACKS = signal.SIGUSR1
"""Tells a worker to write the stacks of its threads to stderr."""
VALUES = "values.npy"


def table(hot_keys: int) -> TableDefinition:
    return TableDefinition(name="drill", width=WIDTH, optimiser=GradientSum(), hot_keys=hot_keys)


class PushCounts:
    """How often a worker has pushed each key, in memory that a killed process leaves behind."""

    def __init__(self, folder: Path, worker_id: int) -> None:
        path = folder / f"worker{worker_id}.counts"
        if not path.exists():
            path.write_bytes(bytes(8 * (2 * NUM_KEYS + 2)))
        words = np.memmap(path, np.int64, "r+", shape=(2 * NUM_KEYS + 2,))
        self.asked: NDArray[np.int64] = words[:NUM_KEYS]
        """By key, before it is pushed."""
        self.confirmed: NDArray[np.int64] = words[NUM_KEYS:-2]
        """By key, after its receipt."""
        self._words = words

    @property
    def num_pushes(self) -> int:
        """Pushes that have been confirmed."""
        return int(self._words[-1])

    @property
    def num_refused(self) -> int:
        """Pushes that a server could not log; another one may have taken its part."""
        return int(self._words[-2])

    def refuse(self) -> None:
        self._words[-2] += 1

    def confirm(self, places: NDArray[np.int64]) -> None:
        self.confirmed[places] += 1
        self._words[-1] += 1


def keys() -> NDArray[np.int64]:
    """Return the table's keys; the first ones are pushed most."""
    return np.arange(NUM_KEYS, dtype=np.int64) * 7919 + 13


def _batches(*seed: int) -> Iterator[NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, NUM_KEYS + 1)
    while True:
        yield np.sort(rng.choice(NUM_KEYS, BATCH, replace=False, p=weights / weights.sum()))


def _join() -> Session:
    """Join the job; the controller may still have the process before in it."""
    options = SessionOptions(join_timeout_s=LIMIT_S, timeout_s=LIMIT_S, lease_s=60.0)
    end_s = time.monotonic() + LIMIT_S
    while True:
        try:
            return join_from_environment(options)
        except JoinError as error:
            print(error, file=sys.stderr)
            if time.monotonic() > end_s:
                raise


def _push(folder: Path, worker_id: int, rows: SparseTable) -> None:
    counts = PushCounts(folder, worker_id)
    gradients = np.zeros((BATCH, WIDTH), np.float32)
    gradients[:, worker_id] = 1
    all_keys = keys()
    most_open, pause_s = int(os.environ["MOST_OPEN"]), 1 / float(os.environ["PUSHES_PER_S"])
    next_s = time.monotonic()
    window: deque[tuple[NDArray[np.int64], Future[None]]] = deque()
    for places in _batches(worker_id, counts.num_pushes):
        is_stopping = (folder / STOP).exists()
        if not is_stopping:
            now_s = time.monotonic()
            time.sleep(max(0.0, next_s - now_s))
            next_s = max(next_s, now_s) + pause_s
            counts.asked[places] += 1
            window.append((places, rows.push(all_keys[places], gradients)))
            rows.pull(all_keys[places[:8]]).result(LIMIT_S)
        while window and (is_stopping or len(window) == most_open or window[0][1].done()):
            pushed, future = window.popleft()
            try:
                future.result(LIMIT_S)
            except DiskFullError:
                counts.refuse()
            else:
                counts.confirm(pushed)
        if is_stopping:
            return


def main() -> None:
    faulthandler.register(STACKS)
    folder = Path(sys.argv[1])
    servers = [(host, int(port)) for host, port in (word.split(":") for word in sys.argv[2:])]
    worker_id = int(os.environ["SWITCHFOLD_WORKER_ID"])
    options = ClientOptions(
        worker_id=worker_id,
        timeout_s=LIMIT_S,
        reconnect_s=LIMIT_S,
        token=os.environ["SWITCHFOLD_TOKEN"],
        credentials=credentials_from_environment(),
        use_hot_rows=HotRowUse.ALWAYS if worker_id else HotRowUse.AUTO,
    )
    definition = table(int(os.environ["HOT_KEYS"]))
    if "READ_ROWS" in os.environ:
        with TableClient(servers, options) as client:
            np.save(folder / VALUES, client.define(definition).pull(keys()).result(LIMIT_S).values)
        return
    with _join(), TableClient(servers, options) as client:
        rows = client.define(definition)
        print("ready", flush=True)
        _push(folder, worker_id, rows)
    print("done", flush=True)


if __name__ == "__main__":
    main()
