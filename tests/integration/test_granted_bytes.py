# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""At the interfaces: no byte of an update or a model before its grant, none of a dropped one."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from fake_transfers import FakeTransfers, dropped, expected, granted, say_nothing, server, worker
from frames_to import FramesTo
from scheme_fabric import Fabric
from switchfold.bmv2_topos import Testbed, single_switch, state
from switchfold.hostlib.parameter_server import (
    ClientOptions,
    HotRowUse,
    ParameterServer,
    ServerOptions,
)
from switchfold.hostlib.parameter_server.tables import (
    DenseTensor,
    TableClient,
    TensorDefinition,
)
from switchfold.hostlib.parameter_server.transfers import FabricWorker, TransferOptions
from time_bound import wait_until

VALUES = 1 << 18
UPDATE_BYTES = 4 * VALUES
SMALL_BYTES = UPDATE_BYTES // 20
"""More than all control frames and pulls' requests of a test, and a small part of an update."""
RATE = 100_000_000
WAIT_S = 60.0
DEFINITION = TensorDefinition(name="w", num_values=VALUES)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
pytestmark = [pytest.mark.root, needs_root]


@pytest.fixture
def fabric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Fabric]:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    topology = single_switch(2, rate_bits_per_s=RATE)
    with Testbed(topology, name=f"test-grants-{os.getpid()}", has_bridge=True) as testbed:
        yield Fabric(testbed)


class Scene:
    """A worker on the first host, and a server on the second."""

    def __init__(self, fabric: Fabric, fake: FakeTransfers) -> None:
        self._fabric = fabric
        self.fake = fake

        def serve() -> ParameterServer:
            options = ServerOptions(num_workers=1, transfers=self._options("h2"))
            return ParameterServer(options, address=fabric.addresses[1])

        def join() -> FabricWorker:
            options = ClientOptions(
                worker_id=0, source=fabric.addresses[0], use_hot_rows=HotRowUse.NEVER
            )
            client = TableClient([(self.server.address, self.server.port)], options)
            return FabricWorker(DenseTensor(client, DEFINITION), self._options("h1"))

        self.server = fabric.at(1, serve)
        self.worker = fabric.at(0, join)

    def _options(self, host: str) -> TransferOptions:
        return TransferOptions(
            controller=self.fake.address, job="train", host=host, grant_wait_s=WAIT_S
        )

    def served(self) -> int:
        """Return how many bytes the server's interface has sent."""
        return self._fabric.carried()[1][0]

    def sent(self) -> int:
        """Return how many bytes the worker's interface has sent."""
        return self._fabric.carried()[0][0]

    def stream(self) -> FramesTo:
        """Count what the worker sends to the server from now on."""
        interface = single_switch(2).hosts[0].interface
        return self._fabric.at(0, lambda: FramesTo(interface, self.server.address))

    def close(self) -> None:
        self.worker.close()
        self.worker._tensor.client.close()
        self.server.close()


@pytest.fixture
def scene(fabric: Fabric, tmp_path: Path) -> Generator[Scene]:
    fake = FakeTransfers(say_nothing, f"unix:{tmp_path}/scheduler")
    made = Scene(fabric, fake)
    yield made
    made.close()
    fake.stop()


def while_it_waits(scene: Scene, call: Callable[[], object]) -> int:
    """Return how many bytes leave while a push waits for its answer, for two heartbeats."""
    before = scene.sent()
    call()
    asked = len(scene.fake.wait_for(worker(0), "requested"))
    beats = len(scene.fake.said(worker(0), "heartbeat"))
    scene.fake.wait_for(worker(0), "heartbeat", beats + 2)
    assert len(scene.fake.said(worker(0), "requested")) == asked
    return scene.sent() - before


def test_no_byte_of_an_update_leaves_before_its_grant(scene: Scene) -> None:
    update = np.ones(VALUES, np.float32)
    futures = []
    assert while_it_waits(scene, lambda: futures.append(scene.worker.push(update))) < SMALL_BYTES
    before = scene.sent()
    scene.fake.tell(server(), expected(0, 0, 1))
    scene.fake.tell(worker(0), granted(1, 0, (0.0, 1.0, RATE)))
    assert futures[0].result(WAIT_S).parts[0].is_granted
    assert scene.sent() - before >= UPDATE_BYTES


def test_no_byte_of_a_model_leaves_before_its_grant(scene: Scene) -> None:
    scene.fake.grants_models = False
    before = scene.served()
    future = scene.worker.get()
    (asked,) = scene.fake.wait_for(server(), "model_requested")
    beats = len(scene.fake.said(server(), "heartbeat"))
    scene.fake.wait_for(server(), "heartbeat", beats + 2)
    assert not future.done()
    assert scene.served() - before < SMALL_BYTES
    scene.fake.tell(server(), granted(asked.transfer_id, 0, (0.0, 1.0, RATE)))
    assert not future.result(WAIT_S).any()
    assert scene.served() - before >= UPDATE_BYTES
    assert not scene.server.updates.counters["ungranted_models"]


def test_no_byte_of_a_dropped_update_leaves(scene: Scene) -> None:
    futures = []
    with closing(scene.stream()) as stream:
        push = partial(scene.worker.push, np.ones(VALUES, np.float32))
        while_it_waits(scene, lambda: futures.append(push()))
        scene.fake.tell(worker(0), dropped(1, "too old"))
        outcome = futures[0].result(WAIT_S)
        assert outcome.drop_reasons == ("too old",)
        assert not outcome.model.any()
        # The request for that model is counted, and its receipts are not: they have no payload.
        assert 0 < stream.num_payload_bytes < SMALL_BYTES


def test_no_byte_leaves_between_two_spans(scene: Scene) -> None:
    """The second span is an hour away: the rest of the update waits for it.

    What does not leave in the first one is lost to it, so it is long: a thread may stand still.
    """
    half_s = 8.0
    rate = round(UPDATE_BYTES * 8 / half_s / 2)
    future = scene.worker.push(np.ones(VALUES, np.float32))
    scene.fake.wait_for(worker(0), "requested")
    before = scene.sent()
    scene.fake.tell(server(), expected(0, 0, 1))
    scene.fake.tell(
        worker(0), granted(1, 0, (0.0, half_s, rate), (half_s + 3600, half_s + 3601, RATE))
    )
    wait_until(lambda: scene.sent() - before > SMALL_BYTES, "nothing has left")
    seen = [-1, -2]

    def is_still() -> bool:
        """Return whether three looks a heartbeat apart have seen the same, but for heartbeats."""
        beats = len(scene.fake.said(worker(0), "heartbeat"))
        scene.fake.wait_for(worker(0), "heartbeat", beats + 1)
        seen.append(scene.sent() - before)
        return max(seen[-3:]) - min(seen[-3:]) < 4096

    wait_until(is_still, "bytes leave all the time")
    assert not future.done()
    assert seen[-1] < UPDATE_BYTES * 3 // 4
    # Other requests do not wait behind the update.
    assert not scene.worker.get().result(WAIT_S).any()
