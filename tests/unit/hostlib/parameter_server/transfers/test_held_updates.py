# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker that sends before its granted time: its bytes are not read, and it is named."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Callable
from concurrent.futures import Future

import pytest

from fake_transfers import expected, granted, say_nothing, server, skipped, worker
from switchfold.hostlib.parameter_server.tables import TensorDefinition
from switchfold.hostlib.parameter_server.transfers import FabricWorker, PushOutcome
from switchfold.hostlib.peers.connection import AHEAD_BYTES
from time_bound import wait_until
from transfer_scene import WAIT_S, TransferScene, values

FAST = (0.0, 1.0, 10_000_000_000)
HOUR_S = 3600.0
VALUES = 1 << 20
DEFINITION = TensorDefinition(name="w", num_values=VALUES)


class HeldScene(TransferScene):
    """Worker 0's update has place 1, in an hour; worker 1's has place 0. Worker 0 does not wait."""

    def __init__(self) -> None:
        super().__init__(say_nothing, definition=DEFINITION)
        self.early, self.other = self.worker(0), self.worker(1)
        self.future = self.early.push(values(1, VALUES))
        self.fake.wait_for(worker(0), "requested")
        in_an_hour = expected(1, 0, 1, due_s=2 * HOUR_S, begins_s=HOUR_S)
        self.fake.tell(server(), expected(0, 1, 1), in_an_hour)
        self.await_places(2)
        self.fake.tell(worker(0), granted(1, 1, FAST))
        self.await_counter("early_updates")

    def await_places(self, count: int) -> None:
        updates = self.cluster.servers[0].updates
        wait_until(lambda: updates.progress.next_sequence == count, "no place")

    def push_other(self) -> Future[PushOutcome]:
        future = self.other.push(values(2, VALUES))
        self.fake.wait_for(worker(1), "requested")
        self.fake.tell(worker(1), granted(1, 0, FAST))
        return future

    def room_bytes(self) -> int:
        """Return how many bytes the server's end takes that nobody reads."""
        port = self.cluster.servers[0].updates._ports._ports[0]
        buffer = port._connection._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        return buffer + AHEAD_BYTES

    def accepted_bytes(self) -> int:
        """Return how many bytes of worker 0 the server's kernel has accepted."""
        link = self.early._links[0]._link
        assert link is not None
        assert link._connection is not None
        return link._connection.sent_bytes - link.unacknowledged_bytes


def tell_again(scene: HeldScene) -> None:
    scene.fake.tell(server(), expected(1, 0, 1))


def skip(scene: HeldScene) -> None:
    scene.fake.tell(server(), skipped(1))


def cut(scene: HeldScene) -> None:
    scene.fake.break_streams()


def push_once_more(scene: HeldScene) -> None:
    """Have the same worker granted an update that may begin now, behind the one that is held."""
    scene.early.push(values(3, VALUES))
    scene.fake.wait_for(worker(0), "requested", 2)
    scene.fake.tell(server(), expected(2, 0, 2))
    scene.fake.tell(worker(0), granted(2, 2, FAST))


@pytest.mark.parametrize("end", [tell_again, skip, cut, push_once_more])
def test_an_early_update_is_not_read_before_its_time(end: Callable[[HeldScene], None]) -> None:
    with HeldScene() as scene:
        assert scene.push_other().result(WAIT_S).is_committed
        beats = len(scene.fake.said(server(), "heartbeat"))
        scene.fake.wait_for(server(), "heartbeat", beats + 2)
        assert scene.accepted_bytes() <= scene.room_bytes() < DEFINITION.num_values
        assert not scene.future.done()
        end(scene)
        assert scene.future.result(WAIT_S).is_committed
        assert scene.counter("early_updates") == 1
        if end is not cut:  # then there is nobody to tell
            told = scene.fake.wait_for(server(), "delivered", 2)
            assert {each.worker_id: each.is_early for each in told[:2]} == {0: True, 1: False}


def test_an_early_update_is_read_when_its_time_comes() -> None:
    with TransferScene(say_nothing, definition=DEFINITION) as scene:
        fabric: FabricWorker = scene.worker(0)
        numbers = itertools.count()

        def push_early() -> bool:
            """Push before the time, which a slow thread may miss; return whether it was so."""
            number = next(numbers)
            future = fabric.push(values(number, VALUES))
            scene.fake.wait_for(worker(0), "requested", number + 1)
            scene.fake.tell(server(), expected(number, 0, number + 1, due_s=3.0, begins_s=2.0))
            updates = scene.cluster.servers[0].updates
            wait_until(lambda: updates.progress.next_sequence == number + 1, "no place")
            scene.fake.tell(worker(0), granted(number + 1, number, FAST))
            assert future.result(WAIT_S).is_committed
            return scene.counter("early_updates") > 0

        wait_until(push_early, "an early update")


def test_updates_of_a_closed_worker_are_held_no_longer() -> None:
    with HeldScene() as scene:
        scene.early.close()
        assert scene.push_other().result(WAIT_S).is_committed
        ports = scene.cluster.servers[0].updates._ports._ports
        wait_until(lambda: 0 not in ports, "the connection is still there")
