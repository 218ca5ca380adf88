# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Live replicas: equal models, bounded distances, fail-over, and what a replica cannot follow."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest

from replica_scene import VALUES, WAIT_S, ReplicaScene, update_of
from switchfold.controller.api.operator_api import schedule_pb2
from switchfold.controller.transfers.schedule_service import schedule_report
from switchfold.hostlib.control import kept_stream
from switchfold.hostlib.errors import ConfigurationError, HostlibError, WorkerTakenError
from switchfold.hostlib.parameter_server.rows import Adam, GradientSum, Optimiser, Sgd
from switchfold.hostlib.parameter_server.tables.dense import Values
from switchfold.hostlib.parameter_server.tables.session import ShardSession
from switchfold.hostlib.parameter_server.transfers import FabricWorker, PushOutcome
from switchfold.hostlib.parameter_server.transfers.outgoing import OutgoingUpdate
from time_bound import wait_until

SUM = np.zeros(VALUES, np.float32)
Pushed = list[tuple[Values, Future[PushOutcome]]]
PATIENT = dict.fromkeys(("overdue_least_s", "server_wait_s", "replica_wait_s"), 3600.0)
"""Nothing is given up, however slow the machine is."""


def await_known(worker: FabricWorker) -> None:
    """Wait until a worker is registered, and has heard of the replica."""
    paths = worker._replicas._paths
    wait_until(lambda: 0 in paths, "the worker has not heard of the replica")


def push(
    scene: ReplicaScene, rounds: int, first_seed: int = 0, *, is_sparse: bool = False
) -> Pushed:
    """Push updates of all workers in turn; sparse ones are of a random half of all blocks."""
    pushed: Pushed = []
    for seed in range(first_seed, first_seed + rounds * len(scene.workers)):
        update, worker = update_of(seed), scene.workers[seed % len(scene.workers)]
        if is_sparse:
            rows = update.reshape(scene.definition.num_blocks, -1)
            order = np.random.default_rng(seed).permutation(len(rows))
            blocks, others = np.split(order, [len(rows) // 2])
            rows[others] = 0.0
            pushed.append((update, worker.push_blocks(blocks, rows[blocks])))
        else:
            pushed.append((update, worker.push(update)))
    return pushed


def committed(pushed: Pushed) -> Values:
    """Wait for all outcomes; return the sum of the updates that were not dropped."""
    total = np.zeros(VALUES, np.float32)
    for update, future in pushed:
        if future.result(WAIT_S).is_committed:
            total += update
    return total


def are_granted(pushed: Pushed) -> bool:
    return all(future.result(WAIT_S).parts[0].is_granted for _, future in pushed)


@pytest.mark.parametrize("has_log", [False, True])
def test_replica_gets_all_updates_from_the_workers_and_equals_the_server(
    tmp_path: Path, has_log: bool
) -> None:
    log = tmp_path / "log" if has_log else None
    with ReplicaScene(tmp_path, log=log, **PATIENT) as scene:
        scene.await_replica()
        pushed = push(scene, 10)
        total = committed(pushed)
        assert are_granted(pushed)
        scene.await_drained()
        assert np.array_equal(scene.models["server"][20], total)
        assert scene.models["replica"].keys() == scene.models["server"].keys()
        for version, model in scene.models["server"].items():
            assert np.array_equal(model, scene.models["replica"][version]), version


def test_first_updates_wait_until_the_replica_has_joined(tmp_path: Path) -> None:
    with ReplicaScene(tmp_path, num_workers=0, **PATIENT) as scene:
        job = scene.controller.job
        wait_until(lambda: (found := job()) and found.replicas.station_of(0), "no replica")
        scene.workers = [scene.work(0)]
        await_known(scene.workers[0])  # else it might go on without the scheduler
        pushed = push(scene, 5)
        total = committed(pushed)
        assert are_granted(pushed)
        scene.await_drained()
        assert np.array_equal(scene.models["replica"][5], total)


def test_copies_wait_until_the_replica_has_let_a_late_worker_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Updates of a worker are granted before its replica has answered it; none gets lost."""
    with ReplicaScene(tmp_path, div_max=0.0, num_late=1, **PATIENT) as scene:
        scene.await_replica()
        total = committed(push(scene, 1))
        entering: list[Callable[[], None]] = []
        enter = ShardSession.enter

        def enter_late(session: ShardSession, done: Callable[[HostlibError | None], None]) -> None:
            if scene.replica is not None and session.address[1] == scene.replica.port:
                entering.append(lambda: enter(session, done))
            else:
                enter(session, done)

        monkeypatch.setattr(ShardSession, "enter", enter_late)
        scene.workers.append(scene.work(1))
        wait_until(lambda: entering, "the worker does not enter at the replica")
        update = update_of(9)
        pushed = scene.workers[1].push(update)
        wait_until(lambda: scene.workers[1].counters["granted_updates"], "nothing is granted")
        scene.workers[1]._loop.run(lambda: [call() for call in entering])
        assert pushed.result(WAIT_S).is_committed
        scene.await_drained()
        assert np.array_equal(scene.models["replica"][2], total + update)
        job = scene.controller.job()
        assert job is not None
        assert job.replicas.in_place(0), "the replica was given up"


def test_replica_begins_with_the_first_values(tmp_path: Path) -> None:
    with ReplicaScene(tmp_path, num_workers=0) as scene:
        first = update_of(77)
        scene.workers = [scene.work(0, first)]
        scene.await_replica()
        scene.workers[0].push(update_of(1)).result(WAIT_S)
        scene.await_drained()
        assert np.array_equal(scene.models["replica"][1], first + update_of(1))


def true_distances(scene: ReplicaScene) -> list[tuple[float, float]]:
    """Return (true distance, bound) for each event that says how far the server is ahead."""
    found: list[tuple[float, float]] = []
    for event in scene.events("replicated"):
        theirs = scene.models["server"].get(event["version"], SUM)
        ours = scene.models["replica"].get(event["replica_version"], SUM)
        distance = np.linalg.norm(theirs.astype(np.float64) - ours.astype(np.float64))
        found.append((float(distance), event["distance"]))
    return found


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_true_distance_is_within_the_bound_and_that_within_div_max(
    tmp_path: Path, momentum: float, is_sparse: bool
) -> None:
    norm = float(np.linalg.norm(update_of(0)))
    div_max = 0.1 * 3 * norm / (1 - momentum)
    sgd = Sgd(learning_rate=0.1, momentum=momentum)
    with ReplicaScene(tmp_path, optimiser=sgd, div_max=div_max, replica_mbit=2, **PATIENT) as scene:
        scene.await_replica()
        assert are_granted(push(scene, 30, is_sparse=is_sparse))
        scene.await_drained()
        wait_until(
            lambda: scene.events("replicated")[-1]["replica_version"] == 60, "the end is not logged"
        )
        distances = true_distances(scene)
        assert len(distances) > 60
        rounding = 1 + 1e-4
        for distance, bound in distances:
            assert distance <= bound * rounding
            assert bound <= div_max
        assert max(distance for distance, _ in distances) > 0, "the replica was never behind"
        np.testing.assert_array_equal(scene.models["server"][60], scene.models["replica"][60])


def test_div_max_of_0_applies_nothing_that_the_replica_lacks(tmp_path: Path) -> None:
    with ReplicaScene(tmp_path, div_max=0.0, replica_mbit=2, **PATIENT) as scene:
        scene.await_replica()
        assert are_granted(push(scene, 5))
        assert {event["distance"] for event in scene.events("replicated")} == {0.0}


def check_fail_over(scene: ReplicaScene, before: Values) -> Values:
    """Close the server, wait for the replica, and check that the workers go on with it.

    Returns the sum of what was pushed afterwards.
    """
    assert scene.replica is not None
    scene.server.close()
    wait_until(lambda: scene.events("promoted"), "the replica is not promoted")
    (promoted,) = scene.events("promoted")
    for worker in scene.workers:
        wait_until(lambda w=worker: w.counters["moved_servers"], "a worker has not moved")
    model = scene.workers[0].get().result(WAIT_S)
    distance = float(np.linalg.norm(before.astype(np.float64) - model))
    assert distance <= promoted["distance"] * (1 + 1e-6)
    for worker in scene.workers:
        worker.get().result(WAIT_S)
    after = committed(push(scene, 5, 1000))
    assert np.array_equal(scene.workers[0].get().result(WAIT_S), model + after)
    return after


def test_replica_takes_the_place_of_its_server_without_a_loss(tmp_path: Path) -> None:
    with ReplicaScene(tmp_path, div_max=0.0, **PATIENT) as scene:
        scene.await_replica()
        total = committed(push(scene, 10))
        assert np.array_equal(scene.workers[0].get().result(WAIT_S), total)
        after = check_fail_over(scene, total)
        assert np.array_equal(scene.workers[0].get().result(WAIT_S), total + after)
        assert scene.events("promoted")[0]["lost"] == 0
        assert scene.events("promoted")[0]["distance"] == 0


def test_updates_that_are_under_way_count_once_at_the_promoted_replica(tmp_path: Path) -> None:
    """The server is closed while workers push; what it had not acknowledged is applied once."""
    with ReplicaScene(tmp_path, div_max=0.0, **PATIENT) as scene:
        scene.await_replica()
        total = committed(push(scene, 3))
        scene.workers[0].get().result(WAIT_S)
        pushed = push(scene, 2, 100)
        scene.server.close()
        total += committed(pushed)
        model = scene.workers[0].get().result(WAIT_S)
        assert np.array_equal(model, total)
        assert scene.events("promoted")[0]["lost"] == 0


def test_updates_that_the_server_had_not_acknowledged_count_once(tmp_path: Path) -> None:
    """The scheduler has allowed them, the replica has them, and the server ends before it acts."""
    with ReplicaScene(tmp_path, div_max=0.0, **PATIENT) as scene:
        scene.await_replica()
        assert scene.replica is not None
        total = committed(push(scene, 1))
        scene.server.tables.submit_update = lambda *_: None  # type: ignore[method-assign]
        pushed = push(scene, 1, 100)
        wait_until(lambda: scene.events("replicated")[-1]["version"] == 4, "they are not allowed")
        assert not any(future.done() for _, future in pushed)
        scene.server.close()
        total += committed(pushed)
        assert np.array_equal(scene.workers[0].get().result(WAIT_S), total)
        assert scene.replica.tables.state.num_commits == 4
        assert [worker.counters["repeated_requests"] for worker in scene.workers] == [0, 0]


class HeldCopies:
    """Keeps a worker's copies to the replica back, from when it is made."""

    def __init__(self, worker: FabricWorker) -> None:
        await_known(worker)
        self._worker = worker
        self._link = worker._replicas._paths[0].link
        self._kept: list[OutgoingUpdate] = []
        self._link.send = self._kept.append  # type: ignore[method-assign]

    def restore(self) -> None:
        """Send later updates again."""
        del self._link.send

    def send(self) -> None:
        """Send what was kept, and wait for an answer for half a second only: none can come.

        The server has taken later ones, and a connection keeps the order.
        """

        def send() -> None:
            self._link.limit_waits(WAIT_S, 0.5)
            for update in self._kept:
                self._link.send(update)

        self._worker._loop.run(send)


def test_lost_updates_are_counted_and_bounded(tmp_path: Path) -> None:
    """The replica lacks the last four updates, which the server had acknowledged."""
    bound = sum(float(np.linalg.norm(update_of(seed))) for seed in range(2, 6))
    with ReplicaScene(tmp_path, div_max=bound + 1, **PATIENT) as scene:
        scene.await_replica()
        kept = committed(push(scene, 1))
        scene.await_drained()
        held = [HeldCopies(worker) for worker in scene.workers]
        lost = committed(push(scene, 2, 2))
        total = scene.workers[0].get().result(WAIT_S)
        assert np.array_equal(total, kept + lost)
        for each in held:
            each.restore()
        after = check_fail_over(scene, total)
        (promoted,) = scene.events("promoted")
        assert (promoted["version"], promoted["lost"]) == (2, 4)
        assert promoted["distance"] == pytest.approx(bound)
        for each in held:
            each.send()
        wait_until(
            lambda: sum(worker.counters["lost_updates"] for worker in scene.workers) == 4,
            "the workers do not count the lost updates",
        )
        assert np.array_equal(scene.workers[0].get().result(WAIT_S), kept + after)


def test_server_that_comes_back_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_stream, "TAKEN_WAIT_S", 0.1)
    with ReplicaScene(tmp_path, div_max=0.0, **PATIENT) as scene:
        scene.await_replica()
        total = committed(push(scene, 2))
        check_fail_over(scene, total)
        back = scene.serve("server", "h1")
        wait_until(lambda: back.updates.problem, "the server is not refused")
        assert isinstance(back.updates.problem, WorkerTakenError)


def test_promoted_server_goes_on_when_an_empty_replica_is_refused(tmp_path: Path) -> None:
    with ReplicaScene(tmp_path, div_max=0.0, num_workers=1, **PATIENT) as scene:
        scene.await_replica()
        first = scene.replica
        check_fail_over(scene, SUM)
        assert first is not None
        late = scene.serve("replica", "h2")
        wait_until(lambda: late.updates.problem, "the empty replica is not refused")
        total = scene.workers[0].get().result(WAIT_S)
        assert np.array_equal(total + committed(push(scene, 2, 50)), scene.model_of(first))


def test_server_goes_on_if_the_replica_lacks_an_update_of_a_worker_that_is_gone(
    tmp_path: Path,
) -> None:
    with ReplicaScene(tmp_path, reconnect_grace_s=0.1) as scene:
        scene.await_replica()
        HeldCopies(scene.workers[0])
        total = committed(push(scene, 1))
        scene.workers[0].close()
        scene.await_none()
        update = update_of(9)
        assert scene.workers[1].push(update).result(WAIT_S).is_committed
        assert np.array_equal(scene.workers[1].get().result(WAIT_S), total + update)


def test_server_goes_on_without_a_replica_to_which_nothing_comes(tmp_path: Path) -> None:
    with ReplicaScene(tmp_path, div_max=0.0, replica_wait_s=0.3) as scene:
        scene.await_replica()
        for worker in scene.workers:
            HeldCopies(worker)
        total = committed(push(scene, 1))
        scene.await_none()
        assert np.array_equal(scene.workers[0].get().result(WAIT_S), total)


def test_server_goes_on_without_a_replica_that_is_killed(tmp_path: Path) -> None:
    with ReplicaScene(tmp_path, div_max=0.0, reconnect_grace_s=0.1) as scene:
        assert scene.replica is not None
        scene.await_replica()
        total = committed(push(scene, 2))
        pushed = push(scene, 2, 100)
        scene.replica.close()
        total += committed(pushed)
        scene.await_none()
        total += committed(push(scene, 2, 200))
        assert np.array_equal(scene.workers[0].get().result(WAIT_S), total)


def test_late_replica_is_refused_without_the_servers_log(tmp_path: Path) -> None:
    with ReplicaScene(tmp_path, has_replica=False) as scene:
        committed(push(scene, 1))
        late = scene.serve("replica", "h2")
        wait_until(lambda: late.updates.problem, "the replica is not refused")
        assert "version 0" in str(late.updates.problem)
        assert "version 2" in str(late.updates.problem)
        total = committed(push(scene, 2, 10))
        assert total.any()


def test_late_replica_joins_with_a_copy_of_the_servers_log(tmp_path: Path) -> None:
    log, copy = tmp_path / "log", tmp_path / "copy"
    with ReplicaScene(tmp_path, has_replica=False, log=log) as scene:
        total = committed(push(scene, 3))
        shutil.copytree(log, copy)  # nothing is under way
        scene.replica = scene.serve("replica", "h2", log=copy)
        scene.await_replica()
        assert scene.replica.tables.state.num_commits == 6
        total += committed(push(scene, 3, 10))
        scene.await_drained()
        assert np.array_equal(scene.model_of(scene.replica), scene.model_of(scene.server))
        assert np.allclose(scene.workers[0].get().result(WAIT_S), total, atol=1e-5)


@pytest.mark.parametrize(
    ("optimisers", "is_taken"),
    [([Adam(learning_rate=0.1)], False), ([GradientSum()], True)],
)
def test_div_max_needs_an_optimiser_whose_steps_norms_bound(
    tmp_path: Path, optimisers: Sequence[Optimiser], is_taken: bool
) -> None:
    with ReplicaScene(tmp_path, optimiser=optimisers[0], div_max=1.0) as scene:
        assert scene.replica is not None
        updates = scene.replica.updates
        if is_taken:
            scene.await_replica()
        else:
            wait_until(lambda: updates.problem, "the replica is not refused")
            assert "optimisers GradientSum and Sgd" in str(updates.problem)


def test_without_div_max_a_replica_takes_any_optimiser(tmp_path: Path) -> None:
    with ReplicaScene(tmp_path, optimiser=Adam(learning_rate=0.1), **PATIENT) as scene:
        scene.await_replica()
        committed(push(scene, 5))
        scene.await_drained()
        np.testing.assert_array_equal(scene.models["server"][10], scene.models["replica"][10])


def test_other_changes_of_a_replicated_server_are_refused(tmp_path: Path) -> None:
    with ReplicaScene(tmp_path, **PATIENT) as scene:
        scene.await_replica()
        tensor = scene.workers[0]._tensor
        with pytest.raises(ConfigurationError, match="this server has a replica"):
            tensor.push(update_of(1)).result(WAIT_S)
        total = committed(push(scene, 2))
        scene.await_drained()
        assert np.array_equal(scene.models["replica"][4], total)


def test_training_goes_on_after_the_controller_and_the_replica_joins_no_more(
    tmp_path: Path,
) -> None:
    """A server that hears nothing waits until its replica must have been promoted, then goes on."""
    with ReplicaScene(tmp_path, lease_s=5.0, grant_wait_s=0.2) as scene:
        scene.await_replica()
        total = committed(push(scene, 2))
        scene.controller.close()
        pushed = push(scene, 2, 100)
        total += committed(pushed)
        assert not any(f.result(WAIT_S).parts[0].is_granted for _, f in pushed)
        assert np.array_equal(scene.workers[0].get().result(WAIT_S), total)


def test_an_operator_sees_the_copies_for_a_replica(tmp_path: Path) -> None:
    with ReplicaScene(tmp_path, **PATIENT) as scene:
        scene.await_replica()
        assert are_granted(push(scene, 2))
        scene.await_drained()

        async def report() -> schedule_pb2.ScheduleReport:
            job = scene.controller.job()
            assert job is not None
            return schedule_report(job)

        def shown() -> schedule_pb2.ScheduleReport:
            loop = scene.controller._loop
            return asyncio.run_coroutine_threadsafe(report(), loop).result(WAIT_S)

        # What the replica has, the controller hears a moment later.
        wait_until(
            lambda: {each.state for each in shown().transfers} == {"committed"},
            "updates are under way",
        )
        found = {kind: [] for kind in ("update", "replica")}
        for each in shown().transfers:
            found[each.kind].append((each.worker_id, each.sequence, each.state, each.size_bytes))
        assert len(found["update"]) == 4
        assert sorted(found["replica"]) == sorted(found["update"])
        assert {state for _, _, state, _ in found["replica"]} == {"committed"}


def test_a_promoted_replica_has_its_models_planned(tmp_path: Path) -> None:
    with ReplicaScene(tmp_path, **PATIENT) as scene:
        scene.await_replica()
        total = committed(push(scene, 2))
        scene.await_drained()
        scene.server.close()
        updates = scene.replica.updates
        wait_until(lambda: not updates.gate.is_replica, "it is not promoted")
        assert np.array_equal(scene.workers[0].get().result(WAIT_S), total)
        assert updates.counters["granted_models"] == 1
