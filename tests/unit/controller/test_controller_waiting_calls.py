# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Calls that arrive faster than the controller takes them wait; none is dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

from controller_fixtures import TEST_TIMEOUT_S, run, running_controller
from http2_calls import END_HEADERS, END_STREAM, HEADERS, Http2Connection, frame, header_block
from switchfold.controller.api.open_files import MAX_CALLS
from switchfold.controller.api.request_check import RANGES
from switchfold.controller.api.session_service import SessionService
from switchfold.controller.api.waiting_calls import waiting_call_options
from switchfold.hostlib.control.controller_link import JOIN_METHOD
from switchfold.hostlib.control.session_api import session_pb2 as pb
from switchfold.hostlib.slots.wire import WIRE_VERSION

_P = ParamSpec("_P")
_T = TypeVar("_T")


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return the calls of Join that the controller has taken; it ends them at once."""
    calls: list[object] = []

    async def take(_service: SessionService, _requests: object, context: object) -> None:
        calls.append(context)

    monkeypatch.setattr(SessionService, "Join", take)
    return calls


def begin_calls(address: str, count: int) -> Http2Connection:
    """Call Join so many times, without a message; return once the server has read all calls."""
    connection = Http2Connection(address, TEST_TIMEOUT_S)
    for stream in range(1, 2 * count, 2):
        block = header_block(JOIN_METHOD)
        connection.send(frame(HEADERS, END_STREAM | END_HEADERS, stream, block))
    connection.sync()
    return connection


def test_more_calls_than_grpc_lets_wait_by_default(tmp_path: Path, taken: list[object]):
    num_connections = 31
    num_calls = num_connections * MAX_CALLS  # gRPC's own hard limit is 3,000

    async def scenario() -> None:
        async with running_controller(tmp_path, max_calls_per_source=num_calls) as (server, _):
            with ExitStack() as stack:
                opened = [  # the loop, this one, takes no call meanwhile
                    stack.enter_context(begin_calls(server.address, MAX_CALLS))
                    for _ in range(num_connections)
                ]
                assert not taken
                for connection in opened:
                    await asyncio.to_thread(connection.finish, MAX_CALLS)
                assert len(taken) == num_calls

    run(scenario())


def test_controller_that_stops_takes_the_calls_that_wait(
    tmp_path: Path, taken: list[object], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("switchfold.controller.listening.STOP_GRACE_S", 60.0)
    num_calls = 100

    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            connection = begin_calls(server.address, num_calls)
        with connection:
            connection.finish(num_calls)
        assert len(taken) == num_calls + 1  # the last one is the controller's own

    run(scenario())


class Turns:
    """Counts the turns of the running loop, and notes in which of them something is done."""

    def __init__(self) -> None:
        self.noted: list[int] = []
        self._now = 0

    def noting(self, method: Callable[_P, _T]) -> Callable[_P, _T]:
        """Return the method; each call of it is noted."""

        def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            self.noted.append(self._now)
            return method(*args, **kwargs)

        return call

    async def count_until(self, is_done: Callable[[], bool]) -> None:
        while not is_done():
            self._now += 1
            await asyncio.sleep(0)


def test_workers_that_arrive_or_leave_at_once_do_so_in_turns_of_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    num_jobs = 20

    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            joins, ends = Turns(), Turns()
            monkeypatch.setattr(server.views, "check", joins.noting(server.views.check))
            database = server.views._database
            monkeypatch.setattr(database, "end_job", ends.noting(database.end_job))
            requests = [
                pb.JoinRequest(
                    job_name=f"waits {number}",
                    num_workers=2,
                    wire_version=WIRE_VERSION,
                    address="10.0.0.1",
                    udp_port=5000,
                )
                for number in range(num_jobs)
            ]
            entering = asyncio.gather(*(server.membership.enter(each) for each in requests))
            await joins.count_until(lambda: len(joins.noted) == num_jobs)
            assert len(set(joins.noted)) == num_jobs
            for entered in await entering:
                server.membership.stream_ended(*entered)
            await ends.count_until(lambda: len(ends.noted) == num_jobs)
            assert len(set(ends.noted)) == num_jobs

    run(scenario())


def test_call_waits_as_long_as_any_worker_may():
    longest_wait = RANGES["JoinRequest.join_timeout_s"]
    assert longest_wait is not None
    waits_s = dict(waiting_call_options(1))["grpc.server_max_unrequested_time_in_server"]
    assert waits_s >= longest_wait[1]
