# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A server reports its state at a place while updates go on, and what its log has there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fake_transfers import expected, granted, say_nothing, server, skipped, worker
from switchfold.hostlib.control.stations.station import MOST_NORM
from switchfold.hostlib.control.transfers_api import transfers_pb2 as api
from switchfold.hostlib.parameter_server.rows import Adam, GradientSum, Optimiser, Sgd
from switchfold.hostlib.parameter_server.tables import TableDefinition
from switchfold.hostlib.parameter_server.tables.change import TableChange
from switchfold.hostlib.parameter_server.tables.state import TableState
from switchfold.hostlib.parameter_server.transfers import FabricWorker
from switchfold.hostlib.parameter_server.transfers.replicas.model_checksum import (
    model_checksum,
    momentum_step,
)
from switchfold.hostlib.peers.frames import FrameKind
from time_bound import wait_until
from transfer_scene import WAIT_S, TransferScene, values

FAST = (0.0, 1.0, 10_000_000_000)


def wanted(next_sequence: int) -> api.SchedulerMessage:
    return api.SchedulerMessage(report_state=api.ReportState(next_sequence=next_sequence))


def allowed(next_sequence: int) -> api.SchedulerMessage:
    return api.SchedulerMessage(allowed=api.CommitAllowed(next_sequence=next_sequence))


def asked(scene: TransferScene, number: int) -> int:
    """The id of worker 0's request with that number from 0."""
    found = scene.fake.wait_for(worker(0), "requested", number + 1)[number]
    assert isinstance(found.transfer_id, int)
    return found.transfer_id


def send(scene: TransferScene, number: int) -> None:
    """Grant a request of worker 0 the place of its number."""
    transfer_id = asked(scene, number)
    scene.fake.tell(server(), expected(number, 0, transfer_id))
    scene.fake.tell(worker(0), granted(transfer_id, number, FAST))


def test_state_is_that_of_the_place_though_later_updates_are_allowed(tmp_path: Path) -> None:
    with TransferScene(say_nothing, folder=tmp_path) as scene:
        fabric = scene.worker(0)
        futures = [fabric.push(values(seed)) for seed in range(3)]
        for number in range(3):
            asked(scene, number)
        scene.fake.tell(server(), wanted(1), allowed(3))
        gate = scene.cluster.servers[0].updates.gate
        wait_until(lambda: gate.is_asked, "the server has not been asked")
        send(scene, 2)
        send(scene, 1)
        scene.fake.wait_for(server(), "delivered", 2)
        assert not scene.fake.said(server(), "state")
        send(scene, 0)
        state = scene.fake.wait_for(server(), "state")[0]
        assert all(future.result(WAIT_S).is_committed for future in futures)
        assert (state.version, state.next_sequence) == (1, 1)
        tables = scene.cluster.servers[0].tables
        assert tables.log is not None
        assert state.log == tables.log.identity.bytes
        assert state.lsn == tables.log.durable_lsn - 2  # two updates have come since
    with TransferScene(say_nothing) as scene:
        done = scene.worker(0).push(values(0))
        send(scene, 0)
        assert done.result(WAIT_S).is_committed
        assert state.checksum == model_checksum(scene.cluster.servers[0].tables.state)


def test_a_server_that_is_beyond_the_place_reports_where_it_is(tmp_path: Path) -> None:
    """A worker's update may come before the scheduler's word about its place."""
    with TransferScene(say_nothing, folder=tmp_path) as scene:
        fabric = scene.worker(0)
        first = fabric.push(values(1))
        scene.fake.tell(worker(0), granted(asked(scene, 0), 0, FAST))
        assert first.result(WAIT_S).is_committed
        scene.fake.tell(server(), wanted(0))
        state = scene.fake.wait_for(server(), "state")[0]
        assert (state.version, state.next_sequence) == (1, 1)


def test_a_place_that_is_skipped_is_over(tmp_path: Path) -> None:
    with TransferScene(say_nothing, folder=tmp_path) as scene:
        fabric = scene.worker(0)
        gate = scene.cluster.servers[0].updates.gate
        fabric.push(values(1))
        scene.fake.tell(server(), expected(0, 0, asked(scene, 0)), wanted(1))
        wait_until(lambda: gate.is_asked, "the server has not been asked")
        assert not scene.fake.said(server(), "state")
        scene.fake.tell(server(), skipped(0))
        state = scene.fake.wait_for(server(), "state")[0]
        assert (state.version, state.next_sequence) == (0, 1)


def test_state_waits_for_changes_that_are_on_their_path_to_the_log(tmp_path: Path) -> None:
    with TransferScene(say_nothing, folder=tmp_path) as scene:
        fabric: FabricWorker = scene.worker(0)
        tables = scene.cluster.servers[0].tables
        assert tables.log is not None
        first = fabric.push(values(1))
        send(scene, 0)
        assert first.result(WAIT_S).is_committed
        before = tables.log.durable_lsn
        go_on = tables._on_durable
        late: list[int] = []
        tables._on_durable = late.append  # type: ignore[method-assign]
        pushed = fabric._tensor.push(values(2))
        wait_until(lambda: late, "the push is not in the log")
        scene.fake.tell(server(), wanted(1))
        gate = scene.cluster.servers[0].updates.gate
        wait_until(lambda: gate.is_asked, "the server has not been asked")
        assert not scene.fake.said(server(), "state")
        del tables._on_durable
        scene.cluster.servers[0].loop.run(lambda: [go_on(lsn) for lsn in late])
        pushed.result(WAIT_S)
        state = scene.fake.wait_for(server(), "state")[0]
        assert (state.version, state.lsn) == (1, before + 1)


def test_a_server_without_a_log_says_so() -> None:
    with TransferScene(say_nothing) as scene:
        scene.worker(0)
        scene.fake.tell(server(), wanted(0))
        state = scene.fake.wait_for(server(), "state")[0]
        assert (state.log, state.lsn) == (b"", 0)


def pushed_twice(optimiser: Optimiser) -> TableState:
    """A state whose table of 5 values in 2 rows got the gradients 1, 2, ... and 10, 20, ..."""
    state = TableState(1)
    definition = TableDefinition(name="t", width=5, optimiser=optimiser)
    changes = [
        (FrameKind.ENTER, b"", 0),
        (FrameKind.DEFINE, definition.pack(), 0),
        *((FrameKind.PUSH, batch(factor), 2) for factor in (1.0, 10.0)),
    ]
    for number, (kind, payload, num_keys) in enumerate(changes):
        table = 0 if kind is FrameKind.ENTER else definition.number
        request = TableChange(kind, 0, 7, number, table, num_keys or int(not number))
        state.apply(request, memoryview(payload))
    return state


def batch(factor: float) -> bytes:
    keys, gradients = np.arange(2, dtype=np.int64), np.arange(1, 11, dtype=np.float32)
    return keys.tobytes() + (gradients * np.float32(factor)).tobytes()


def test_momentum_can_move_the_model_by_its_norm_times_the_rate() -> None:
    gradient = np.arange(1, 11, dtype=np.float64)
    state = pushed_twice(Sgd(learning_rate=0.25, momentum=0.5))
    step = 0.25 * float(np.linalg.norm(0.5 * gradient + 10 * gradient))
    assert momentum_step(state) == pytest.approx(step, rel=1e-6)


@pytest.mark.parametrize(
    "optimiser", [GradientSum(), Sgd(learning_rate=0.25), Adam(learning_rate=0.1)]
)
def test_without_momentum_nothing_moves_the_model(optimiser: Optimiser) -> None:
    assert momentum_step(pushed_twice(optimiser)) == 0.0


def test_a_model_that_has_diverged_has_the_greatest_step() -> None:
    state = pushed_twice(Sgd(learning_rate=0.25, momentum=0.5))
    (table,) = state.tables.values()
    for factor in (3e38, 3e38):
        keys = np.arange(2, dtype=np.int64)
        gradients = np.full((2, 5), factor, np.float32)
        table.apply(keys, gradients, 0, is_replay=False)
    assert momentum_step(state) == MOST_NORM
