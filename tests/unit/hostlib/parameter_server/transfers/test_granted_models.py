# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Models that a scheduler grants, refuses, or does not answer, at real servers and workers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import grpc
import numpy as np
import pytest

from cutting_proxy import CuttingProxy
from fake_transfers import grant_everything, granted, refused, say_nothing, server
from loopback import LOOPBACK
from switchfold.hostlib.errors import PeerProtocolError
from switchfold.hostlib.parameter_server.tables import TensorDefinition
from switchfold.hostlib.parameter_server.tables.dense import Values
from switchfold.hostlib.parameter_server.tables.pulls.open_pull import OpenPull
from switchfold.hostlib.peers.frames import FrameKind, TableFrame
from time_bound import wait_until
from transfer_scene import WAIT_S, TransferScene, values

FAST = (0.0, 1.0, 10_000_000_000)
LARGE = TensorDefinition(name="large", num_values=1 << 18)
LARGE_BYTES = 4 * LARGE.num_values
HOUR_S = 3600.0


def model_scene(policy: Any = say_nothing, **options: Any) -> TransferScene:
    """A scene whose scheduler answers no request of a model by itself."""
    return TransferScene(policy, model_wait_s=WAIT_S, **options)


def sent_bytes(scene: TransferScene, worker_id: int = 0) -> int:
    """Return what the server has handed to the kernel for a worker's tables."""
    return scene.cluster.servers[0].tables._clients[worker_id].connection.sent_bytes


def asked_for(scene: TransferScene, get: Callable[[], Future[Values]], count: int = 1) -> Any:
    """Begin a get; return it, and what the server has asked the scheduler for."""
    future = get()
    return future, scene.fake.wait_for(server(), "model_requested", count)[-1]


def hear_heartbeats(scene: TransferScene) -> None:
    """Wait for two further heartbeats of the server: at least a second."""
    beats = len(scene.fake.said(server(), "heartbeat"))
    scene.fake.wait_for(server(), "heartbeat", beats + 2)


def test_no_byte_of_a_model_leaves_before_its_grant() -> None:
    with model_scene(definition=LARGE) as scene:
        fabric = scene.worker(1)
        before = sent_bytes(scene, 1)
        future, asked = asked_for(scene, fabric.get)
        assert (asked.transfer_id, asked.worker_id) == (1, 1)
        hear_heartbeats(scene)
        assert not future.done()
        assert sent_bytes(scene, 1) - before < LARGE_BYTES // 100
        scene.fake.tell(server(), granted(1, 0, FAST))
        assert not future.result(WAIT_S).any()
        # The server counts bytes a moment after the worker has them.
        wait_until(lambda: asked.size_bytes <= sent_bytes(scene, 1) - before, "all is counted")
        assert sent_bytes(scene, 1) - before < asked.size_bytes * 1.01
        assert scene.fake.wait_for(server(), "model_delivered")[0].transfer_id == 1
        observed = scene.fake.wait_for(server(), "rate_observed")[0]
        assert (observed.transfer_id, observed.size_bytes) == (1, asked.size_bytes)
        assert scene.counter("granted_models") == 1
        assert not scene.counter("ungranted_models")


def test_the_model_is_that_of_its_first_byte() -> None:
    """What is applied while a model waits for its grant is in it."""
    with model_scene(grant_everything()) as scene:
        first, second = scene.worker(0), scene.worker(1)
        future, asked = asked_for(scene, first.get)
        assert second.push(values(7)).result(WAIT_S).is_committed
        scene.fake.tell(server(), granted(asked.transfer_id, 0, FAST))
        assert np.array_equal(future.result(WAIT_S), values(7))
        assert first.commits.tolist() == [1]


def test_a_model_leaves_as_fast_as_granted_and_nothing_waits_behind_it() -> None:
    with model_scene(definition=LARGE) as scene:
        fabric = scene.worker(0)
        tensor = fabric._tensor
        future, asked = asked_for(scene, fabric.get)
        slow = (0.0, HOUR_S, round(8 * asked.size_bytes / HOUR_S))
        scene.fake.tell(server(), granted(1, 0, slow))
        pull = tensor.client.sessions[0]._pulls[1]
        wait_until(lambda: pull.filled_bytes > 0, "no byte has come")
        # Plain pulls are no models, and do not wait behind one.
        assert not tensor.pull(0, LARGE.block_values).result(WAIT_S).any()
        assert len(scene.fake.said(server(), "model_requested")) == 1
        assert not future.done()
        assert pull.filled_bytes < LARGE_BYTES // 2


def test_a_model_without_an_answer_goes_directly(caplog: pytest.LogCaptureFixture) -> None:
    with TransferScene(say_nothing, model_wait_s=0.05) as scene:
        fabric = scene.worker(0)
        assert not fabric.get().result(WAIT_S).any()
        withdrawn = scene.fake.wait_for(server(), "withdrawn")[0]
        assert (withdrawn.transfer_id, withdrawn.is_sent_ungranted) == (1, True)
        assert scene.counter("ungranted_models") == 1
        # A grant that comes after that is handed back.
        scene.fake.tell(server(), granted(1, 0, FAST))
        scene.fake.wait_for(server(), "withdrawn", 2)
        assert not scene.fake.said(server(), "model_delivered")
    assert "models are sent without grants" in caplog.text


def test_training_goes_on_without_a_scheduler() -> None:
    with TransferScene(None, model_wait_s=0.05) as scene:
        assert not scene.worker(0).get().result(WAIT_S).any()
        assert scene.counter("ungranted_models") == 1


def test_a_scheduler_that_is_gone_holds_no_model_up_and_grants_again_later() -> None:
    with TransferScene(say_nothing, model_wait_s=0.3) as scene:
        fabric = scene.worker(0)
        future, _ = asked_for(scene, fabric.get)
        scene.fake.stop()
        assert not future.result(WAIT_S).any()
        assert scene.counter("ungranted_models") == 1
        fake = scene.restart_scheduler(say_nothing)
        fake.wait_for(server(), "heartbeat")

        def is_granted() -> bool:  # unless its answer takes too long
            assert not fabric.get().result(WAIT_S).any()
            return scene.counter("granted_models") > 0

        wait_until(is_granted, "no grant")


def test_a_request_is_repeated_after_a_broken_stream() -> None:
    with model_scene() as scene:
        fabric = scene.worker(0)
        future, asked = asked_for(scene, fabric.get)
        scene.fake.break_streams()
        (_, again) = scene.fake.wait_for(server(), "model_requested", 2)
        assert again == asked
        scene.fake.tell(server(), granted(1, 0, FAST))
        assert not future.result(WAIT_S).any()


def test_a_model_that_cannot_be_planned_goes_directly_and_the_stream_stays() -> None:
    with model_scene() as scene:
        fabric = scene.worker(0)
        future, _ = asked_for(scene, fabric.get)
        scene.fake.tell(server(), refused(1, "no route leads there"))
        assert not future.result(WAIT_S).any()
        assert scene.counter("refused_models") == 1
        future, asked = asked_for(scene, fabric.get, 2)
        scene.fake.tell(server(), granted(asked.transfer_id, 0, FAST))
        assert not future.result(WAIT_S).any()
        assert len(scene.fake.said(server(), "register")) == 1


def test_a_model_over_no_link_leaves_at_once() -> None:
    with model_scene() as scene:
        future, asked = asked_for(scene, scene.worker(0).get)
        scene.fake.tell(server(), granted(asked.transfer_id, 0))
        assert not future.result(WAIT_S).any()
        scene.fake.wait_for(server(), "model_delivered")
        assert not scene.fake.said(server(), "rate_observed")


def test_a_connection_that_breaks_within_a_model_brings_it_whole() -> None:
    """The worker asks again, and what came before counts no more."""
    with model_scene(grant_everything(), definition=LARGE) as scene:
        update = np.arange(LARGE.num_values, dtype=np.float32)
        assert scene.worker(0).push(update).result(WAIT_S).is_committed
        limits = itertools.chain([LARGE_BYTES // 2], itertools.repeat(1 << 40))
        _, port = scene.cluster.addresses[0]
        with CuttingProxy(port, limits) as proxy:
            tensor = scene.tensor(1, [(LOOPBACK, proxy.port)])
            pulled = tensor.read(is_model=True)
            for number in 1, 2:
                scene.fake.wait_for(server(), "model_requested", number)
                scene.fake.tell(server(), granted(number, 0, FAST))
            assert np.array_equal(pulled.result(WAIT_S).values, update)
            assert proxy.num_cuts == 1
            # The server notes a model's end a moment after the worker has it. A connection that
            # closes before that, as the proxy's does now, counts as a failure.
            scene.fake.wait_for(server(), "model_delivered")
        withdrawn = scene.fake.wait_for(server(), "withdrawn")[0]
        assert (withdrawn.transfer_id, withdrawn.is_sent_ungranted) == (1, False)
        assert scene.counter("failed_models") == 1


def test_a_server_without_a_scheduler_asks_nobody() -> None:
    with TransferScene(say_nothing, are_servers_stations=False) as scene:
        assert not scene.worker(0).get().result(WAIT_S).any()
        assert not scene.counter("ungranted_models")


def test_a_server_that_is_refused_sends_models_at_once() -> None:
    with model_scene() as scene:
        fabric = scene.worker(0)
        future, _ = asked_for(scene, fabric.get)
        scene.fake.tell(server(), (grpc.StatusCode.ALREADY_EXISTS, "the place is taken"))
        assert not future.result(WAIT_S).any()
        assert not fabric.get().result(WAIT_S).any()
        assert len(scene.fake.said(server(), "model_requested")) == 1


def test_pieces_must_make_up_the_answer() -> None:
    pull = OpenPull(TableFrame(FrameKind.PULL, 16, 1, num_keys=2), memoryview(b""), 3, print)
    size = 4 * (2 * (3 + 1) + 4)
    assert pull.room(size - 8, is_last=False).nbytes == size - 8
    pull.filled_bytes = size - 8
    for wrong, is_last in (9, False), (9, True), (7, True):
        with pytest.raises(PeerProtocolError, match=f"rows of .* bytes instead of {size}"):
            pull.room(wrong, is_last=is_last)
    assert pull.room(8, is_last=True).nbytes == 8
