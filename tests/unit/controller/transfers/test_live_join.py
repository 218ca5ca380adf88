# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A replica joins while updates go on, whatever the place at which it begins."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from loopback import LOOPBACK
from replica_scene import VALUES, WAIT_S, ReplicaScene, update_of
from switchfold.controller.transfers.replicas import live_join
from switchfold.controller.transfers.replicas.replica_place import ReplicaState
from switchfold.hostlib.control.stations.replica_terms import MOST_COPIES, StateWanted
from switchfold.hostlib.control.stations.station import StationEvent
from switchfold.hostlib.errors import (
    ConfigurationError,
    ForeignLogError,
    HostlibError,
    LogCopyError,
    StorageDamagedError,
    ThreadFailedError,
)
from switchfold.hostlib.parameter_server import ParameterServer, ServerOptions
from switchfold.hostlib.parameter_server.rows import Sgd
from switchfold.hostlib.parameter_server.storage.record import RECORD_HEADER_BYTES
from switchfold.hostlib.parameter_server.storage.segment import (
    StoredRecord,
    found_segments,
    read_records,
)
from switchfold.hostlib.parameter_server.tables.dense import Values
from switchfold.hostlib.parameter_server.transfers import FabricWorker, PushOutcome
from switchfold.hostlib.parameter_server.transfers.replicas import log_follower
from time_bound import wait_until

SGD: Final = Sgd(learning_rate=0.1, momentum=0.9)
PATIENT: Final = dict.fromkeys(
    ("grant_wait_s", "server_wait_s", "overdue_least_s", "replica_wait_s"), 3600.0
)
"""No worker goes on without a grant, and nothing is given up, however slow the machine is."""


def fraction_of(seed: int) -> Values:
    """Values whose sums depend on their order."""
    return np.random.default_rng(seed).normal(size=VALUES).astype(np.float32)


class Pushing:
    """Workers that push without end, each in a thread of its own."""

    def __init__(self, scene: ReplicaScene) -> None:
        self._is_over = threading.Event()
        self.futures: list[Future[PushOutcome]] = []
        self._threads = [
            threading.Thread(target=self._run, args=(number, worker))
            for number, worker in enumerate(scene.workers)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, number: int, worker: FabricWorker) -> None:
        seed = 1000 * (number + 1)
        while not self._is_over.is_set():
            seed += 1
            self.futures.append(worker.push(fraction_of(seed)))

    def end(self) -> None:
        """Stop, and wait for the outcomes."""
        self._is_over.set()
        for thread in self._threads:
            thread.join(WAIT_S)
        for future in self.futures:
            future.result(WAIT_S)


@contextmanager
def pushing(scene: ReplicaScene) -> Iterator[Pushing]:
    made = Pushing(scene)
    try:
        yield made
    finally:
        made.end()


def await_commits(scene: ReplicaScene, count: int) -> None:
    state = scene.server.tables.state
    wait_until(lambda: state.num_commits >= count, f"the server has no {count} updates")


def check_equal(scene: ReplicaScene) -> None:
    """The replica has all updates, and its model was the server's at each version."""
    assert scene.replica is not None
    scene.await_drained()
    ours, theirs = scene.models["replica"], scene.models["server"]
    assert ours
    for version, model in ours.items():
        assert np.array_equal(model, theirs[version]), version
    assert np.array_equal(scene.model_of(scene.replica), scene.model_of(scene.server))


def push_one(scene: ReplicaScene, seed: int, worker: int = 0) -> PushOutcome:
    return scene.workers[worker].push(fraction_of(seed)).result(WAIT_S)


@pytest.fixture
def slow_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    """However far behind a replica is that catches up, it is not left."""
    monkeypatch.setattr(live_join, "MOST_COPIES", 1 << 30)


@pytest.mark.usefixtures("slow_replicas")
@pytest.mark.parametrize("div_max", [None, 0.0, 50.0])
@pytest.mark.parametrize(("copied_at", "started_at"), [(0, 0), (1, 1), (7, 7), (3, 20)])
def test_replica_equals_its_server_wherever_it_begins(
    tmp_path: Path, div_max: float | None, copied_at: int, started_at: int
) -> None:
    log, copy = tmp_path / "log", tmp_path / "copy"
    with ReplicaScene(
        tmp_path, has_replica=False, log=log, optimiser=SGD, div_max=div_max, **PATIENT
    ) as scene:
        wait_until(lambda: scene.server.tables.state.tables, "the table is not defined")
        with pushing(scene) as stream:
            await_commits(scene, copied_at)
            shutil.copytree(log, copy)
            await_commits(scene, started_at)
            scene.replica = scene.serve("replica", "h2", log=copy, server_log=log)
            scene.await_replica()
            joined_at = scene.server.tables.state.num_commits
            await_commits(scene, joined_at + 20)
        # Updates without a grant are refused from its first place on, if there are any.
        num_committed = sum(future.result().is_committed for future in stream.futures)
        assert scene.server.tables.state.num_commits == num_committed
        check_equal(scene)
        assert scene.events("promoted") == []


@pytest.mark.usefixtures("slow_replicas")
def test_a_replica_that_has_joined_live_takes_its_servers_place(tmp_path: Path) -> None:
    log, copy = tmp_path / "log", tmp_path / "copy"
    with ReplicaScene(
        tmp_path, has_replica=False, log=log, optimiser=SGD, div_max=0.0, **PATIENT
    ) as scene:
        push_one(scene, 1)
        shutil.copytree(log, copy)
        with pushing(scene):
            await_commits(scene, 10)
            scene.replica = scene.serve("replica", "h2", log=copy, server_log=log)
            scene.await_replica()
        assert push_one(scene, 98).is_committed
        scene.await_drained()
        model = scene.model_of(scene.server)
        scene.server.close()
        wait_until(lambda: scene.events("promoted"), "the replica is not promoted")
        (promoted,) = scene.events("promoted")
        assert (promoted["lost"], promoted["distance"]) == (0, 0.0)
        worker = scene.workers[0]
        wait_until(lambda: worker.counters["moved_servers"], "the worker has not moved")
        assert np.array_equal(worker.get().result(WAIT_S), model)
        assert push_one(scene, 99).is_committed


@contextmanager
def catching_up(
    folder: Path, *, num_before: int = 3, **options: object
) -> Iterator[tuple[ReplicaScene, Path]]:
    """A replica that waits for records, which the copy that it reads lacks; and that copy."""
    log, source = folder / "log", folder / "source"
    options = {**PATIENT, **options}
    with ReplicaScene(folder, has_replica=False, log=log, **options) as scene:  # type: ignore[arg-type]
        push_one(scene, 1)
        shutil.copytree(log, folder / "copy")
        shutil.copytree(log, source)
        for seed in range(2, 2 + num_before):
            push_one(scene, seed)
        scene.replica = scene.serve("replica", "h2", log=folder / "copy", server_log=source)
        await_catching_up(scene, scene.replica)
        yield scene, source


def await_catching_up(scene: ReplicaScene, replica: ParameterServer) -> None:
    """Wait until the scheduler has named a place, or the replica has even been left since."""
    job = scene.controller.job()
    assert job is not None

    def has_a_place() -> bool:
        found = job.flow.replicas.replicas.get(0)
        return found is not None and found.state is ReplicaState.CATCHING_UP

    wait_until(lambda: has_a_place() or replica.updates.problem, "the replica has no place")


def renew(
    folder: Path, source: Path, change: Callable[[bytes, list[StoredRecord]], bytes] | None = None
) -> None:
    """Copy the server's log once more; `change` gets the newest file, and its records."""
    made = folder / "renewed"
    shutil.copytree(folder / "log", made)
    newest = found_segments(made / "log")[-1]
    if change is not None:
        changed = change(newest.path.read_bytes(), [*read_records(newest)])
        newest.path.write_bytes(changed)
    newest.path.rename(source / "log" / newest.path.name)
    shutil.rmtree(made)


def flip(whole: bytes, records: list[StoredRecord]) -> bytes:
    """Damage the last record up to which a replica has to read."""
    data = bytearray(whole)
    data[records[-1].offset + RECORD_HEADER_BYTES] ^= 1
    return bytes(data)


def cut(whole: bytes, records: list[StoredRecord]) -> bytes:
    """Leave the last two records out: that of its first place, and the one before."""
    return whole[: records[-2].offset]


def test_no_commit_waits_for_a_replica_that_catches_up(tmp_path: Path) -> None:
    with catching_up(tmp_path, div_max=0.0) as (scene, source):
        assert all(push_one(scene, 10 + each, each % 2).parts[0].is_granted for each in range(8))
        assert scene.events("replicated") == []
        renew(tmp_path, source)
        scene.await_replica()
        assert push_one(scene, 30).is_committed
        check_equal(scene)
        assert {event["distance"] for event in scene.events("replicated")} == {0.0}


def test_a_replica_that_is_killed_while_it_catches_up_may_come_again(tmp_path: Path) -> None:
    with catching_up(tmp_path, div_max=0.0, reconnect_grace_s=0.1) as (scene, source):
        assert push_one(scene, 10).is_committed
        replica = scene.replica
        assert replica is not None
        renew(tmp_path, source, cut)
        wait_until(lambda: replica.tables.state.num_commits == 3, "it has not read a part")
        replica.close()
        scene.await_none()
        assert push_one(scene, 11).is_committed
        scene.replica = scene.serve(
            "replica", "h2", log=tmp_path / "copy", server_log=tmp_path / "log"
        )
        scene.await_replica()
        assert push_one(scene, 12).is_committed
        check_equal(scene)


def test_a_replica_is_not_promoted_before_it_has_caught_up(tmp_path: Path) -> None:
    with catching_up(tmp_path, reconnect_grace_s=0.1) as (scene, _):
        assert scene.replica is not None
        updates = scene.replica.updates
        scene.server.close()
        wait_until(lambda: updates.problem, "the replica is not refused")
        assert "its server is gone while it catches up with its server" in str(updates.problem)
        assert "it lacks updates that its server had" in str(updates.problem)
        assert scene.events("promoted") == []
        assert updates.gate.is_replica


def test_a_replica_is_left_before_a_worker_has_to_wait_for_it(tmp_path: Path) -> None:
    with catching_up(tmp_path) as (scene, _):
        assert scene.replica is not None
        updates = scene.replica.updates
        futures = [scene.workers[0].push(update_of(seed)) for seed in range(MOST_COPIES + 8)]
        assert all(future.result(WAIT_S).is_committed for future in futures)
        wait_until(lambda: updates.problem, "the replica is not left")
        assert f"worker 0 had {MOST_COPIES} updates for it" in str(updates.problem)
        assert "give --server-log the directory" in str(updates.problem)


def test_a_replica_that_takes_too_long_is_left(tmp_path: Path) -> None:
    with catching_up(tmp_path, replica_wait_s=0.3) as (scene, _):
        assert scene.replica is not None
        updates = scene.replica.updates
        wait_until(lambda: updates.problem, "the replica is not left")
        assert "it has not caught up in 0.3 s" in str(updates.problem)
        assert push_one(scene, 10).is_committed


def test_a_worker_that_ends_with_updates_for_it_is_named(tmp_path: Path) -> None:
    with catching_up(tmp_path, reconnect_grace_s=0.1) as (scene, _):
        assert scene.replica is not None
        updates = scene.replica.updates
        push_one(scene, 10, worker=1)
        scene.workers[1].close()
        wait_until(lambda: updates.problem, "the replica is not left")
        assert "it lacks an update of worker 1, which is gone" in str(updates.problem)


def failing(
    folder: Path, change: Callable[[Path], object], kind: type[HostlibError]
) -> HostlibError:
    """What a replica says whose server's log is replaced while it catches up."""
    with catching_up(folder) as (scene, source):
        assert scene.replica is not None
        updates = scene.replica.updates
        change(source)
        wait_until(lambda: updates.problem, "the replica says nothing")
        assert isinstance(updates.problem, kind), updates.problem
        scene.await_none()
        assert push_one(scene, 10).is_committed
        return updates.problem


def test_a_log_that_is_damaged_while_it_is_read_is_named(tmp_path: Path) -> None:
    problem = failing(tmp_path, lambda source: renew(tmp_path, source, flip), StorageDamagedError)
    assert "Restore the file from a copy" in str(problem)


def test_a_log_that_is_replaced_by_anothers_is_named(tmp_path: Path) -> None:
    def replace(source: Path) -> None:
        other = tmp_path / "other"
        ParameterServer(ServerOptions(num_workers=2, log=other), address=LOOPBACK).close()
        (newest,) = (other / "log").glob("*.log")
        newest.rename(source / "log" / newest.name)

    problem = failing(tmp_path, replace, ForeignLogError)
    assert "Copy the directory of this replica's server" in str(problem)


def test_a_defect_while_records_are_applied_ends_the_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Defect:
        def __init__(self, *_: object) -> None:
            pass

        def apply(self, *_: object) -> None:
            raise KeyError("no such table")

    log, copy = tmp_path / "log", tmp_path / "copy"
    monkeypatch.setattr(log_follower, "RecordReplay", Defect)
    with ReplicaScene(tmp_path, has_replica=False, log=log) as scene:
        push_one(scene, 1)
        shutil.copytree(log, copy)
        push_one(scene, 2)
        with pytest.raises(ThreadFailedError, match="no such table"):
            scene.serve("replica", "h2", log=copy, server_log=log)


def test_a_directory_that_cannot_be_followed_is_refused_at_once(tmp_path: Path) -> None:
    log, copy, grown = tmp_path / "log", tmp_path / "copy", tmp_path / "grown"
    with ReplicaScene(tmp_path, has_replica=False, log=log) as scene:
        push_one(scene, 1)
        shutil.copytree(log, copy)
        push_one(scene, 2)
        shutil.copytree(log, grown)
        renew(tmp_path, grown, flip)
        with pytest.raises(StorageDamagedError):
            scene.serve("replica", "h2", log=copy, server_log=grown)
        with pytest.raises(HostlibError, match="there is no log in"):
            scene.serve("replica", "h2", log=copy, server_log=tmp_path / "nothing")
        with pytest.raises(ForeignLogError):
            scene.serve("replica", "h2", log=tmp_path / "new", server_log=log)
        with pytest.raises(ConfigurationError, match="whose own `log` begins as a copy of it"):
            scene.serve("replica", "h2", server_log=log)
        scene.replica = scene.serve("replica", "h2", log=copy, server_log=log)
        scene.await_replica()
        push_one(scene, 3)
        check_equal(scene)


def test_the_log_of_a_replica_that_had_joined_is_no_copy_any_more(tmp_path: Path) -> None:
    log, copy = tmp_path / "log", tmp_path / "copy"
    with ReplicaScene(tmp_path, has_replica=False, log=log, reconnect_grace_s=0.1) as scene:
        push_one(scene, 1)
        shutil.copytree(log, copy)
        scene.replica = scene.serve("replica", "h2", log=copy, server_log=log)
        scene.await_replica()
        push_one(scene, 2)
        scene.await_drained()
        scene.replica.close()
        scene.await_none()
        for seed in range(3, 9):
            push_one(scene, seed)
        with pytest.raises(LogCopyError, match="copy the server's directory once more"):
            scene.serve("replica", "h2", log=copy, server_log=log)


def test_a_server_without_a_log_cannot_be_followed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    ParameterServer(ServerOptions(num_workers=2, log=log), address=LOOPBACK).close()
    shutil.copytree(log, tmp_path / "copy")
    with ReplicaScene(tmp_path, has_replica=False) as scene:
        push_one(scene, 1)
        late = scene.serve("replica", "h2", log=tmp_path / "copy", server_log=log)
        wait_until(lambda: late.updates.problem, "the replica is not refused")
        assert "its server has no log to catch up from" in str(late.updates.problem)
        assert push_one(scene, 2).is_committed


def test_places_that_the_server_is_beyond_come_from_its_log(tmp_path: Path) -> None:
    """Updates for the first places come to the server before it hears that it has a replica."""
    log, copy = tmp_path / "log", tmp_path / "copy"
    with ReplicaScene(tmp_path, has_replica=False, log=log, optimiser=SGD, **PATIENT) as scene:
        push_one(scene, 1)
        shutil.copytree(log, copy)
        station = scene.server._station
        handle, late = station._on_event, list[StationEvent]()

        def delay(event: StationEvent) -> None:
            late.append(event) if isinstance(event, StateWanted) else handle(event)

        station._on_event = delay  # type: ignore[method-assign]
        scene.replica = scene.serve("replica", "h2", log=copy, server_log=log)
        wait_until(lambda: late, "the server is not asked")
        for seed in range(2, 6):
            assert push_one(scene, seed, seed % 2).parts[0].is_granted
        scene.server.loop.run(lambda: [handle(event) for event in late])
        scene.await_replica()
        assert scene.replica.tables.state.num_commits >= 5
        for seed in range(6, 10):
            assert push_one(scene, seed, seed % 2).parts[0].is_granted
        check_equal(scene)
        assert min(scene.models["replica"]) == 6


@pytest.mark.parametrize("is_live", [False, True])
def test_the_bound_counts_the_momentum_that_the_model_had(tmp_path: Path, is_live: bool) -> None:
    """Before it joins, the model moves fast; then it lacks an update that says nothing of that."""
    log, copy = tmp_path / "log", tmp_path / "copy"
    with ReplicaScene(
        tmp_path, has_replica=False, log=log, optimiser=SGD, div_max=1e6, num_workers=1
    ) as scene:
        for _ in range(5):
            scene.workers[0].push(np.full(VALUES, 100, np.float32)).result(WAIT_S)
        shutil.copytree(log, copy)
        server_log = log if is_live else None
        scene.replica = scene.serve("replica", "h2", log=copy, server_log=server_log)
        scene.await_replica()
        before = scene.model_of(scene.replica)
        paths = scene.workers[0]._replicas._paths
        wait_until(lambda: 0 in paths, "the worker has not heard of the replica")
        paths[0].link.send = lambda _: None  # type: ignore[method-assign]
        push_one(scene, 1)
        # While the server joins, its version may be too high for a moment; distances are not.
        ahead = [0.0]

        def is_ahead() -> bool:
            ahead[:] = [e["distance"] for e in scene.events("replicated") if e["distance"]]
            return bool(ahead)

        wait_until(is_ahead, "the commit is not logged")
        bound = ahead[0]
        distance = float(np.linalg.norm(scene.model_of(scene.server) - before.astype(np.float64)))
        assert distance > 10 * SGD.learning_rate * float(np.linalg.norm(fraction_of(1)))
        assert distance <= bound * (1 + 1e-6)


def test_other_changes_are_refused_from_its_first_place_on(tmp_path: Path) -> None:
    with catching_up(tmp_path) as (scene, source):
        tensor = scene.workers[0]._tensor
        gate = scene.server.updates.gate
        wait_until(lambda: gate.is_closed, "the server has not heard of it")
        with pytest.raises(ConfigurationError, match="this server has a replica"):
            tensor.push(update_of(1)).result(WAIT_S)
        renew(tmp_path, source)
        scene.await_replica()
        push_one(scene, 20)
        check_equal(scene)
