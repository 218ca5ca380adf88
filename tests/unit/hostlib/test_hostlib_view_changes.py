# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's link and changes of the view: each is heard of once and answered every time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from fake_controller import FakeController, join_reply, view
from switchfold.hostlib.control import controller_link
from switchfold.hostlib.control.controller_link import GrpcControllerLink
from switchfold.hostlib.control.join_request import JoinRequest
from switchfold.hostlib.control.session_api import session_pb2 as api
from switchfold.hostlib.control.view import Endpoint, JobView
from switchfold.hostlib.errors import HostlibError
from switchfold.hostlib.straggler import StragglerPolicy
from time_bound import wait_until

REQUEST = JoinRequest(
    job="train",
    worker_id=0,
    num_workers=1,
    local=Endpoint(address="10.0.0.1", mac="02:00:00:00:00:01"),
    ingress_port=1,
    peer_address="10.0.0.1",
    peer_port=4000,
    straggler=StragglerPolicy(quorum=3, deadline_s=0.5),
    weight=2.0,
    path="switch",
    min_workers=2,
    is_joining=True,
)


class Listener:
    """A session that notes what it hears; it answers with `position` unless that is None."""

    def __init__(self, position: int | None = 5) -> None:
        self.position = position
        self.proposals: list[tuple[int, bool]] = []
        self.replies: list[Callable[[int], None]] = []
        self.commits: list[tuple[JobView, int, int]] = []
        self.errors: list[HostlibError] = []
        self.missing: list[tuple[int, list[int]]] = []

    def on_view_proposal(
        self, generation: int, is_abort: bool, reply: Callable[[int], None]
    ) -> None:
        self.proposals.append((generation, is_abort))
        self.replies.append(reply)
        if self.position is not None:
            reply(self.position)

    def on_view_commit(self, view: JobView, boundary: int, source_worker: int) -> None:
        self.commits.append((view, boundary, source_worker))

    def on_missing(self, generation: int, missing_workers: Sequence[int]) -> None:
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
    # Somebody listens, and takes a leave: only a hang ends these waits.
    for name in ("CONNECT_TIMEOUT_S", "LEAVE_S"):
        monkeypatch.setattr(controller_link, name, 60.0)
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
    ready = controller.wait_for("view_ready").view_ready
    assert (ready.generation, ready.position) == (1001, 5)
    assert listener.proposals == [(1001, False)]
    peers = [api.Member(worker_id=n, peer_address="h", peer_port=n + 1) for n in (0, 3)]
    controller.push(commit(1001, members=peers, trees=[], quorum=1))
    wait_until(lambda: listener.commits, "the commit is heard of")
    view, boundary, source = listener.commits[0]
    assert (view.generation, view.member_ids, boundary, source) == (1001, [0, 3], 6, 3)
    assert (view.members[1].peer_port, view.is_on_switch) == (4, False)
    assert (view.straggler.quorum, view.straggler.deadline_s) == (1, None)
    link.view_entered(1001)
    assert controller.wait_for("view_entered").view_entered.generation == 1001
    link.stalled(1001, [3])
    assert controller.wait_for("stalled").stalled.missing_workers == [3]


def test_what_is_repeated_is_answered_again_and_heard_of_once(
    controller: FakeController, link: GrpcControllerLink
) -> None:
    listener = Listener()
    link.listen(listener)
    for _ in range(2):
        controller.push(propose(1001, is_abort=True))
    assert controller.wait_for("view_ready", 2).view_ready.position == 5
    controller.push(commit(1001))
    wait_until(lambda: listener.commits, "the commit is heard of")
    link.view_entered(1001)
    controller.push(commit(1001))
    assert controller.wait_for("view_entered", 2).view_entered.generation == 1001
    controller.push(propose(1001))
    controller.push(propose(1002))
    controller.wait_for("view_ready", 3)
    assert listener.proposals == [(1001, True), (1002, False)]
    assert len(listener.commits) == 1


def test_late_answer_to_a_superseded_proposal_is_not_sent(
    controller: FakeController, link: GrpcControllerLink
) -> None:
    listener = Listener(None)
    link.listen(listener)
    controller.push(propose(1001))
    controller.push(propose(1002, is_abort=True))
    wait_until(lambda: len(listener.replies) == 2, "both proposals are heard of")
    listener.replies[0](9)
    listener.replies[1](4)
    ready = controller.wait_for("view_ready").view_ready
    assert (ready.generation, ready.position) == (1002, 4)


def test_change_that_comes_before_the_session_listens(
    controller: FakeController, link: GrpcControllerLink
) -> None:
    controller.push(propose(1001))
    controller.push(commit(1001))
    controller.wait_for("heartbeat", 2)
    listener = Listener()
    link.listen(listener)
    wait_until(lambda: listener.commits, "the commit is heard of")
    assert listener.proposals == [(1001, False)]


def test_answer_that_was_lost_with_the_stream_is_given_again(controller: FakeController) -> None:
    listener = Listener(None)
    link = GrpcControllerLink(controller.address, REQUEST)
    link.join(60)
    try:
        link.listen(listener)
        controller.push(propose(1001))
        wait_until(lambda: listener.replies, "the proposal is heard of")
        address = controller.address
        controller.stop()
        listener.replies[0](8)
        second = FakeController(greet, address)
        try:
            resume = second.wait_for("join_request").join_request.resume
            assert resume.generation == 1000, "nothing was committed yet"
            second.push(propose(1001))
            assert second.wait_for("view_ready").view_ready.position == 8
            assert listener.proposals == [(1001, False)]
        finally:
            link.close()
            second.stop()
    finally:
        link.close()


def test_commit_that_makes_no_sense_breaks_the_session(
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


def test_leave_says_how_far_the_worker_came(
    controller: FakeController, link: GrpcControllerLink
) -> None:
    link.close(12)
    assert controller.wait_for("leave").leave.position == 12
