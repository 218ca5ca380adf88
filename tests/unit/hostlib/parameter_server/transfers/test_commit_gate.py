# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A server with a replica applies planned updates alone, as far as the scheduler allows."""

from __future__ import annotations

import numpy as np
import pytest

from fake_transfers import FakeTransfers, expected, granted, say_nothing, server, skipped, worker
from switchfold.hostlib.control.transfers_api import transfers_pb2 as api
from switchfold.hostlib.errors import ConfigurationError, WorkerTakenError
from switchfold.hostlib.parameter_server.rows import Adagrad, GradientSum, Optimiser, Sgd
from switchfold.hostlib.parameter_server.tables import TableDefinition
from switchfold.hostlib.parameter_server.tables.change import ScheduledUpdate, TableChange
from switchfold.hostlib.parameter_server.tables.state import TableState
from switchfold.hostlib.parameter_server.transfers import FabricWorker
from switchfold.hostlib.parameter_server.transfers.arrivals.place_order import PlaceOrder, UpdateKey
from switchfold.hostlib.parameter_server.transfers.replicas.model_checksum import (
    model_checksum,
    unstarted_tables,
)
from switchfold.hostlib.parameter_server.transfers.replicas.worker_replicas import (
    momentum_of,
    step_scale,
)
from switchfold.hostlib.peers.frames import FrameKind
from time_bound import wait_until
from transfer_scene import WAIT_S, TransferScene, values, wait_briefly

FAST = (0.0, 1.0, 10_000_000_000)


def joined(next_sequence: int = 0, hold_s: float = WAIT_S) -> api.SchedulerMessage:
    return api.SchedulerMessage(
        replica_joined=api.ReplicaJoined(next_sequence=next_sequence, hold_s=hold_s)
    )


def allowed(next_sequence: int) -> api.SchedulerMessage:
    return api.SchedulerMessage(allowed=api.CommitAllowed(next_sequence=next_sequence))


def close_gate(scene: TransferScene, hold_s: float = WAIT_S) -> FabricWorker:
    """Tell a server that its replica has joined; return a worker."""
    fabric = scene.worker(0)
    scene.fake.tell(server(), joined(hold_s=hold_s))
    gate = scene.cluster.servers[0].updates.gate
    wait_until(lambda: gate.is_closed, "the gate is open")
    return fabric


def grant(fake: FakeTransfers, fabric: FabricWorker, sequence: int) -> None:
    """Grant a worker's last request."""
    asked = fake.wait_for(worker(0), "requested", sequence + 1)[-1]
    fake.tell(server(), expected(sequence, 0, asked.transfer_id))
    fake.tell(worker(0), granted(asked.transfer_id, sequence, FAST))


def test_updates_wait_until_they_are_allowed() -> None:
    with TransferScene(say_nothing) as scene:
        fabric, update = close_gate(scene), values(1)
        futures = [fabric.push(update)]
        grant(scene.fake, fabric, 0)
        futures.append(fabric.push(update))
        grant(scene.fake, fabric, 1)
        scene.fake.wait_for(server(), "delivered", 2)
        assert not any(future.done() for future in futures)
        scene.fake.tell(server(), allowed(1))
        assert futures[0].result(WAIT_S).is_committed
        told = scene.fake.said(server(), "committed")
        wait_until(lambda: scene.fake.said(server(), "committed")[-1].next_sequence == 1, str(told))
        assert not futures[1].done()
        scene.fake.tell(server(), allowed(2))
        assert futures[1].result(WAIT_S).is_committed


def test_an_update_without_a_place_is_refused_and_its_worker_gets_the_model() -> None:
    with TransferScene(say_nothing) as scene:
        fabric = close_gate(scene)
        wait_briefly(fabric)
        outcome = fabric.push(values(1)).result(WAIT_S)
        assert "the scheduler has no place for the update" in outcome.drop_reasons[0]
        assert outcome.model is not None
        assert not outcome.model.any()
        assert scene.counter("withheld_updates") == 1
        refused = scene.fake.wait_for(server(), "delivered")[-1]
        assert (refused.is_granted, refused.is_refused) == (False, True)


def test_a_late_update_is_refused() -> None:
    with TransferScene(say_nothing) as scene:
        fabric = close_gate(scene)
        future = fabric.push(values(1))
        asked = scene.fake.wait_for(worker(0), "requested")[-1]
        scene.fake.tell(server(), expected(0, 0, asked.transfer_id), skipped(0))
        scene.await_counter("skipped_places")
        scene.fake.tell(worker(0), granted(asked.transfer_id, 0, FAST))
        assert not future.result(WAIT_S).is_committed
        assert scene.counter("withheld_updates") == 1


def test_without_the_scheduler_a_server_waits_and_then_goes_on() -> None:
    with TransferScene(say_nothing) as scene:
        fabric, update = close_gate(scene, hold_s=0.3), values(1)
        waiting = fabric.push(update)
        grant(scene.fake, fabric, 0)
        scene.fake.wait_for(server(), "delivered")
        wait_briefly(fabric)
        scene.fake.break_streams()
        scene.fake.stop()
        gate = scene.cluster.servers[0].updates.gate
        wait_until(lambda: gate.is_holding or not gate.is_closed, "the scheduler is there")
        direct = fabric.push(update)
        assert waiting.result(WAIT_S).is_committed
        assert direct.result(WAIT_S).is_committed
        assert np.array_equal(fabric.get().result(WAIT_S), 2 * update)


def test_a_server_whose_replica_has_its_place_applies_nothing_more() -> None:
    with TransferScene(say_nothing) as scene:
        fabric, updates = close_gate(scene), scene.cluster.servers[0].updates
        wait_briefly(fabric)
        taken = WorkerTakenError("another process has the place")
        scene.cluster.servers[0].loop.run(lambda: updates.on_failed(taken))
        outcome = fabric.push(values(1)).result(WAIT_S)
        assert "a replica has taken the server's place" in outcome.drop_reasons[0]


def test_other_changes_are_refused_unless_they_change_nothing() -> None:
    with TransferScene(say_nothing) as scene:
        fabric = scene.worker(0)
        tensor = fabric._tensor
        tensor.start(values(1)).result(WAIT_S)
        scene.fake.tell(server(), api.SchedulerMessage(report_state=api.ReportState()))
        state = scene.fake.wait_for(server(), "state")[-1]
        assert (state.version, state.next_sequence) == (0, 0)
        tensor.start(values(2)).result(WAIT_S)
        assert np.array_equal(fabric.get().result(WAIT_S), values(1))
        with pytest.raises(ConfigurationError, match="this server has a replica"):
            tensor.push(values(2)).result(WAIT_S)
        scene.fake.tell(server(), api.SchedulerMessage(replica_left=api.ReplicaLeft(reason="x")))
        gate = scene.cluster.servers[0].updates.gate
        wait_until(lambda: not gate.is_closed, "the gate is closed")
        tensor.push(values(2)).result(WAIT_S)


def test_first_values_are_refused_once_a_replica_is_compared() -> None:
    with TransferScene(say_nothing) as scene:
        fabric = scene.worker(0)
        fabric.get().result(WAIT_S)  # makes the rows
        scene.fake.tell(server(), api.SchedulerMessage(report_state=api.ReportState()))
        scene.fake.wait_for(server(), "state")
        with pytest.raises(ConfigurationError, match="START of worker 0"):
            fabric._tensor.start(values(2)).result(WAIT_S)


def test_places_beyond_the_limit_wait_and_skipped_ones_do_not() -> None:
    order = PlaceOrder[int](1.0)
    order.restart(0)
    order.limit = 0
    for sequence in (0, 1, 3):
        assert not order.arrive(UpdateKey(0, sequence + 1), sequence, sequence, 0.0)
    assert order.give_up_s is None
    assert [each.item for each in order.allow(1)] == [0]
    assert order.skip(1) == []
    assert order.next == 1, "an update that has come for it waits"
    assert [each.item for each in order.allow(4)] == [1]
    assert [each.item for each in order.skip(2)] == [3]
    assert order.skip(4) == []
    assert order.next == 5, "nothing comes for it, so it needs no allowance"
    assert [each.item for each in order.allow(None)] == []


def state_of(optimiser: Optimiser | None = None, seed: int = 1) -> tuple[TableState, int]:
    """A table with three rows that worker 0 has started."""
    definition = TableDefinition(name="w", width=4, optimiser=optimiser or GradientSum())
    state = TableState(1)
    keys = np.arange(3)
    rows = np.random.default_rng(seed).random((3, 4), np.float32)
    payload = memoryview(keys.tobytes() + rows.tobytes())
    requests = [
        (TableChange(FrameKind.ENTER, 0, 7, 0), memoryview(b"")),
        (TableChange(FrameKind.DEFINE, 0, 7, 1), memoryview(definition.pack())),
        (TableChange(FrameKind.START, 0, 7, 2, definition.number, 3), payload),
    ]
    for request, content in requests:
        state.apply(request, content)
    return state, definition.number


def update_of(open_from: int, number: int = 1) -> memoryview:
    payload = bytearray(16 + 8 + 16)
    ScheduledUpdate(1.0, open_from).pack_into(memoryview(payload))
    payload[24:] = np.ones(4, np.float32).tobytes()
    return memoryview(payload)


def test_checksums_are_those_of_values_state_and_optimiser() -> None:
    (one, table), (same, _) = state_of(), state_of()
    assert model_checksum(one) == model_checksum(same)
    one.pull(table, np.arange(3))
    assert model_checksum(one) == model_checksum(same), "reads change nothing"
    one.apply(TableChange(FrameKind.TRANSFER, 0, 7, 1, table, 1), update_of(1))
    assert model_checksum(one) != model_checksum(same)
    same.apply(TableChange(FrameKind.TRANSFER, 0, 7, 1, table, 1), update_of(1), lsn=9)
    assert model_checksum(one) == model_checksum(same), "with and without a log"
    assert model_checksum(state_of(seed=2)[0]) != model_checksum(state_of()[0])
    rates = [state_of(Sgd(learning_rate=rate))[0] for rate in (0.1, 0.2)]
    assert model_checksum(rates[0]) != model_checksum(rates[1])


def test_rows_that_nobody_has_started_are_known() -> None:
    state, table = state_of()
    assert not unstarted_tables(state)
    state.pull(table, np.arange(5))
    assert unstarted_tables(state) == {table}


def test_a_replica_applies_updates_of_a_process_that_was_replaced() -> None:
    """Its server had applied them; a number of the new process does not hide them."""
    state, table = state_of()
    before = state.pull(table, np.zeros(1, np.int64)).values
    state.apply(TableChange(FrameKind.ENTER, 0, 8, 0), memoryview(b""))
    state.apply(TableChange(FrameKind.TRANSFER, 0, 8, 1, table, 1), update_of(1))
    state.apply(TableChange(FrameKind.TRANSFER, 0, 7, 1, table, 1), update_of(1))
    assert state.num_commits == 1, "a server forgets it"
    state.apply(TableChange(FrameKind.TRANSFER, 0, 7, 1, table, 1), update_of(0))
    assert state.num_commits == 2
    assert state.workers[0].updates == [1]
    np.testing.assert_array_equal(state.pull(table, np.zeros(1, np.int64)).values, before + 2)


def test_norms_bound_the_steps_of_two_optimisers() -> None:
    assert momentum_of(GradientSum()) == 0.0
    assert momentum_of(Sgd(learning_rate=0.5, momentum=0.9)) == 0.9
    assert momentum_of(Adagrad(learning_rate=0.5)) is None
    assert step_scale(Sgd(learning_rate=0.5)) == 0.5
    assert step_scale(GradientSum()) == 1.0
