# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Several controllers: which one a worker calls, what it learns, and when it gives one up."""

from __future__ import annotations

from typing import Any

import pytest

from fake_controller import FakeController, join_reply
from switchfold.hostlib.control import controller_channel
from switchfold.hostlib.control.controller_addresses import ControllerAddresses
from switchfold.hostlib.control.controller_link import GrpcControllerLink
from switchfold.hostlib.control.join_request import JoinRequest
from switchfold.hostlib.control.session_api import session_pb2 as api
from switchfold.hostlib.control.view import Endpoint
from switchfold.hostlib.errors import ConfigurationError
from switchfold.hostlib.options import SessionOptions
from time_bound import wait_until

REQUEST = JoinRequest(
    job="train",
    worker_id=0,
    num_workers=1,
    local=Endpoint(address="10.0.0.1", mac="02:00:00:00:00:01"),
    peers=("10.0.0.1", 4000),
    options=SessionOptions(ingress_port=1),
)


def test_addresses_are_called_in_turn_and_learned_ones_come_last():
    addresses = ControllerAddresses(" a:1, b:2 ")
    assert (addresses.current, addresses.all, addresses.are_several) == (
        "a:1",
        ("a:1", "b:2"),
        True,
    )
    addresses.learn(["b:2", "c:3", "", "c:3"])
    seen = [addresses.current]
    for _ in range(3):
        addresses.turn()
        seen.append(addresses.current)
    assert seen == ["a:1", "b:2", "c:3", "a:1"]


def test_standby_that_names_itself_or_nobody_is_left():
    addresses = ControllerAddresses("a:1,b:2")
    addresses.follow("c:3")
    assert addresses.current == "c:3"
    addresses.follow("")
    assert addresses.current == "a:1"
    addresses.follow("a:1")
    assert addresses.current == "b:2"
    with pytest.raises(ConfigurationError, match="names no address"):
        ControllerAddresses(" , ")


def test_worker_leaves_a_controller_that_is_silent_for_one_that_it_was_told_of(
    monkeypatch: pytest.MonkeyPatch,
):
    """The first one stands still: its kernel keeps the connection, and nothing comes."""
    monkeypatch.setattr(controller_channel, "CONNECT_TIMEOUT_S", 60.0)

    def join(message: api.WorkerMessage, _: Any) -> list[api.ControllerMessage]:
        if not message.HasField("join_request"):
            return []
        if message.join_request.HasField("resume"):
            return [join_reply(resume_secret=b"")]
        known = api.Controllers(addresses=[first.address, second.address], beat_s=0.1)
        # In this order: it has the secret before it can find the controller silent.
        return [join_reply(resume_secret=b"s"), api.ControllerMessage(controllers=known)]

    second = FakeController(join)
    first = FakeController(join)
    link = GrpcControllerLink(first.address, REQUEST)
    link.join(60.0)

    def resumes() -> list[api.Resume]:
        requests = [seen.join_request for seen in second.seen if seen.HasField("join_request")]
        return [request.resume for request in requests]

    wait_until(resumes, "a call of the second controller")
    assert resumes()[0].secret == b"s"
    link.close()
    for controller in (first, second):
        controller.stop()
