# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A server and its log know which server of how many they are."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from loopback import LOOPBACK
from switchfold.hostlib.errors import (
    ForeignLogError,
    PeerMismatchError,
    PeerRefusedError,
    StorageDamagedError,
)
from switchfold.hostlib.parameter_server import ParameterServer, ServerOptions
from switchfold.hostlib.parameter_server.storage import LogOptions
from switchfold.hostlib.parameter_server.tables import TableDefinition
from switchfold.hostlib.parameter_server.tables.change import ShardPlace, TableChange
from switchfold.hostlib.parameter_server.tables.snapshot import capture, restore
from switchfold.hostlib.parameter_server.tables.state import TableState
from switchfold.hostlib.peers.frames import FrameKind
from table_cases import ServiceBench
from table_cluster import WAIT_S, TableCluster, keys_of
from time_bound import wait_until

SUMS = TableDefinition(name="sums", width=1)
ONE = np.ones((1, 1), np.float32)


def enter(worker_id: int, shard: int, num_servers: int) -> tuple[TableChange, memoryview]:
    request = TableChange(FrameKind.ENTER, worker_id, 100 + worker_id, 0)
    return request, memoryview(ShardPlace(shard, num_servers).pack())


def test_a_server_refuses_the_log_of_another_one(tmp_path: Path) -> None:
    with TableCluster(1, 2, tmp_path) as cluster:
        cluster.client(0).define(SUMS).push(keys_of(1), ONE).result(WAIT_S)
    with pytest.raises(ForeignLogError, match=r"log1/log is that of server 1 of 2, but") as e:
        ParameterServer(ServerOptions(num_workers=1, log=tmp_path / "log1"), address=LOOPBACK)
    assert str(e.value).endswith("server 0: give each server the directory that it had")
    with TableCluster(1, 2, tmp_path) as cluster:  # nothing has changed
        rows = cluster.client(0).define(SUMS).pull(keys_of(1)).result(WAIT_S)
        assert rows.values.item() == 1


def test_a_snapshot_says_whose_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"log_options": LogOptions(segment_bytes=512), "snapshot_bytes": 2000}
    with ServiceBench(monkeypatch, tmp_path, 1, shard=3, **options) as bench:
        client = bench.client(0, 11)
        request = TableChange(FrameKind.ENTER, 0, 11, 0, 5)
        bench.run(lambda: bench.service.enter(client, request))
        bench.wait(lambda: client.num_entered == 1)
        client.define(1, SUMS)
        bench.wait(lambda: client.applied == [1])
        for number in range(2, 200):
            client.push(number, SUMS, [1, 2])
        bench.wait(lambda: len(client.applied) == 199)
        snapshots, more = tmp_path / "log" / "snapshots", itertools.count(200)

        def are_two() -> bool:  # none begins while another one is written, nor without a push
            client.push(next(more), SUMS, [1, 2])
            return len([*snapshots.glob("*.snapshot")]) == 2

        wait_until(are_two, "snapshots", WAIT_S)
    with pytest.raises(ForeignLogError, match="that of server 3 of 5, but this is server 0"):
        ServiceBench(monkeypatch, tmp_path, 1)
    with ServiceBench(monkeypatch, tmp_path, 1, shard=3) as bench:
        assert bench.service.state.placement == ShardPlace(3, 5)


def test_a_worker_with_other_servers_is_refused() -> None:
    with TableCluster(2, 2) as cluster:
        table = cluster.client(0).define(SUMS)
        with pytest.raises(PeerRefusedError, match="worker 1 has 1 servers, but this is server 0"):
            cluster.client(1, cluster.addresses[:1])
        table.push(keys_of(1), ONE).result(WAIT_S)
        cluster.client(1).define(SUMS).push(keys_of(1), ONE).result(WAIT_S)
        assert table.pull(keys_of(1)).result(WAIT_S).values.item() == 2


def test_of_two_that_enter_at_once_the_first_one_counts() -> None:
    state, restored = TableState(2), TableState(2)
    state.apply(*enter(0, 1, 3))
    with pytest.raises(PeerMismatchError, match="worker 1 has 4 servers, but this is server 1"):
        state.apply(*enter(1, 1, 4))
    assert state.workers[1].incarnation == 0
    restore(restored, capture(state))
    assert restored.placement == ShardPlace(1, 3)


def test_a_placement_of_other_bytes_is_damage() -> None:
    with pytest.raises(StorageDamagedError, match="an ENTER with 3 bytes"):
        TableState(1).apply(TableChange(FrameKind.ENTER, 0, 11, 0), memoryview(b"abc"))
