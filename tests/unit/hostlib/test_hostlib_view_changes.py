# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's link and view changes: it passes every message on, and sends the answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from fake_controller import FakeController, join_reply, view
from switchfold.hostlib.control import controller_channel, controller_link
from switchfold.hostlib.control.controller_link import GrpcControllerLink
from switchfold.hostlib.control.join_request import JoinRequest
from switchfold.hostlib.control.session_api import session_pb2 as api
from switchfold.hostlib.control.submitted_tensor import SubmittedTensor, SubmittedTensors
from switchfold.hostlib.control.view import Endpoint, JobView
from switchfold.hostlib.control.view_message import decode_view
from switchfold.hostlib.errors import HostlibError
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.straggler import StragglerPolicy
from time_bound import wait_until

REQUEST = JoinRequest(
    job="train",
    worker_id=0,
    num_workers=1,
    local=Endpoint(address="10.0.0.1", mac="02:00:00:00:00:01"),
    peers=("10.0.0.1", 4000),
    options=SessionOptions(
        ingress_port=1,
        straggler=StragglerPolicy(quorum=3, deadline_s=0.5),
        weight=2.0,
        path="switch",
        min_workers=2,
        is_joining=True,
    ),
)


class Listener:
    """An engine that notes what it hears."""

    def __init__(self) -> None:
        self.view = decode_view(view(), job=3, worker_id=0, values_per_packet=32)
        self.proposed = 0
        self.proposals: list[tuple[int, bool]] = []
        self.commits: list[tuple[JobView, int, int]] = []
        self.errors: list[HostlibError] = []
        self.missing: list[tuple[int, list[int]]] = []

    def propose(self, generation: int, *, is_abort: bool) -> None:
        self.proposals.append((generation, is_abort))

    def commit(self, view: JobView, boundary: int, source_worker: int) -> None:
        self.commits.append((view, boundary, source_worker))

    def note_missing(self, generation: int, missing_workers: Sequence[int]) -> None:
        self.missing.append((generation, list(missing_workers)))

    def fail(self, error: HostlibError) -> None:
        self.errors.append(error)


def greet(message: api.WorkerMessage, context: Any) -> list[api.ControllerMessage]:
    if message.HasField("join_request"):
        last_uses = [api.BarrierReleased(name="epoch", use=4)]
        return [join_reply(boundary=11, barriers_released=last_uses)]
    return []


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeController]:
    # The controller listens and accepts a leave: only a hang ends these waits.
    monkeypatch.setattr(controller_channel, "CONNECT_TIMEOUT_S", 60.0)
    monkeypatch.setattr(controller_link, "LEAVE_S", 60.0)
    controller = FakeController(greet)
    yield controller
    controller.stop()


@pytest.fixture
def link(controller: FakeController) -> Iterator[GrpcControllerLink]:
    link = GrpcControllerLink(controller.address, REQUEST)
    link.join(60)
    yield link
    link.close()


def propose(generation: int, *, is_abort: bool = False) -> api.ControllerMessage:
    proposal = api.ViewProposal(generation=generation, is_abort=is_abort)
    return api.ControllerMessage(view_proposal=proposal)


def commit(generation: int, **changes: Any) -> api.ControllerMessage:
    new = view(generation=generation, **changes)
    return api.ControllerMessage(view_commit=api.ViewCommit(view=new, boundary=6, source_worker=3))


def test_join_request_carries_what_the_job_wants(
    controller: FakeController, link: GrpcControllerLink
) -> None:
    join_request = controller.wait_for("join_request").join_request
    assert (join_request.peer_address, join_request.peer_port) == ("10.0.0.1", 4000)
    assert (join_request.straggler.quorum, join_request.straggler.deadline_s) == (3, 0.5)
    assert (join_request.weight, join_request.path, join_request.min_workers) == (
        2.0,
        api.SWITCH,
        2,
    )
    assert join_request.is_joining
    assert link.boundary == 11


def test_change_is_answered_and_entered(
    controller: FakeController, link: GrpcControllerLink
) -> None:
    listener = Listener()
    link.listen(listener)
    controller.push(propose(1001))
    wait_until(lambda: listener.proposals, "the proposal arrives")
    assert listener.proposals == [(1001, False)]
    link.view_ready(1001, 5)
    ready = controller.wait_for("view_ready").view_ready
    assert (ready.generation, ready.position) == (1001, 5)
    peers = [api.Member(worker_id=n, peer_address="h", peer_port=n + 1) for n in (0, 3)]
    controller.push(commit(1001, members=peers, trees=[], quorum=1))
    wait_until(lambda: listener.commits, "the commit arrives")
    view, boundary, source = listener.commits[0]
    assert (view.generation, view.member_ids, boundary, source) == (1001, [0, 3], 6, 3)
    assert (view.members[1].peer_port, view.is_on_switch) == (4, False)
    assert (view.straggler.quorum, view.straggler.deadline_s) == (1, None)
    link.view_entered(1001)
    assert controller.wait_for("view_entered").view_entered.generation == 1001
    tensor = SubmittedTensor(8, 10, "int32", "int32 sum")
    link.stalled(1001, [3], SubmittedTensors.of([], [tensor]), 1.5, 9)
    stalled = controller.wait_for("stalled").stalled
    assert stalled.missing_workers == [3]
    assert (stalled.silent_s, stalled.silent_tree) == (1.5, 9)
    assert [(each.number, each.is_awaited) for each in stalled.submitted] == [(8, True)]


def test_missing_workers_are_passed_on(
    controller: FakeController, link: GrpcControllerLink
) -> None:
    listener = Listener()
    link.listen(listener)
    missing = api.Missing(generation=1000, missing_workers=[2])
    controller.push(api.ControllerMessage(missing=missing))
    wait_until(lambda: listener.missing, "they arrive")
    assert listener.missing == [(1000, [2])]


def test_change_that_comes_before_the_session_listens(
    controller: FakeController, link: GrpcControllerLink
) -> None:
    controller.push(propose(1001))
    controller.push(commit(1001))
    controller.wait_for("heartbeat", 2)
    listener = Listener()
    link.listen(listener)
    wait_until(lambda: listener.commits, "the commit arrives")
    assert listener.proposals == [(1001, False)]


def test_worker_that_comes_back_names_its_view_and_what_was_proposed(
    controller: FakeController,
) -> None:
    listener = Listener()
    link = GrpcControllerLink(controller.address, REQUEST)
    link.join(60)
    try:
        link.listen(listener)
        listener.view = replace(listener.view, generation=1004)
        listener.proposed = 1005
        address = controller.address
        controller.stop()
        second = FakeController(greet, address)
        try:
            resume = second.wait_for("join_request").join_request.resume
            assert (resume.generation, resume.proposed) == (1004, 1005)
            second.push(propose(1005))
            wait_until(lambda: listener.proposals, "the repeated proposal arrives")
            link.view_ready(1005, 8)
            assert second.wait_for("view_ready").view_ready.position == 8
        finally:
            link.close()
            second.stop()
    finally:
        link.close()


def test_invalid_commit_breaks_the_session(
    controller: FakeController, link: GrpcControllerLink
) -> None:
    listener = Listener()
    link.listen(listener)
    controller.push(commit(1001, members=[]))
    wait_until(lambda: listener.errors, "the session is told")
    assert "must be one of them" in str(listener.errors[0])


def test_barriers_of_a_joining_worker_count_on(
    controller: FakeController, link: GrpcControllerLink
) -> None:
    released = threading.Event()

    def wait() -> None:
        link.barrier("epoch", 60)
        released.set()

    thread = threading.Thread(target=wait)
    thread.start()
    assert controller.wait_for("barrier").barrier.use == 5
    controller.push(
        api.ControllerMessage(barrier_released=api.BarrierReleased(name="epoch", use=5))
    )
    thread.join(60)
    assert released.is_set()


def test_leave_reports_the_workers_position(
    controller: FakeController, link: GrpcControllerLink
) -> None:
    link.close(12)
    assert controller.wait_for("leave").leave.position == 12
