# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportPrivateUsage=false
"""A defect that ends a thread is logged, and told to all who would wait for that thread."""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fake_controller import FakeController, join_reply
from fake_switch import FakeSwitch
from loopback import LOOPBACK
from switchfold.hostlib import Session, SessionOptions
from switchfold.hostlib.control import controller_channel, controller_link, kept_stream
from switchfold.hostlib.control.kept_stream import KeptStream
from switchfold.hostlib.control.session_api import session_pb2 as api
from switchfold.hostlib.control.view import Endpoint, JobView, Member
from switchfold.hostlib.engine.missed_results import MissedResults
from switchfold.hostlib.engine.result_fetcher import FetchAnswer, Request, ResultFetcher
from switchfold.hostlib.errors import (
    HostlibError,
    PeerClosedError,
    PeerUnreachableError,
    ResultTimeoutError,
    SessionBrokenError,
    ThreadFailedError,
)
from switchfold.hostlib.factors import ExchangeOptions, FactorExchange
from switchfold.hostlib.guarded_thread import GuardedThread
from switchfold.hostlib.hosts.host_reducer import HostReducer
from switchfold.hostlib.parameter_server import ClientOptions, ParameterClient, ParameterServer
from switchfold.hostlib.parameter_server import command as server_command
from switchfold.hostlib.parameter_server.storage.log_reader import ReadRecord
from switchfold.hostlib.parameter_server.tables import TableClient
from switchfold.hostlib.parameter_server.transfers.replicas import log_follower
from switchfold.hostlib.peers import PeerServer
from switchfold.hostlib.peers.event_loop import EventLoop
from time_bound import wait_until

WAIT_S = 60.0
DEFECTS = [MemoryError("planted"), SystemExit("planted")]


def check(error: Exception | None, thread: str, caplog: pytest.LogCaptureFixture) -> None:
    """Check that an error names the thread and the cause, and that the log has the traceback."""
    assert error is not None
    assert f"the thread {thread} failed" in str(error)
    assert "planted" in str(error)
    (record,) = [
        each for each in caplog.records if each.getMessage() == f"the thread {thread} failed"
    ]
    assert record.exc_info is not None
    assert "planted" in str(record.exc_info[1])


@pytest.mark.parametrize("defect", DEFECTS)
def test_owner_of_a_thread_is_told(defect: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    told: queue.SimpleQueue[ThreadFailedError] = queue.SimpleQueue()

    def work() -> None:
        raise defect

    thread = GuardedThread(work, name="worker-7", on_failed=told.put)
    thread.start()
    error = told.get(timeout=WAIT_S)
    check(error, "worker-7", caplog)
    assert error.__cause__ is defect
    thread.join()
    assert told.empty()


class Stream:
    """Gives events until it is closed."""

    def __init__(self) -> None:
        self.is_closed = threading.Event()

    def close(self) -> None:
        self.is_closed.set()


class KeptCalls:
    """A kept stream with one event; one of its callbacks raises."""

    def __init__(self, where: str, defect: BaseException) -> None:
        self.told: queue.SimpleQueue[object] = queue.SimpleQueue()
        self.stream = Stream()

        def raising(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
            def run(*arguments: Any) -> Any:
                if where == name:
                    raise defect
                return call(*arguments)

            return run

        def events(stream: Stream) -> Iterator[str]:
            yield "event"
            raising("events", lambda: None)()
            stream.is_closed.wait(WAIT_S)

        self.kept = KeptStream[Stream, str](
            raising("open", lambda: self.stream),
            events,
            on_event=raising("event", self.told.put),
            on_failed=self.told.put,
            on_broken=lambda: self.told.put("broken"),
            on_open=raising("opened", lambda stream: None),
            name="kept-stream",
            meanwhile="nothing happens",
        )


@pytest.mark.parametrize("defect", DEFECTS)
@pytest.mark.parametrize(
    ("where", "before"),
    [("open", []), ("opened", []), ("event", ["broken"]), ("events", ["event", "broken"])],
)
def test_kept_stream_tells_its_owner(
    where: str, before: list[str], defect: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    calls = KeptCalls(where, defect)
    calls.kept.start()
    assert [calls.told.get(timeout=WAIT_S) for _ in before] == before
    error = calls.told.get(timeout=WAIT_S)
    assert isinstance(error, ThreadFailedError)
    check(error, "kept-stream", caplog)
    assert calls.kept.stream is None
    assert calls.stream.is_closed.is_set() == (where != "open")
    calls.kept.close()
    assert calls.told.empty()


def test_kept_stream_that_is_closed_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = KeptCalls("nowhere", MemoryError())
    calls.kept.start()
    assert calls.told.get(timeout=WAIT_S) == "event"
    monkeypatch.setattr(kept_stream.random, "uniform", lambda *_: 1 / 0)
    calls.kept.close()
    assert calls.told.empty()


def test_fetcher_answers_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answers: queue.SimpleQueue[FetchAnswer] = queue.SimpleQueue()
    result: Any = object()

    def fetch(_: Member, tensor: int, *, timeout_s: float) -> Any:
        if tensor == 0:
            raise MemoryError("planted")
        return result

    with PeerServer(LOOPBACK) as server:
        monkeypatch.setattr(server, "fetch_result", fetch)
        fetcher = ResultFetcher(server, lambda _, answer: answers.put(answer))
        for tensor in range(2):
            members = (Member(worker_id=1),)
            deadline_s = time.monotonic() + WAIT_S
            fetcher.request(Request(tensor=tensor, members=members, deadline_s=deadline_s))
        error = answers.get(timeout=WAIT_S)
        assert isinstance(error, ThreadFailedError)
        check(error, "switchfold-fetch", caplog)
        assert answers.get(timeout=WAIT_S) is result
        fetcher.close()


def test_only_requests_of_the_view_at_work_say_who_is_unreached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is fetched for a view that was left says nothing of the next one."""
    monkeypatch.setattr("switchfold.hostlib.engine.result_fetcher.UNREACHABLE_S", 0.0)
    view: Any = SimpleNamespace(
        worker_id=0, members=[Member(worker_id=i, peer_port=1) for i in range(3)]
    )
    task: Any = SimpleNamespace(number=0, is_settled=False, deadline_s=time.monotonic() + WAIT_S)

    def fetch(member: Member, *_: Any, **__: Any) -> Any:
        raise PeerUnreachableError("gone") if member.worker_id == 1 else ResultTimeoutError("late")

    with PeerServer(LOOPBACK) as server:
        monkeypatch.setattr(server, "fetch_result", fetch)
        missed = MissedResults(server, lambda call: call())
        missed.ask_for(task, view, 1)
        wait_until(lambda: missed.unreached == {1}, "the unreached worker")
        missed.forget_all()
        assert missed.unreached == frozenset()
        missed.close()


def greet(message: api.WorkerMessage, _: Any) -> list[api.ControllerMessage]:
    return [join_reply()] if message.HasField("join_request") else []


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeController]:
    monkeypatch.setattr(controller_channel, "CONNECT_TIMEOUT_S", WAIT_S)
    made = FakeController(greet)
    yield made
    made.stop()


def join(controller: FakeController) -> Session:
    return Session.join(
        controller=controller.address,
        job="train",
        worker_id=0,
        num_workers=1,
        transport=FakeSwitch(1).transport(0),
        options=SessionOptions(join_timeout_s=600.0, insecure=True),
    )


def planted(*_: Any) -> None:
    raise MemoryError("planted")


def test_joining_ends_with_the_thread_of_the_lease(
    controller: FakeController, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(controller_link.GrpcControllerLink, "_take_join_reply", planted)
    with pytest.raises(ThreadFailedError) as raised:
        join(controller)
    check(raised.value, "switchfold-lease", caplog)


def test_session_ends_with_the_thread_of_the_lease(
    controller: FakeController, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(controller_link.GrpcControllerLink, "_pass_on", planted)
    with join(controller) as session:
        controller.push(api.ControllerMessage(view_proposal=api.ViewProposal(generation=9)))
        with pytest.raises(ThreadFailedError) as raised:
            session.barrier("never", 10 * WAIT_S)
        check(raised.value, "switchfold-lease", caplog)

        def sum_until_it_fails() -> None:
            while True:
                session.allreduce(np.ones(3, np.int32)).result(WAIT_S)

        with pytest.raises((ThreadFailedError, SessionBrokenError), match="switchfold-lease"):
            sum_until_it_fails()


def test_session_ends_with_its_io_thread(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    switch = FakeSwitch(1)
    options = SessionOptions(timeout_s=10 * WAIT_S)
    with Session.direct(switch.view(0), switch.transport(0), options) as session:

        def leave(*_: Any) -> None:
            raise SystemExit("planted")

        monkeypatch.setattr(session._engine._runner, "poll", leave)
        with pytest.raises(HostlibError, match=r"I/O thread failed: SystemExit\('planted'\)"):
            session.allreduce(np.ones(3, np.int32)).result(WAIT_S)
    assert "the I/O thread of job 7 failed" in caplog.text


def test_callback_of_a_future_ends_no_session(caplog: pytest.LogCaptureFixture) -> None:
    switch = FakeSwitch(1)
    with Session.direct(switch.view(0), switch.transport(0)) as session:

        def leave(_: object) -> None:
            raise SystemExit("planted")

        future = session.allreduce(np.ones(3, np.int32))
        future.add_done_callback(leave)
        future.result(WAIT_S)
        session.allreduce(np.ones(3, np.int32)).result(WAIT_S)
    assert "callback of allreduce" in caplog.text


def break_loop(loop: EventLoop) -> None:
    """Let a loop's own code fail in its next turn."""
    loop.post(lambda: setattr(loop, "_run_timers", planted))


def test_loop_runs_what_was_posted_and_tells_its_owners(caplog: pytest.LogCaptureFixture) -> None:
    loop = EventLoop("loop")
    told: queue.SimpleQueue[PeerClosedError] = queue.SimpleQueue()
    loop.on_failure(told.put)
    loop.on_failure(lambda _: planted())  # which keeps it from nobody else
    loop.on_failure(told.put)
    break_loop(loop)
    for _ in range(2):
        check(told.get(timeout=WAIT_S), "loop", caplog)
    with pytest.raises(PeerClosedError, match="the thread loop failed"):
        loop.run(lambda: None)
    assert isinstance(loop.failure, PeerClosedError)
    assert isinstance(loop.failure.__cause__, ThreadFailedError)
    loop.on_failure(told.put)
    check(told.get(timeout=0), "loop", caplog)
    loop.stop(planted)
    loop._thread.join()
    assert loop._selector.get_map() is None, "its sockets are closed"


class OneRecord:
    """A log's reader, as far as a replica needs one that finds a record."""

    position = 1

    def __init__(self, *_: object) -> None:
        pass

    def read(self, *_: object) -> list[ReadRecord]:
        return [ReadRecord(1, memoryview(b""))]


def test_replica_that_reads_its_servers_log_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The record never becomes durable, since the loop fails before it can."""
    monkeypatch.setattr(log_follower, "LogReader", OneRecord)
    monkeypatch.setattr(log_follower, "RecordReplay", lambda *_: None)
    loop = EventLoop("loop")
    log = SimpleNamespace(
        identity=None, last_mark=lambda: None, append=lambda *_, **__: break_loop(loop)
    )
    tables: Any = SimpleNamespace(log=log, state=None)
    follower = log_follower.LogFollower(
        tables, loop, 0, Path("unused"), report=lambda _: None, on_failed=lambda _: None
    )
    with pytest.raises(PeerClosedError) as caught:
        follower.await_end()
    check(caught.value, "loop", caplog)
    loop._thread.join()


def test_call_that_waits_for_a_loop_that_fails_is_run() -> None:
    loop = EventLoop("loop")
    loop.on_failure(lambda _: None)
    may_go_on, is_held = threading.Event(), threading.Event()

    def hold() -> None:
        setattr(loop, "_run_timers", planted)  # noqa: B010 - not declared so
        is_held.set()
        may_go_on.wait(WAIT_S)

    loop.post(hold)
    assert is_held.wait(WAIT_S)
    post = loop.post

    def post_and_go_on(call: Callable[[], None]) -> None:
        post(call)
        may_go_on.set()

    loop.post = post_and_go_on
    ran: list[bool] = []
    loop.run(lambda: ran.append(True), 10 * WAIT_S)
    assert ran == [True]
    loop._thread.join()


def test_handlers_exception_of_any_kind_does_not_end_a_loop(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop = EventLoop("loop")

    def leave() -> None:
        raise SystemExit("planted")

    loop.post(leave)
    with pytest.raises(SystemExit, match="planted"):
        loop.run(leave)
    loop.run(lambda: None)
    assert loop.failure is None
    loop.stop(lambda: None)
    assert "a call in the peer thread failed" in caplog.text


def test_open_transfers_of_a_client_fail_with_its_thread() -> None:
    """No server answers at all."""
    with PeerServer(LOOPBACK) as silent:
        options = ClientOptions(
            worker_id=0, timeout_s=10 * WAIT_S, reconnect_s=10 * WAIT_S, insecure=True
        )
        with ParameterClient([(LOOPBACK, silent.port)], options) as client:
            future = client.push_pull("key", np.ones(3, np.float32), 0)
            break_loop(client._loop)
            with pytest.raises(PeerClosedError, match="the thread switchfold-parameters failed"):
                future.result(WAIT_S)
            with pytest.raises(PeerClosedError, match="the thread switchfold-parameters failed"):
                client.push_pull("key", np.ones(3, np.float32), 1)


def test_sums_among_hosts_fail_with_the_peer_thread() -> None:
    """The other member's port is open, and nobody answers there."""
    nowhere = Endpoint(address=LOOPBACK)
    with socket.create_server((LOOPBACK, 0)) as silent, PeerServer(LOOPBACK) as server:
        server.enter_job(1, 0)
        ports = [server.port, silent.getsockname()[1]]
        view = JobView(
            job=1,
            generation=1,
            worker_id=0,
            members=tuple(
                Member(worker_id=i, peer_address=LOOPBACK, peer_port=ports[i]) for i in range(2)
            ),
            trees=(),
            child_id=0,
            worker_bitmap=1,
            values_per_packet=32,
            switch=nowhere,
        )
        reducer = HostReducer(view, server)
        reducer.poll(0.0)
        assert reducer.failure is None
        break_loop(server.loop)
        server.loop._thread.join()
        reducer.poll(0.0)
        with pytest.raises(PeerClosedError, match="the thread switchfold-peers failed"):
            raise reducer.failure or AssertionError
        reducer.close()


def test_open_exchanges_of_factors_fail_with_the_peer_thread() -> None:
    """The other worker never comes."""
    with PeerServer(LOOPBACK) as server:
        options = ExchangeOptions(timeout_s=10 * WAIT_S, connect_s=10 * WAIT_S, insecure=True)
        peers = [(LOOPBACK, server.port), (LOOPBACK, 1)]
        with FactorExchange(0, peers, options, server=server) as exchange:
            row = np.ones((1, 3), np.float32)
            future = exchange.exchange("key", row, row, 0)
            break_loop(server.loop)
            with pytest.raises(PeerClosedError, match="the thread switchfold-peers failed"):
                future.result(WAIT_S)


def test_client_of_tables_that_waits_fails_with_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its loop fails while the constructor waits for a server that does not answer."""
    enter = TableClient._enter

    def enter_and_break(client: TableClient) -> None:
        threading.Timer(0.0, break_loop, [client.loop]).start()
        enter(client)

    monkeypatch.setattr(TableClient, "_enter", enter_and_break)
    with PeerServer(LOOPBACK) as silent:
        options = ClientOptions(
            worker_id=0, timeout_s=10 * WAIT_S, reconnect_s=10 * WAIT_S, insecure=True
        )
        with pytest.raises(PeerClosedError, match="the thread switchfold-tables failed"):
            TableClient([(LOOPBACK, silent.port)], options)


def test_process_of_a_server_ends_with_its_thread(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def breaking(*arguments: Any, **named: Any) -> ParameterServer:
        server = ParameterServer(*arguments, **named)
        break_loop(server.loop)
        return server

    monkeypatch.setattr(server_command, "ParameterServer", breaking)
    words = ["--address", LOOPBACK, "--port", "0", "--num-workers", "1", "--insecure"]
    assert server_command.run(words) == 1
    assert "error: the thread switchfold-peers failed" in capsys.readouterr().err
