# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Updates of workers that a scheduler grants, drops, or does not answer, at real servers."""

from __future__ import annotations

import logging
import math

import grpc
import numpy as np
import pytest

from fake_transfers import (
    Caller,
    FakeTransfers,
    dropped,
    expected,
    grant_everything,
    granted,
    say_nothing,
    server,
    skipped,
    worker,
)
from switchfold.hostlib.control import kept_stream
from switchfold.hostlib.control.transfers_api import transfers_pb2 as api
from switchfold.hostlib.errors import (
    ConfigurationError,
    NonFiniteGradientError,
    PeerClosedError,
    RowShapeError,
    StaleUpdateError,
    VersionMismatchError,
    WorkerTakenError,
)
from switchfold.hostlib.parameter_server.tables import TensorDefinition
from switchfold.hostlib.parameter_server.transfers import CommittedUpdate, PushOutcome
from time_bound import wait_until
from transfer_scene import VALUES, WAIT_S, TransferScene, values, wait_briefly

FAST = (0.0, 1.0, 10_000_000_000)


def drop_all(fake: FakeTransfers, caller: Caller, message: api.StationMessage) -> None:
    if message.HasField("requested"):
        fake.tell(caller, dropped(message.requested.transfer_id, "too old"))


def delivered_of(scene: TransferScene, worker_id: int) -> list[api.TransferDelivered]:
    """Return what the server has told of a worker's updates, once it has."""

    def told() -> list[api.TransferDelivered]:
        return [d for d in scene.fake.said(server(), "delivered") if d.worker_id == worker_id]

    wait_until(told, f"a report of an update of worker {worker_id}")
    return told()


def test_a_granted_update_is_applied_and_all_are_told() -> None:
    with TransferScene(grant_everything()) as scene:
        committed: list[CommittedUpdate] = []
        scene.cluster.servers[0].updates.on_update = committed.append
        fabric, update = scene.worker(1), values(1)
        outcome = fabric.push(update).result(WAIT_S)
        assert outcome.is_committed
        assert outcome.model is None
        (part,) = outcome.parts
        assert (part.shard, part.version, part.delay, part.is_granted) == (0, 1, 0, True)
        np.testing.assert_array_equal(fabric.get().result(WAIT_S), update)
        assert fabric.commits.tolist() == [1]
        second = fabric.push(update).result(WAIT_S).parts[0]
        assert (second.version, second.delay) == (2, 0)
        np.testing.assert_array_equal(fabric.get().result(WAIT_S), 2 * update)

        asked = scene.fake.wait_for(worker(1), "requested")[0]
        assert asked.size_bytes == 4 * VALUES + 8 * scene.definition.num_blocks
        assert asked.norm == pytest.approx(float(np.linalg.norm(update)))
        assert scene.fake.wait_for(worker(1), "rate_observed")[0].size_bytes == asked.size_bytes

        def delivered() -> list[tuple[int, int, bool]]:
            told = scene.fake.said(server(), "delivered")  # twice, if the place was told later
            return list(dict.fromkeys((d.worker_id, d.transfer_id, d.is_granted) for d in told))

        wait_until(lambda: delivered() == [(1, 1, True), (1, 2, True)], "a report of each update")
        assert scene.fake.wait_for(server(), "committed", 3)[-1].version == 2
        table = scene.definition.table().number
        assert committed == [
            CommittedUpdate(1, table, version, 0, is_granted=True) for version in (1, 2)
        ]
        assert scene.counter("granted_updates") == 2


def test_the_version_of_an_update_is_that_of_the_last_get() -> None:
    with TransferScene(grant_everything()) as scene:
        first, second = scene.worker(0), scene.worker(1)
        second.get().result(WAIT_S)
        for number in range(3):
            first.get().result(WAIT_S)
            part = first.push(values(number)).result(WAIT_S).parts[0]
            assert (part.version, part.delay) == (number + 1, 0)
        assert second.push(values(9)).result(WAIT_S).parts[0].delay == 3
        versions = [asked.version for asked in scene.fake.said(worker(0), "requested")]
        assert versions == [0, 1, 2]


def test_a_dropped_update_is_not_sent_and_brings_the_newest_model() -> None:
    with TransferScene(grant_everything()) as scene:
        other, update = scene.worker(0), values(1)
        other.push(update).result(WAIT_S)
        scene.fake.policy = drop_all
        fabric = scene.worker(1)
        outcome = fabric.push(values(2)).result(WAIT_S)
        assert not outcome.is_committed
        assert outcome.drop_reasons == ("too old",)
        assert outcome.parts[0].delay == 7
        assert outcome.model is not None
        np.testing.assert_array_equal(outcome.model, update)
        # Later pushes are of that model.
        scene.fake.policy = grant_everything()
        assert fabric.commits.tolist() == [1]
        assert fabric.counters == {"pushes": 1, "dropped_updates": 1}
        assert not scene.fake.said(worker(1), "withdrawn")


def test_updates_are_applied_in_the_order_of_their_places() -> None:
    with TransferScene(say_nothing, place_wait_s=WAIT_S) as scene:
        order: list[int] = []
        updates = scene.cluster.servers[0].updates
        updates.on_update = lambda update: order.append(update.worker_id)
        first, second = scene.worker(0), scene.worker(1)
        scene.fake.tell(server(), expected(0, 0, 1), expected(1, 1, 1))
        early = second.push(values(1))
        scene.fake.wait_for(worker(1), "requested")
        scene.fake.tell(worker(1), granted(1, 1, FAST))
        scene.fake.wait_for(server(), "delivered")
        assert not early.done()
        late = first.push(values(0))
        scene.fake.wait_for(worker(0), "requested")
        assert not early.done()
        scene.fake.tell(worker(0), granted(1, 0, FAST))
        assert late.result(WAIT_S).parts[0].version == 1
        assert early.result(WAIT_S).parts[0].version == 2
        wait_until(lambda: len(order) == 2, "an update is not told")
        assert order == [0, 1]


def test_a_skipped_place_is_not_waited_for() -> None:
    with TransferScene(say_nothing, place_wait_s=WAIT_S) as scene:
        fabric = scene.worker(1)
        future = fabric.push(values(1))
        scene.fake.wait_for(worker(1), "requested")
        scene.fake.tell(server(), expected(0, 0, 1), expected(1, 1, 1))
        scene.fake.tell(worker(1), granted(1, 1, FAST))
        scene.fake.wait_for(server(), "delivered")
        scene.fake.tell(server(), skipped(0))
        assert future.result(WAIT_S).is_committed
        assert scene.counter("skipped_places") == 1


def test_a_place_is_given_up_and_its_update_is_applied_later() -> None:
    with TransferScene(say_nothing, place_wait_s=0.05) as scene:
        first, second = scene.worker(0), scene.worker(1)
        scene.fake.tell(server(), expected(0, 0, 1), expected(1, 1, 1))
        second_push = second.push(values(1))
        scene.fake.wait_for(worker(1), "requested")
        scene.fake.tell(worker(1), granted(1, 1, FAST))
        assert second_push.result(WAIT_S).parts[0].version == 1
        assert scene.counter("abandoned_places") == 1
        late = first.push(values(2))
        scene.fake.wait_for(worker(0), "requested")
        scene.fake.tell(worker(0), granted(1, 0, FAST))
        assert late.result(WAIT_S).parts[0].version == 2
        assert scene.counter("late_updates") == 1
        # The other update is told twice, if the server learnt of its place later.
        assert [told.is_granted for told in delivered_of(scene, 0)] == [False]
        np.testing.assert_array_equal(first.get().result(WAIT_S), values(1) + values(2))


def test_the_server_scales_by_the_factor_of_the_learning_rate() -> None:
    def halve(fake: FakeTransfers, caller: Caller, message: api.StationMessage) -> None:
        if message.HasField("requested"):
            fake.tell(server(), expected(0, caller.station_id, 1, factor=0.5))
            fake.tell(caller, granted(1, 0, FAST, factor=0.5))

    with TransferScene(halve) as scene:
        fabric, update = scene.worker(0), values(1)
        fabric.push(update).result(WAIT_S)
        np.testing.assert_array_equal(fabric.get().result(WAIT_S), update / 2)


def test_an_update_without_an_answer_goes_directly(caplog: pytest.LogCaptureFixture) -> None:
    with TransferScene(say_nothing) as scene:
        fabric, update = scene.worker(0), values(1)
        wait_briefly(fabric)
        with caplog.at_level(logging.WARNING):
            for version in (1, 2):
                part = fabric.push(update).result(WAIT_S).parts[0]
                assert (part.version, part.is_granted) == (version, False)
        said = [record for record in caplog.records if "without grants" in record.getMessage()]
        assert len(said) == 1
        np.testing.assert_array_equal(fabric.get().result(WAIT_S), 2 * update)
        withdrawn = scene.fake.wait_for(worker(0), "withdrawn", 2)
        assert [(w.transfer_id, w.is_sent_ungranted) for w in withdrawn] == [(1, True), (2, True)]
        delivered = scene.fake.wait_for(server(), "delivered", 2)
        assert [(d.transfer_id, d.is_granted) for d in delivered] == [(1, False), (2, False)]
        assert scene.counter("ungranted_updates") == 2
        # A grant that comes too late is handed back, and nothing is sent twice.
        scene.fake.tell(worker(0), granted(1, 0, FAST))
        scene.fake.wait_for(worker(0), "withdrawn", 3)
        assert fabric.counters["granted_updates"] == 0
        np.testing.assert_array_equal(fabric.get().result(WAIT_S), 2 * update)


def test_training_goes_on_without_a_scheduler() -> None:
    with TransferScene(None, tau_max=100) as scene:
        fabrics = [scene.worker(number, grant_wait_s=0.01) for number in range(2)]
        for number, fabric in enumerate(fabrics):
            for _ in range(3):
                assert fabric.push(values(number)).result(WAIT_S).is_committed
        total = 3 * (values(0) + values(1))
        np.testing.assert_array_equal(fabrics[0].get().result(WAIT_S), total)


def test_workers_and_servers_come_back_under_a_scheduler_that_was_killed() -> None:
    with TransferScene(grant_everything()) as scene:
        fabric, update = scene.worker(0), values(1)
        assert fabric.push(update).result(WAIT_S).parts[0].is_granted
        identity = scene.fake.said(worker(0), "register")[0].identity
        scene.fake.stop()
        wait_until(lambda: not fabric._requests._is_registered, "still registered")
        fabric._requests._grant_wait_s = 0.01
        assert not fabric.push(update).result(WAIT_S).parts[0].is_granted
        fake = scene.restart_scheduler(say_nothing)
        register = fake.wait_for(server(), "register")[0]
        assert register.next_sequence == 1
        assert register.version in (1, 2), "that of when it began to call"
        assert fake.wait_for(server(), "committed")[0].version == 2
        assert fake.wait_for(worker(0), "register")[0].identity == identity
        wait_until(lambda: fabric._requests._is_registered, "not registered again")
        future = fabric.push(update)
        asked = fake.wait_for(worker(0), "requested")[0]
        fake.tell(server(), expected(1, 0, asked.transfer_id))
        fake.tell(worker(0), granted(asked.transfer_id, 1, FAST))
        part = future.result(WAIT_S).parts[0]
        assert (part.version, part.is_granted) == (3, True)
        np.testing.assert_array_equal(fabric.get().result(WAIT_S), 3 * update)


def test_a_grant_without_spans_lets_all_leave_at_once() -> None:
    """The server is on the worker's own host."""

    def grant_here(fake: FakeTransfers, caller: Caller, message: api.StationMessage) -> None:
        if message.HasField("requested"):
            fake.tell(server(), expected(0, caller.station_id, message.requested.transfer_id))
            fake.tell(caller, granted(message.requested.transfer_id, 0))

    with TransferScene(grant_here) as scene:
        assert scene.worker(0).push(values(1)).result(WAIT_S).parts[0].is_granted
        assert scene.counter("granted_updates") == 1


def test_requests_are_repeated_before_new_ones() -> None:
    """Ids rise on each stream, also of requests made while there is none."""
    with TransferScene(say_nothing) as scene:
        fabric = scene.worker(0)
        futures = [fabric.push(values(n)) for n in range(3)]
        scene.fake.wait_for(worker(0), "requested", 3)
        scene.fake.refuse = grpc.StatusCode.UNAVAILABLE, "not now"
        scene.fake.break_streams()
        wait_until(lambda: not fabric._requests._is_registered, "still registered")
        futures += [fabric.push(values(n)) for n in range(3, 5)]
        scene.fake.refuse = None
        asked = scene.fake.wait_for(worker(0), "requested", 8)
        assert [each.transfer_id for each in asked] == [1, 2, 3, 1, 2, 3, 4, 5]
        for place, each in enumerate(asked[3:]):
            scene.fake.tell(server(), expected(place, 0, each.transfer_id))
            scene.fake.tell(worker(0), granted(each.transfer_id, place, FAST))
        assert [future.result(WAIT_S).parts[0].version for future in futures] == [1, 2, 3, 4, 5]


def test_a_broken_stream_loses_no_request_and_repeated_answers_are_harmless() -> None:
    with TransferScene(say_nothing) as scene:
        fabric, update = scene.worker(0), values(1)
        future = fabric.push(update)
        first = scene.fake.wait_for(worker(0), "requested")[0]
        scene.fake.break_streams()
        again = scene.fake.wait_for(worker(0), "requested", 2)[1]
        assert again == first
        place, grant = expected(0, 0, first.transfer_id), granted(first.transfer_id, 0, FAST)
        scene.fake.tell(server(), place, place)
        scene.fake.tell(worker(0), grant, grant)
        assert future.result(WAIT_S).parts[0].version == 1
        scene.fake.tell(server(), place)
        scene.fake.tell(worker(0), grant)
        scene.fake.wait_for(server(), "delivered", 2)  # the server says again that it came
        fabric.push(update, 0.0)
        scene.fake.wait_for(worker(0), "requested", 3)
        assert not scene.fake.said(worker(0), "withdrawn")
        np.testing.assert_array_equal(fabric.get().result(WAIT_S), update)
        assert scene.counter("granted_updates") == 1


def test_the_server_refuses_what_is_older_than_tau_max() -> None:
    with TransferScene(grant_everything(), tau_max=1) as scene:
        fresh, old = scene.worker(0), scene.worker(1)
        old.get().result(WAIT_S)
        for number in range(2):
            fresh.get().result(WAIT_S)
            fresh.push(values(number)).result(WAIT_S)
        with pytest.raises(StaleUpdateError, match="delay 2 exceeds tau_max 1") as caught:
            old.push(values(9)).result(WAIT_S)
        assert (caught.value.delay, caught.value.tau_max) == (2, 1)
        assert scene.counter("stale_updates") == 1
        assert delivered_of(scene, 1)[0].is_refused
        # The place of the refused update does not hold up the next one.
        model = old.get().result(WAIT_S)
        np.testing.assert_array_equal(model, values(0) + values(1))
        assert old.push(values(9)).result(WAIT_S).parts[0].version == 3


def test_an_update_that_became_too_old_in_its_place_is_refused_and_said_so() -> None:
    with TransferScene(say_nothing, tau_max=0, num_workers=3, place_wait_s=WAIT_S) as scene:
        late, direct = scene.worker(1), scene.worker(2)
        scene.fake.tell(server(), expected(0, 0, 1), expected(1, 1, 1))
        updates = scene.cluster.servers[0].updates
        wait_until(lambda: updates.progress.next_sequence == 2, "the places are not known")
        held = late.push(values(1))
        scene.fake.wait_for(worker(1), "requested")
        scene.fake.tell(worker(1), granted(1, 1, FAST))
        scene.fake.wait_for(server(), "delivered")
        wait_briefly(direct)
        assert direct.push(values(2)).result(WAIT_S).parts[0].version == 1
        scene.fake.tell(server(), skipped(0))
        with pytest.raises(StaleUpdateError):
            held.result(WAIT_S)
        told = [d for d in scene.fake.wait_for(server(), "delivered", 3) if d.worker_id == 1]
        assert [(d.is_granted, d.is_refused) for d in told] == [(True, False), (True, True)]


def test_parts_of_several_servers_have_a_transfer_each() -> None:
    def drop_at_one(fake: FakeTransfers, caller: Caller, message: api.StationMessage) -> None:
        if not message.HasField("requested"):
            return
        asked = message.requested
        if asked.server_id == 1:
            fake.tell(caller, dropped(asked.transfer_id, "slow"))
        else:
            fake.tell(server(), expected(0, caller.station_id, asked.transfer_id))
            fake.tell(caller, granted(asked.transfer_id, 0, FAST))

    with TransferScene(drop_at_one, num_servers=2) as scene:
        fabric, update = scene.worker(0), values(1)
        outcome = fabric.push(update).result(WAIT_S)
        assert [part.version for part in outcome.parts] == [1, 0]
        assert outcome.drop_reasons == ("slow",)
        assert outcome.model is not None
        is_kept = outcome.model == update
        assert 0 < int((~is_kept).sum()) < VALUES
        assert not outcome.model[~is_kept].any()
        assert fabric.commits.tolist() == [1, 0]
        norms = [asked.norm for asked in scene.fake.said(worker(0), "requested")]
        assert math.hypot(*norms) == pytest.approx(float(np.linalg.norm(update)))


@pytest.mark.parametrize("norm", [math.nan, math.inf, -1.0])
def test_a_norm_that_is_none_is_refused_before_anything_is_sent(norm: float) -> None:
    with TransferScene(grant_everything()) as scene:
        fabric = scene.worker(0)
        with pytest.raises(ConfigurationError, match="Euclidean norm"):
            fabric.push(values(1), norm)
        bad = values(1)
        bad[7] = norm
        if not math.isfinite(norm):
            with pytest.raises(NonFiniteGradientError):
                fabric.push(bad)
        with pytest.raises(RowShapeError):
            fabric.push(values(1)[:-1])
        assert fabric.push(values(1), 3.5).result(WAIT_S).is_committed
        assert [asked.norm for asked in scene.fake.said(worker(0), "requested")] == [3.5]


def test_large_norms_do_not_overflow() -> None:
    with TransferScene(grant_everything()) as scene:
        update = np.full(VALUES, 1e25, np.float32)
        scene.worker(0).push(update).result(WAIT_S)
        (asked,) = scene.fake.said(worker(0), "requested")
        assert asked.norm == pytest.approx(1e25 * math.sqrt(VALUES))
        with pytest.raises(ConfigurationError, match="diverge"):
            scene.worker(1).push(np.full(VALUES, 1e30, np.float32))


def test_a_second_server_with_the_same_id_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_stream, "TAKEN_WAIT_S", 0.0)
    taken = grpc.StatusCode.ALREADY_EXISTS, "another process is server 0"
    with TransferScene(say_nothing) as scene:
        scene.fake.wait_for(server(), "register")
        scene.fake.refuse = taken
        scene.fake.break_streams()
        updates = scene.cluster.servers[0].updates
        wait_until(lambda: updates.problem is not None, "the server is not told")
        assert isinstance(updates.problem, WorkerTakenError)
        assert "server 0 of job 'train'" in str(updates.problem)


def test_a_worker_that_disagrees_is_refused() -> None:
    with TransferScene(say_nothing) as scene:
        scene.fake.wait_for(server(), "register")
        fabric = scene.worker(0)
        waiting = fabric.push(values(1))
        scene.fake.wait_for(worker(0), "requested")
        scene.fake.refuse = grpc.StatusCode.FAILED_PRECONDITION, "tau_max 4 instead of 8"
        scene.fake.break_streams()
        with pytest.raises(VersionMismatchError, match="tau_max 4 instead of 8"):
            waiting.result(WAIT_S)
        with pytest.raises(VersionMismatchError, match="worker 0 of job 'train'"):
            fabric.push(values(1))


def test_a_tensor_and_its_options_have_one_staleness() -> None:
    definition = TensorDefinition(name="s", num_values=VALUES, staleness=0)
    scene = TransferScene(say_nothing, definition=definition)
    with scene, pytest.raises(ConfigurationError, match=r"staleness 0, and the .* have None"):
        scene.worker(0)


def test_reads_of_the_model_are_told() -> None:
    with TransferScene(grant_everything()) as scene:
        requests: list[tuple[int, int]] = []
        updates = scene.cluster.servers[0].updates

        def fail_once(worker_id: int, table: int) -> None:
            requests.append((worker_id, table))
            raise ValueError("a defect of the user's")

        updates.on_request = fail_once
        fabric = scene.worker(1)
        for count in (1, 2):
            fabric.get().result(WAIT_S)
            wait_until(lambda count=count: len(requests) == count, "no callback")
        assert requests == 2 * [(1, scene.definition.table().number)]


def test_closing_fails_what_is_open() -> None:
    with TransferScene(say_nothing) as scene:
        fabric = scene.worker(0)
        future = fabric.push(values(1))
        scene.fake.wait_for(worker(0), "requested")
        fabric.close()
        with pytest.raises(PeerClosedError):
            future.result(WAIT_S)
        with pytest.raises(PeerClosedError):
            fabric.push(values(1))


def test_a_client_that_is_closed_first_leaves_no_push_open() -> None:
    with TransferScene(say_nothing) as scene:
        tensor = scene.tensor(0)
        fabric = scene.worker(0, tensor)
        future = fabric.push(values(1))
        scene.fake.wait_for(worker(0), "requested")
        tensor.client.close()
        fabric.close()
        with pytest.raises(PeerClosedError):
            future.result(WAIT_S)


def test_outcomes_name_each_reason_once() -> None:
    assert PushOutcome(parts=()).is_committed
