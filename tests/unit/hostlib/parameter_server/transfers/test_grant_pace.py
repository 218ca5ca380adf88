# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Updates that do not keep to their grants, at a server: too early, or of another size."""

from __future__ import annotations

import pytest

from fake_transfers import Caller, FakeTransfers, expected, granted, server, worker
from switchfold.hostlib.control.transfers_api import transfers_pb2 as api
from switchfold.hostlib.errors import PeerMismatchError
from time_bound import wait_until
from transfer_scene import WAIT_S, TransferScene, values

FAST = (0.0, 1.0, 10_000_000_000)


@pytest.mark.parametrize(("earliest_s", "is_early"), [(0.0, True), (0.1, False)])
def test_an_update_that_comes_long_before_its_time_is_noticed(
    caplog: pytest.LogCaptureFixture, earliest_s: float, *, is_early: bool
) -> None:
    def mislead(fake: FakeTransfers, caller: Caller, message: api.StationMessage) -> None:
        if message.HasField("requested"):
            place = expected(0, caller.station_id, 1, due_s=600.0, earliest_s=earliest_s)
            fake.tell(server(), place)

    with TransferScene(mislead) as scene:
        fabric = scene.worker(0)
        future = fabric.push(values(1))
        scene.fake.wait_for(worker(0), "requested")
        wait_until(lambda: scene.cluster.servers[0].updates.progress.next_sequence == 1, "no place")
        scene.fake.tell(worker(0), granted(1, 0, FAST))
        assert future.result(WAIT_S).is_committed
        assert scene.counter("early_updates") == is_early
        assert ("seems to ignore its grants" in caplog.text) == is_early


def test_an_update_of_another_size_than_it_was_granted_is_refused() -> None:
    def tell_of_less(fake: FakeTransfers, caller: Caller, message: api.StationMessage) -> None:
        if message.HasField("requested"):
            number = message.requested.transfer_id
            size_bytes = message.requested.size_bytes - (number == 1)
            fake.tell(server(), expected(number - 1, 0, number, size_bytes=size_bytes))

    with TransferScene(tell_of_less) as scene:
        fabric = scene.worker(0)
        futures = [fabric.push(values(number)) for number in (1, 2)]
        updates = scene.cluster.servers[0].updates
        wait_until(lambda: updates.progress.next_sequence == 2, "the places are not known")
        scene.fake.tell(worker(0), granted(1, 0, FAST), granted(2, 1, FAST))
        with pytest.raises(PeerMismatchError, match="asked the scheduler for a grant of"):
            futures[0].result(WAIT_S)
        assert futures[1].result(WAIT_S).is_committed
        assert scene.counter("missized_updates") == 1
        told = scene.fake.wait_for(server(), "delivered", 2)
        assert {d.transfer_id: d.is_refused for d in told} == {1: True, 2: False}
