# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The version of a server's tables: it rises with each change, and nothing takes it back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from switchfold.hostlib.parameter_server.rows import Versions, shard_of
from switchfold.hostlib.parameter_server.storage import LogOptions
from switchfold.hostlib.parameter_server.tables import SparseTable, TableDefinition
from switchfold.hostlib.peers.frames import FrameKind
from table_cases import ServiceBench
from table_cluster import WAIT_S, Floats, Keys, TableCluster, keys_of, open_client
from table_server import ServerProcess
from time_bound import wait_until

WIDTH = 2
LOOSE = TableDefinition(name="loose", width=WIDTH)
STALE = TableDefinition(name="stale", width=WIDTH, staleness=2)
SYNC = TableDefinition(name="sync", width=WIDTH, staleness=0)


def ones(keys: Keys) -> Floats:
    return np.ones((keys.size, WIDTH), np.float32)


def push(table: SparseTable, keys: Keys) -> Versions:
    return table.push(keys, ones(keys)).result(WAIT_S)


def pull(table: SparseTable, keys: Keys) -> tuple[Versions, float]:
    rows = table.pull(keys).result(WAIT_S)
    return rows.versions, float(rows.values.sum())


@pytest.mark.parametrize("has_log", [False, True])
def test_reads_at_one_version_are_the_same(tmp_path: Path, *, has_log: bool) -> None:
    with TableCluster(2, 1, tmp_path if has_log else None) as cluster:
        workers = [cluster.client(worker) for worker in range(2)]
        tables = [worker.define(LOOSE) for worker in workers]
        keys = keys_of(1, 2)
        told = push(tables[0], keys)
        assert told.dtype == np.uint64
        first = pull(tables[0], keys)
        assert (first[0] >= told).all()
        assert pull(tables[1], keys) == first  # of another worker, nothing has changed
        receipts = [push(tables[number % 2], keys)[0] for number in range(5)]
        assert sorted(set(receipts)) == receipts
        versions, total = pull(tables[0], keys)
        # Its distance is how many changes the first read has missed.
        assert (int((versions - first[0])[0]), total - first[1]) == (5, 5 * keys.size * WIDTH)
        assert (workers[0].versions == versions).all()


def test_each_server_has_a_version_of_its_own() -> None:
    keys = np.arange(40)
    shards = shard_of(keys, 2)
    with TableCluster(1, 2) as cluster:
        table = cluster.client(0).define(LOOSE)
        before, _ = pull(table, keys)
        own = keys[shards == 1]
        push(table, own)
        after, _ = pull(table, keys)
        assert (after - before).tolist() == [0, 1]
        versions, _ = pull(table, own)
        assert versions.tolist() == [0, after[1]]  # nothing was read of server 0
        versions, _ = pull(table, keys_of())
        assert versions.tolist() == [0, 0]


def test_a_killed_server_goes_on_from_its_version(tmp_path: Path) -> None:
    keys = keys_of(1, 2, 3)
    with ServerProcess(tmp_path / "log", 1) as server:
        with open_client([server.address], 0, reconnect_s=WAIT_S) as client:
            table = client.define(LOOSE)
            told = [push(table, keys) for _ in range(3)]
            before = pull(table, keys)
            server.kill()
            server.restart()
            assert pull(table, keys) == before
            told.append(push(table, keys))
        server.kill()
        server.restart()
        with open_client([server.address], 0) as client:
            assert client.versions > told[-1]  # the new process has entered
            versions, total = pull(client.define(LOOSE), keys)
    assert total == 4 * keys.size * WIDTH
    numbers = np.concatenate([*told, versions]).tolist()
    assert numbers == sorted(set(numbers))


def test_a_snapshot_and_the_log_behind_it_have_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"log_options": LogOptions(segment_bytes=512), "snapshot_bytes": 2000}
    with ServiceBench(monkeypatch, tmp_path, 1, **options) as bench:
        client = bench.entered(0, 11)
        client.define(1, LOOSE)
        bench.wait(lambda: client.applied == [1])
        for number in range(2, 100):
            client.push(number, LOOSE, [1, 2])
        bench.wait(lambda: len(client.applied) == 99)
        version = bench.service.version
        snapshots = tmp_path / "log" / "snapshots"
        wait_until(lambda: any(snapshots.glob("*.snapshot")), "a snapshot", WAIT_S)
    with ServiceBench(monkeypatch, tmp_path, 1) as bench:
        assert bench.service.version == version == 100  # and ENTER


def test_versions_of_iterations() -> None:
    """What a synchronous table holds changes with the version at which its last worker ends."""
    keys = keys_of(7)
    with TableCluster(2) as cluster:
        workers = [cluster.client(worker) for worker in range(2)]
        for definition in (SYNC, STALE):
            tables = [worker.define(definition) for worker in workers]
            before, _ = pull(tables[0], keys)
            for table in tables:
                push(table, keys)
            versions, total = pull(tables[0], keys)
            assert (versions - before).tolist() == [2]
            assert total == (0 if definition is SYNC else 2 * WIDTH)
            ended = [worker.advance().result(WAIT_S) for worker in workers]
            versions, total = pull(tables[1], keys)
            assert total == 2 * WIDTH
            assert (versions == ended[1]).all()
            assert ended[1] > ended[0]


def test_a_request_without_effect_takes_no_version_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow = TableDefinition(name="narrow", width=1, max_rows=1)
    with ServiceBench(monkeypatch, tmp_path, 1) as bench:
        client = bench.entered(0, 11)
        client.define(1, narrow)
        bench.wait(lambda: client.applied == [1])
        client.push(2, narrow, [1])
        bench.wait(lambda: client.applied == [1, 2])
        version = bench.service.version
        client.push(3, narrow, [1, 2])
        bench.wait(lambda: 3 in client.denied)
        client.submit(FrameKind.ADVANCE, 4)
        bench.wait(lambda: client.applied == [1, 2, 4])
        assert bench.service.version == version + 1
    with ServiceBench(monkeypatch, tmp_path, 1) as bench:
        assert bench.service.version == version + 1
