# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sparse tables that several threads use at once, and snapshots of tables that change."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from row_reference import OPTIMISERS, RowReference, rows_of_chunk, stored_rows
from switchfold.hostlib.parameter_server.rows import Optimiser, RowChunk, RowTable, Uniform

WIDTH = 5
NUM_KEYS = 5000
BATCH = 200
PUSHES = 60


def run(*calls: Callable[[], None]) -> None:
    """Run all at the same time, and raise what one of them raises."""
    start = threading.Barrier(len(calls))

    def run_one(call: Callable[[], None]) -> None:
        start.wait(60)
        call()

    with ThreadPoolExecutor(len(calls)) as pool:
        for future in [pool.submit(run_one, call) for call in calls]:
            future.result(120)


def test_no_update_is_lost_between_threads() -> None:
    """The rows of a pull are those between two pushes, as each push adds the same to all rows."""
    table = RowTable(width=WIDTH, max_rows=NUM_KEYS)
    whole = np.arange(100, dtype=np.int64)
    sums = np.zeros((4, NUM_KEYS, WIDTH), np.int64)

    def push(thread: int) -> None:
        rng = np.random.default_rng(thread)
        for _ in range(PUSHES):
            keys = rng.integers(100, NUM_KEYS, BATCH)
            gradients = rng.integers(-9, 9, (BATCH, WIDTH))
            np.add.at(sums[thread], keys, gradients)
            table.push(keys, gradients.astype(np.float32))
            table.push(whole, np.ones((100, WIDTH), np.float32))

    def pull() -> None:
        last = 0
        while last < 4 * PUSHES:
            values, updates, *_ = table.pull(whole)
            assert (values == values[0, 0]).all()
            assert (updates == values[0, 0]).all()
            assert last <= updates[0]
            last = int(updates[0])

    run(*(lambda thread=thread: push(thread) for thread in range(4)), pull, pull)
    values = table.pull(np.arange(NUM_KEYS, dtype=np.int64)).values
    assert (values[100:] == sums.sum(axis=0)[100:]).all()


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=lambda each: each.name)
def test_snapshot_during_pushes_and_replay_make_the_same_table(optimiser: Optimiser) -> None:
    initialiser = Uniform(low=-1.0, high=1.0)
    options = {"optimiser": optimiser, "initialiser": initialiser, "seed": 11}
    table = RowTable(width=WIDTH, max_rows=NUM_KEYS, **options)
    log: list[tuple[int, NDArray[np.int64], NDArray[np.float32]]] = []
    chunks: list[RowChunk] = []
    has_begun, has_pushed, has_ended = (threading.Event() for _ in range(3))
    # A few pushes for each chunk: the reference in Python repeats all of them.
    may_push = threading.Semaphore(0)
    starts: list[int] = []

    def push() -> None:
        rng = np.random.default_rng(5)
        lsn = 0
        # Some before the snapshot, some beside it, and some behind it.
        while lsn < PUSHES or not has_ended.is_set() or lsn < starts[0] + 3:
            if lsn >= PUSHES and not has_ended.is_set():
                assert may_push.acquire(timeout=60)
            lsn += 1
            keys = rng.integers(0, NUM_KEYS, BATCH)
            gradients = rng.standard_normal((BATCH, WIDTH), np.float32)
            log.append((lsn, keys, gradients))
            table.push(keys, gradients, lsn=lsn)
            has_pushed.set()
            if lsn == PUSHES // 2:
                has_begun.set()

    def export() -> None:
        assert has_begun.wait(60)
        starts.append(table.lsn)
        cursor: int | None = 0
        while cursor is not None:
            has_pushed.clear()
            may_push.release(2)
            assert has_pushed.wait(60)
            chunks.append(table.export(cursor, 64))
            cursor = chunks[-1].next_cursor
        has_ended.set()
        may_push.release()

    def pull() -> None:
        keys = np.arange(NUM_KEYS, dtype=np.int64)
        while not has_ended.is_set():
            table.pull(np.random.default_rng(len(chunks)).permutation(keys)[:BATCH])

    run(push, export, pull)
    restored = RowTable(width=WIDTH, max_rows=NUM_KEYS, **options)
    seen = [row for chunk in chunks for row in rows_of_chunk(chunk.data, table).items()]
    assert len(seen) == len(dict(seen))
    of_rows = [int.from_bytes(row[8:16], sys.byteorder) for _, row in seen]
    assert max(of_rows) > starts[0], "no push came between two chunks"
    for chunk in chunks:
        restored.import_rows(chunk.data)
    for lsn, keys, gradients in log[starts[0] :]:
        restored.replay(keys, gradients, lsn=lsn)
    # A replay from further back changes nothing more.
    for lsn, keys, gradients in log[-5:]:
        restored.replay(keys, gradients, lsn=lsn)
    everything = np.arange(NUM_KEYS, dtype=np.int64)
    restored.pull(everything)
    table.pull(everything)
    assert stored_rows(restored) == stored_rows(table)
    assert restored.lsn == table.lsn
    oracle = RowReference(width=WIDTH, **options)
    for lsn, keys, gradients in log:
        oracle.push(keys.tolist(), gradients, lsn=lsn)
    for key in range(NUM_KEYS):
        oracle.row(key)
    assert stored_rows(restored) == oracle.stored_rows()


def test_first_touches_from_many_threads_make_each_row_once() -> None:
    table = RowTable(width=WIDTH, max_rows=NUM_KEYS, initialiser=Uniform(low=0.0, high=1.0))
    keys = np.arange(NUM_KEYS, dtype=np.int64)
    found: list[NDArray[np.float32]] = []

    def pull(seed: int) -> None:
        order = np.random.default_rng(seed).permutation(NUM_KEYS)
        values = np.empty((NUM_KEYS, WIDTH), np.float32)
        for start in range(0, NUM_KEYS, 100):
            part = order[start : start + 100]
            values[part] = table.pull(keys[part]).values
        found.append(values)

    run(*(lambda seed=seed: pull(seed) for seed in range(4)))
    assert len(table) == NUM_KEYS
    assert all(values.tobytes() == found[0].tobytes() for values in found)
