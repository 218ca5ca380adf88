# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any, Protocol

import grpc
import numpy as np
import pytest

from fake_controller import Answer, FakeController, join_reply
from fake_switch import FakeSwitch
from loopback import LOOPBACK
from switchfold.hostlib import errors
from switchfold.hostlib.control import controller_channel, controller_link
from switchfold.hostlib.control.controller_channel import ControllerChannel
from switchfold.hostlib.control.controller_link import FIRST_RESUME_S, RESUME_INTERVAL_S
from switchfold.hostlib.control.session_api import session_pb2 as api
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.session import Session
from switchfold.hostlib.slots.wire import WIRE_VERSION
from time_bound import wait_until


class Start(Protocol):
    def __call__(self, answer: Answer, address: str = ..., /) -> FakeController: ...


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    # The controller listens and accepts a leave: only a hang ends these waits.
    monkeypatch.setattr(controller_channel, "CONNECT_TIMEOUT_S", 60.0)
    monkeypatch.setattr(controller_link, "LEAVE_S", 60.0)
    running: list[FakeController] = []

    def run(answer: Answer, address: str = f"{LOOPBACK}:0") -> FakeController:
        running.append(FakeController(answer, address))
        return running[-1]

    yield run
    for controller in running:
        controller.stop()


def greet(message: api.WorkerMessage, context: Any) -> list[api.ControllerMessage]:
    return [join_reply()] if message.HasField("join_request") else []


def join(address: str, **changes: Any) -> Session:
    arguments: dict[str, Any] = {
        "controller": address,
        "job": "train",
        "worker_id": 0,
        "num_workers": 1,
        "transport": FakeSwitch(1).transport(0),
        "options": SessionOptions(join_timeout_s=60.0),
    }
    return Session.join(**{**arguments, **changes})


def test_join_allreduce_leave(start: Start) -> None:
    controller = start(greet)
    options = SessionOptions(
        join_timeout_s=60.0, ingress_port="s1-eth1", slots_wanted=32, token="x"
    )
    assert "'x'" not in repr(options), "options are logged"
    with join(controller.address, options=options) as session:
        array = np.arange(100, dtype=np.int32)
        np.testing.assert_array_equal(session.allreduce(array).result(60), array)
        controller.wait_for("heartbeat", 2)
    controller.wait_for("leave")
    join_request = controller.wait_for("join_request").join_request
    assert join_request.job_name == "train"
    assert join_request.address == "10.0.0.1"
    assert join_request.mac == "02:00:00:00:00:01"
    assert join_request.ingress_port_name == "s1-eth1"
    assert (join_request.wire_version, join_request.slots_wanted) == (WIRE_VERSION, 32)
    assert controller.tokens == ["Bearer x"]
    assert not join_request.HasField("resume")


def test_join_takes_options_as_keywords_until_the_next_release(start: Start) -> None:
    controller = start(greet)
    with (
        pytest.warns(DeprecationWarning, match="weight, path as fields of SessionOptions"),
        join(controller.address, weight=2.0, path="host"),
    ):
        join_request = controller.wait_for("join_request").join_request
    assert (join_request.weight, join_request.path) == (2.0, api.HOST)
    with pytest.raises(TypeError, match="wait"):
        join(controller.address, wait=2.0)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("RESOURCE_EXHAUSTED", errors.JobRefusedError),
        ("INVALID_ARGUMENT", errors.JobRefusedError),
        ("ALREADY_EXISTS", errors.WorkerTakenError),
        ("UNAUTHENTICATED", errors.JobRefusedError),
        ("FAILED_PRECONDITION", errors.VersionMismatchError),
        ("DEADLINE_EXCEEDED", errors.WorkerArrivalError),
    ],
)
def test_join_refusal_is_typed(start: Start, code: str, error: type[Exception]) -> None:
    def refuse(message: api.WorkerMessage, context: Any) -> list[api.ControllerMessage]:
        context.abort(getattr(grpc.StatusCode, code), "this is why")
        return []

    with pytest.raises(error, match=r"train.*this is why"):
        join(start(refuse).address)


def test_join_waits_for_an_earlier_process_to_be_given_up(start: Start) -> None:
    refusals = 2

    def refuse_at_first(message: api.WorkerMessage, context: Any) -> list[api.ControllerMessage]:
        nonlocal refusals
        if not message.HasField("join_request"):
            return []
        refusals -= 1
        if refusals >= 0:
            context.abort(grpc.StatusCode.ALREADY_EXISTS, "worker 0 is in it")
        return [join_reply()]

    controller = start(refuse_at_first)
    options = SessionOptions(join_timeout_s=60.0, taken_wait_s=60.0)
    with join(controller.address, options=options):
        assert sum(message.HasField("join_request") for message in controller.seen) == 3
    refusals = 1000
    began_s = time.monotonic()
    options = SessionOptions(join_timeout_s=60.0, taken_wait_s=0.6)
    with pytest.raises(errors.WorkerTakenError, match="worker 0 is in it"):
        join(controller.address, options=options)
    assert time.monotonic() - began_s >= 0.6


def test_join_without_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_channel, "CONNECT_TIMEOUT_S", 0.5)  # it always expires
    with pytest.raises(errors.ControllerUnreachableError, match="no controller answers"):
        join("127.0.0.1:1")


def test_join_without_join_reply_times_out(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = ControllerChannel.connect

    def connect_first(channel: ControllerChannel, _: float, who: str) -> None:
        connect(channel, 60.0, who)

    monkeypatch.setattr(ControllerChannel, "connect", connect_first)
    options = SessionOptions(join_timeout_s=0.5)
    with pytest.raises(errors.WorkerArrivalError, match="no join reply"):
        join(start(lambda message, context: []).address, options=options)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"wire_version": 1}, errors.VersionMismatchError),
        ({"values_per_packet": 33}, errors.ConfigurationError),
        ({"trees": [api.Tree(tree_id=7, slot_count=1)]}, errors.ConfigurationError),
        ({"members": []}, errors.ConfigurationError),
    ],
)
def test_join_refuses_join_reply(
    start: Start, changes: dict[str, int], error: type[Exception]
) -> None:
    with pytest.raises(error):
        join(start(lambda message, context: [join_reply(**changes)]).address)


@pytest.mark.parametrize("numbers", [(0, 0), (0, 65536), (4, 4), (-1, 4)])
def test_join_refuses_worker_numbers(numbers: tuple[int, int]) -> None:
    with pytest.raises(errors.ConfigurationError):
        join("127.0.0.1:1", worker_id=numbers[0], num_workers=numbers[1])


def test_barrier_released_and_used_again(start: Start) -> None:
    def answer(message: api.WorkerMessage, context: Any) -> list[api.ControllerMessage]:
        if message.HasField("barrier"):
            name, use = message.barrier.name, message.barrier.use
            released = api.BarrierReleased(name=name, use=use)
            return [api.ControllerMessage(barrier_released=released)]
        return greet(message, context)

    controller = start(answer)
    with join(controller.address) as session:
        session.barrier("epoch", 60)
        session.barrier("epoch", 60)
    assert controller.wait_for("barrier", 2).barrier.use == 2
    with pytest.raises(errors.SessionClosedError):
        session.barrier("epoch", 5)


def test_barrier_times_out(start: Start) -> None:
    with join(start(greet).address) as session, pytest.raises(errors.BarrierTimeoutError):
        session.barrier("epoch", 0.1)


def test_barrier_ends_when_session_closes(start: Start) -> None:
    controller = start(greet)
    session = join(controller.address)
    found: list[Exception] = []

    def wait() -> None:
        try:
            session.barrier("epoch", 600)
        except errors.SessionClosedError as error:
            found.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    controller.wait_for("barrier")
    session.close()
    thread.join(60)
    assert len(found) == 1


@pytest.mark.parametrize(
    ("is_mismatch", "kind"),
    [(False, errors.JobEndedError), (True, errors.PeerMismatchError)],
)
def test_job_ended_breaks_the_session(
    start: Start, is_mismatch: bool, kind: type[errors.HostlibError]
) -> None:
    is_submitted = threading.Event()

    def answer(message: api.WorkerMessage, context: Any) -> list[api.ControllerMessage]:
        if message.HasField("heartbeat"):
            is_submitted.wait(60)
            ended = api.JobEnded(reason="stopped by the operator", is_mismatch=is_mismatch)
            return [api.ControllerMessage(job_ended=ended)]
        return greet(message, context)

    switch = FakeSwitch(1)
    switch.is_deaf = True
    with join(start(answer).address, transport=switch.transport(0)) as session:
        future = session.allreduce(np.ones(4, np.int32))
        is_submitted.set()
        error = future.exception(60)
        assert type(error) is kind
        assert "stopped by the operator" in str(error)
        with pytest.raises(errors.SessionBrokenError):
            session.allreduce(np.ones(4, np.int32))


def test_controller_restart_resumes_while_aggregation_goes_on(start: Start) -> None:
    first = start(greet)
    with join(first.address) as session:
        first.stop()
        array = np.ones(50, np.int32)
        np.testing.assert_array_equal(session.allreduce(array).result(60), array)
        second = start(greet, first.address)
        assert second.port == first.port
        resume = second.wait_for("join_request").join_request.resume
        assert (resume.job_number, resume.generation) == (7, 1000)
        np.testing.assert_array_equal(session.allreduce(array).result(60), array)
    second.wait_for("leave")


def test_pauses_are_short_again_once_the_controller_is_back(start: Start) -> None:
    first = start(greet)
    with join(first.address) as session:
        link: Any = session._link
        first.stop()
        wait_until(lambda: link._pause_s == RESUME_INTERVAL_S, "the longest pause")
        second = start(greet, first.address)
        second.wait_for("join_request")
        wait_until(lambda: link._pause_s == FIRST_RESUME_S, "the shortest pause")
        second.break_streams()
        second.wait_for("join_request", 2)


def test_controller_restart_without_the_job_ends_it(start: Start) -> None:
    def refuse(message: api.WorkerMessage, context: Any) -> list[api.ControllerMessage]:
        context.abort(grpc.StatusCode.NOT_FOUND, "no such job")
        return []

    first = start(greet)
    with join(first.address) as session:
        first.stop()
        start(refuse, first.address)
        with pytest.raises(errors.JobEndedError, match="no such job"):
            session.barrier("never", 60)


@pytest.mark.parametrize(
    "changes",
    [
        {"options": SessionOptions(slots_wanted=-1)},
        {"options": SessionOptions(ingress_port=1 << 40)},
        {"options": SessionOptions(values_per_packet=-5)},
        {"job": "\udc80"},
    ],
)
def test_join_refuses_what_cannot_be_sent(start: Start, changes: dict[str, Any]) -> None:
    controller = start(greet)
    with pytest.raises(errors.ConfigurationError, match="an argument of join"):
        join(controller.address, **changes)
