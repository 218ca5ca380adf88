# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tables on another number of servers go on as if nothing had happened."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from loopback import LOOPBACK
from reshard_process import run_killed
from switchfold.hostlib.errors import (
    HostlibError,
    LogLockedError,
    ReshardError,
    UnfinishedReshardError,
)
from switchfold.hostlib.parameter_server import ParameterServer, ServerOptions
from switchfold.hostlib.parameter_server.resharding import ReshardReport, reshard
from switchfold.hostlib.parameter_server.rows import Adagrad, Adam, Ftrl, Sgd, Uniform, shard_of
from switchfold.hostlib.parameter_server.tables import (
    DenseTensor,
    SparseTable,
    TableClient,
    TableDefinition,
    TensorDefinition,
)
from switchfold.hostlib.parameter_server.tables.service import TableService
from table_cluster import WAIT_S, TableCluster

NUM_WORKERS, NUM_KEYS = 2, 3000
START = Uniform(low=-1.0, high=1.0)
DEFINITIONS = (
    TableDefinition(name="loose", width=3, optimiser=Adam(learning_rate=0.1), initialiser=START),
    TableDefinition(name="stale", width=2, optimiser=Adagrad(learning_rate=0.1), staleness=3),
    TableDefinition(
        name="sync",
        width=1,
        optimiser=Sgd(learning_rate=0.1, momentum=0.9),
        staleness=0,
        is_mean=True,
    ),
    TableDefinition(name="linear", width=1, optimiser=Ftrl(alpha=0.1), staleness=0),
)
TENSOR = TensorDefinition(
    name="dense", num_values=5000, optimiser=Sgd(learning_rate=0.1, momentum=0.5), block_values=64
)
SUMS = TableDefinition(name="sums", width=1)
KEYS = np.random.default_rng(1).integers(-(1 << 63), 1 << 63, NUM_KEYS)


class Workers:
    """All workers of a run, and what they push: the same for the same seed."""

    def __init__(self, cluster: TableCluster, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.clients = [cluster.client(worker) for worker in range(NUM_WORKERS)]
        self._tables = [[client.define(each) for each in DEFINITIONS] for client in self.clients]
        self._tensors = [DenseTensor(client, TENSOR) for client in self.clients]

    def touch(self) -> None:
        """Push to all keys, so that their rows are in the log."""
        for table in self._tables[0]:
            zeros = np.zeros((KEYS.size, table.definition.width), np.float32)
            table.push(KEYS, zeros).result(WAIT_S)

    def push(self) -> None:
        """Push of every worker in turn."""
        for tables, tensor in zip(self._tables, self._tensors, strict=True):
            for table in tables:
                keys = self._rng.choice(KEYS, 500)
                shape = keys.size, table.definition.width
                table.push(keys, self._rng.standard_normal(shape, np.float32)).result(WAIT_S)
            tensor.push(self._rng.standard_normal(5000, np.float32)).result(WAIT_S)

    def run(self, num_iterations: int) -> None:
        for _ in range(num_iterations):
            self.push()
            for client in self.clients:
                client.advance().result(WAIT_S)

    def set_rates(self, rate: float) -> None:
        for tables in self._tables:
            for table in tables:
                table.set_learning_rate(rate).result(WAIT_S)

    def found(self) -> list[bytes]:
        """Return all values, and all numbers of updates, as the last worker sees them."""
        pulled = [table.pull(KEYS).result(WAIT_S) for table in self._tables[-1]]
        dense = self._tensors[-1].pull().result(WAIT_S)
        return [*(part.tobytes() for rows in pulled for part in rows[:2]), dense.tobytes()]


def cluster_of(folder: Path, num_servers: int, num_workers: int = 1) -> TableCluster:
    folder.mkdir(exist_ok=True)
    return TableCluster(num_workers, num_servers, folder)


@contextmanager
def workers_of(folder: Path, num_servers: int, seed: int) -> Iterator[Workers]:
    with cluster_of(folder, num_servers, NUM_WORKERS) as cluster:
        yield Workers(cluster, seed)


def directories(folder: Path, number: int) -> list[Path]:
    folder.mkdir(exist_ok=True)
    return [folder / f"log{shard}" for shard in range(number)]


def contents(paths: Sequence[Path]) -> dict[Path, bytes]:
    files = [file for path in paths for file in path.rglob("*") if file.is_file()]
    return {file: file.read_bytes() for file in files if file.name != "lock"}


@pytest.mark.parametrize(
    ("num_old", "num_new", "snapshot_bytes"),
    [(2, 3, 1 << 30), (3, 2, 30_000), (1, 4, 30_000), (4, 1, 1 << 30), (2, 2, 30_000)],
)
def test_all_goes_on_as_without_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    num_old: int,
    num_new: int,
    snapshot_bytes: int,
) -> None:
    """Worker 0 has ended an iteration more, and its pushes of it wait; so do pushes of the next.

    A new process of a worker does the iteration that the old one did not end once more.
    """
    defaults = TableService.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "snapshot_bytes", snapshot_bytes)
    old, new = tmp_path / "old", tmp_path / "new"
    with workers_of(old, num_old, 5) as workers:
        workers.touch()
        workers.run(3)
        workers.set_rates(0.05)
        workers.push()
        workers.clients[0].advance().result(WAIT_S)
        workers.push()
        before = workers.found()
        versions = workers.clients[0].versions
    has_snapshots = bool([*old.glob("log*/snapshots/*.snapshot")])
    assert has_snapshots == (snapshot_bytes < 1 << 20)
    kept = contents([old])
    report = reshard(directories(old, num_old)[::-1], directories(new, num_new))
    assert contents([old]) == kept
    check_report(report, num_old, num_new)
    later: list[list[bytes]] = []
    for folder, number in ((old, num_old), (new, num_new)):
        with workers_of(folder, number, 6) as workers:
            assert workers.found() == before
            assert [client.clock for client in workers.clients] == [4, 3]
            assert (workers.clients[0].versions > versions.max()).all() or folder == old
            workers.push()
            workers.clients[1].advance().result(WAIT_S)  # now all have ended the fourth
            workers.run(2)
            later.append(workers.found())
    assert later[0] == later[1]
    assert later[0] != before


def check_report(report: ReshardReport, num_old: int, num_new: int) -> None:
    assert (report.num_before, report.num_after) == (num_old, num_new)
    assert {table.name for table in report.tables} == {"loose", "stale", "sync", "linear", "dense"}
    for table in report.tables:
        keys = KEYS if table.name != "dense" else np.arange(-(-5000 // 64))
        shards = shard_of(keys, num_new)
        assert table.num_rows == keys.size
        assert table.num_moved == np.count_nonzero(shards != shard_of(keys, num_old))
        assert table.by_server == tuple(np.bincount(shards, minlength=num_new))


def simple_run(folder: Path, num_servers: int, num_workers: int = 1) -> list[Path]:
    """Return the directories of a run in which each key was pushed 1."""
    with cluster_of(folder, num_servers, num_workers) as cluster:
        for worker in range(num_workers):
            push_ones(cluster.client(worker))
    return directories(folder, num_servers)


def push_ones(client: TableClient, definition: TableDefinition = SUMS) -> SparseTable:
    table = client.define(definition)
    ones = np.ones((NUM_KEYS, definition.width), np.float32)
    table.push(KEYS, ones).result(WAIT_S)
    return table


def sums(folder: Path, num_servers: int) -> set[float]:
    with cluster_of(folder, num_servers) as cluster:
        table = cluster.client(0).define(SUMS)
        return set(table.pull(KEYS).result(WAIT_S).values.reshape(-1).tolist())


@pytest.mark.parametrize(
    ("method", "number"), [("add", 1), ("add", 5), ("finish", 1), ("finish", 3), ("publish", 1)]
)
def test_a_kill_midway_leaves_the_old_servers_whole(
    tmp_path: Path, method: str, number: int
) -> None:
    old, new = simple_run(tmp_path / "old", 2), directories(tmp_path / "new", 3)
    kept = contents(old)
    assert run_killed(old, new, method, number).returncode == -9
    assert contents(old) == kept
    for shard, directory in enumerate(new):
        options = ServerOptions(num_workers=1, shard=shard, log=directory)
        with pytest.raises(UnfinishedReshardError, match=f"log{shard} is not complete"):
            ParameterServer(options, address=LOOPBACK)
    report = reshard(old, new)
    assert (sums(tmp_path / "old", 2), sums(tmp_path / "new", 3)) == ({1.0}, {1.0})
    assert report.tables[0].num_rows == NUM_KEYS


def test_a_kill_while_directories_are_completed_shows(tmp_path: Path) -> None:
    """Those that are complete are so for good: nothing writes over what a server may have used."""
    old, new = simple_run(tmp_path / "old", 2), directories(tmp_path / "new", 3)
    assert run_killed(old, new, "publish", 2).returncode == -9
    with pytest.raises(ReshardError, match=r"log0 is not empty.*remove all of them first"):
        reshard(old, new)
    for directory in new:
        shutil.rmtree(directory)
    reshard(old, new)
    assert sums(tmp_path / "new", 3) == {1.0}


def test_directories_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    old, others = simple_run(tmp_path / "old", 2), simple_run(tmp_path / "others", 2)
    three = simple_run(tmp_path / "three", 3)
    many = simple_run(tmp_path / "many", 2, num_workers=2)
    new = directories(tmp_path / "new", 1)
    shutil.copytree(old[0], tmp_path / "copy")
    empty = tmp_path / "empty"
    with cluster_of(empty, 1):
        pass
    for given, text in (
        ([], "from 0 directories to 1"),
        (old[:1], "no directory of server 1 of 2"),
        ([old[1], tmp_path / "copy", old[0]], "log0 and .*copy are both those of server 0 of 2"),
        ([old[0], old[0]], "old/log0 is given twice"),
        ([*old, three[2]], "log2 is that of server 2 of 3, but .*log0 that of server 0 of 2"),
        ([old[0], many[1]], "many/log1 has 2 workers, but .*log0 1"),
        ([tmp_path / "none"], "none has no log of a server"),
        ([empty / "log0"], "does not say whose log it is: no worker has entered"),
    ):
        with pytest.raises(ReshardError, match=text):
            reshard(given, new)
        assert not new[0].exists()
    with pytest.raises(ReshardError, match="server 0 and server 1 are of different runs"):
        reshard([old[0], others[1]], new)
    full = tmp_path / "full"
    (full / "log").mkdir(parents=True)
    for target, text in (
        (full, "full is not empty"),
        (old[0], "is given twice"),
        (tmp_path / "missing" / "log0", "missing, in which log0 is to be, is missing"),
    ):
        with pytest.raises(ReshardError, match=text):
            reshard(old, [target])
    with pytest.raises(ReshardError, match="from 2 directories to 0"):
        reshard(old, [])
    reshard(old, new)  # into what an attempt left behind
    assert sums(tmp_path / "new", 1) == {1.0}


def test_servers_that_run_are_refused(tmp_path: Path) -> None:
    with cluster_of(tmp_path / "old", 1) as cluster:
        push_ones(cluster.client(0))
        with pytest.raises(LogLockedError, match="is in use by process"):
            reshard(directories(tmp_path / "old", 1), directories(tmp_path / "new", 2))


def test_servers_that_differ_are_refused(tmp_path: Path) -> None:
    """An iteration, or a learning rate, that one server knows of and another one does not."""
    rated = TableDefinition(name="rated", width=1, optimiser=Sgd(learning_rate=0.5), staleness=0)
    for name, text in (
        ("clocks", "worker 0 has ended 1 iterations at server 0, but 2 at server 1: start"),
        ("rates", "'rated' has the learning rate 0.25 at server 1, but 0.5 at server 0"),
    ):
        with cluster_of(tmp_path / name, 2) as cluster:
            client = cluster.client(0)
            table = push_ones(client, rated)
            if name == "rates":
                refuse(cluster, lambda table=table: table.set_learning_rate(0.25).result(WAIT_S))
            client.advance().result(WAIT_S)
            if name == "clocks":
                refuse(cluster, lambda client=client: client.advance().result(WAIT_S))
        with pytest.raises(ReshardError, match=text):
            reshard(directories(tmp_path / name, 2), directories(tmp_path / f"{name}-new", 1))


def refuse(cluster: TableCluster, change: object) -> None:
    """Make a change that server 0 denies before it is logged."""
    state = cluster.servers[0].tables.state

    def deny(*_: object, **__: object) -> None:
        raise HostlibError("denied by the test")

    state.check, plain = deny, state.check  # type: ignore[method-assign]
    with pytest.raises(HostlibError, match="denied by the test"):
        change()  # type: ignore[operator]
    state.check = plain  # type: ignore[method-assign]


def test_more_rows_than_a_server_may_have_are_refused(tmp_path: Path) -> None:
    small = TableDefinition(name="small", width=1, max_rows=2000)
    with cluster_of(tmp_path / "old", 2) as cluster:
        push_ones(cluster.client(0), small)
    old = directories(tmp_path / "old", 2)
    with pytest.raises(ReshardError, match="more rows of table 'small' than its max_rows, 2000"):
        reshard(old, directories(tmp_path / "one", 1))
    assert reshard(old, directories(tmp_path / "three", 3)).tables[0].num_rows == NUM_KEYS


def test_damage_of_what_was_written_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The totals are of what is on the disk, not of what was to be written."""
    old = simple_run(tmp_path / "old", 2)
    from switchfold.hostlib.parameter_server.rows.chunks import StoredRows  # noqa: PLC0415
    from switchfold.hostlib.parameter_server.storage import NewStorage  # noqa: PLC0415

    plain = NewStorage.add
    num_chunks = 0

    def add(self: NewStorage, name: str, data: memoryview) -> None:
        nonlocal num_chunks
        num_chunks += name.startswith("rows")
        if name.startswith("rows") and num_chunks == 2:
            changed = np.frombuffer(data, np.uint8).copy()
            changed[-8] ^= 1
            assert StoredRows(changed).count > 0
            data = changed.data
        plain(self, name, data)

    monkeypatch.setattr(NewStorage, "add", add)
    with pytest.raises(ReshardError, match="but the old ones"):
        reshard(old, directories(tmp_path / "new", 3))
    monkeypatch.undo()
    reshard(old, directories(tmp_path / "new", 3))
    assert sums(tmp_path / "new", 3) == {1.0}
