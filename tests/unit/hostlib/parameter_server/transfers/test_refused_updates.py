# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Pushes that the scheduler refuses: they fail, and the worker goes on."""

from __future__ import annotations

import grpc
import numpy as np
import pytest

from fake_transfers import (
    Caller,
    FakeTransfers,
    Policy,
    grant_everything,
    refused,
    say_nothing,
    server,
    worker,
)
from switchfold.hostlib.control import kept_stream
from switchfold.hostlib.control.transfers_api import transfers_pb2 as api
from switchfold.hostlib.errors import JobRefusedError, UpdateRefusedError
from transfer_scene import WAIT_S, TransferScene, values

REFUSED = grpc.StatusCode.INVALID_ARGUMENT, "no such server"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST_PAUSE_S", "LAST_PAUSE_S"):
        monkeypatch.setattr(kept_stream, name, 0.02)


def refuse_first(others: Policy) -> Policy:
    """Refuse the first request of all; let others answer."""
    seen: list[int] = []

    def answer(fake: FakeTransfers, caller: Caller, message: api.StationMessage) -> None:
        if message.HasField("requested") and not seen:
            transfer = message.requested.transfer_id
            seen.append(transfer)
            fake.tell(caller, refused(transfer, "no such server"), REFUSED)
        else:
            others(fake, caller, message)

    return answer


def test_a_refused_push_fails_and_the_next_one_is_granted() -> None:
    with TransferScene(refuse_first(grant_everything())) as scene:
        scene.fake.wait_for(server(), "register")
        fabric = scene.worker(0)
        with pytest.raises(UpdateRefusedError, match="server 0: no such server"):
            fabric.push(values(1)).result(WAIT_S)
        (part,) = fabric.push(values(2)).result(WAIT_S).parts
        assert part.is_granted
        np.testing.assert_array_equal(fabric.get().result(WAIT_S), values(2))
        assert len(scene.fake.said(worker(0), "register")) == 2
        assert fabric.counters == {
            "pushes": 2,
            "refused_updates": 1,
            "failed_pushes": 1,
            "granted_updates": 1,
        }
        assert not scene.fake.said(worker(0), "withdrawn")


def test_what_waits_beside_a_refused_push_is_asked_for_again() -> None:
    with TransferScene(say_nothing) as scene:
        scene.fake.wait_for(server(), "register")
        fabric = scene.worker(0)
        waiting = fabric.push(values(1))
        scene.fake.wait_for(worker(0), "requested")
        scene.fake.policy = refuse_first(grant_everything())
        with pytest.raises(UpdateRefusedError):
            fabric.push(values(2)).result(WAIT_S)
        assert waiting.result(WAIT_S).parts[0].is_granted
        asked = [each.transfer_id for each in scene.fake.said(worker(0), "requested")]
        assert asked == [1, 2, 1]


def test_the_part_for_another_server_is_applied() -> None:
    with TransferScene(refuse_first(grant_everything()), num_servers=2) as scene:
        for shard in range(2):
            scene.fake.wait_for(server(shard), "register")
        fabric = scene.worker(0)
        with pytest.raises(UpdateRefusedError):
            fabric.push(values(1)).result(WAIT_S)
        assert sorted(
            server.updates.counters["granted_updates"] for server in scene.cluster.servers
        ) == [0, 1]


def test_a_refusal_that_names_no_request_stays() -> None:
    with TransferScene(say_nothing) as scene:
        scene.fake.wait_for(server(), "register")
        fabric = scene.worker(0)
        waiting = fabric.push(values(1))
        scene.fake.wait_for(worker(0), "requested")
        scene.fake.tell(worker(0), REFUSED)
        with pytest.raises(JobRefusedError, match="no such server"):
            waiting.result(WAIT_S)
        with pytest.raises(JobRefusedError):
            fabric.push(values(1))
