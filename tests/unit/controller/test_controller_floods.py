# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Connections that never call, calls without an end, and too many of both, at a controller."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import ssl
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import StatusCode

from certificates import CertificateSet
from controller_fixtures import TEST_TIMEOUT_S, FakeWorker, run, running_controller
from file_limit import leave_free, same_limit_after
from flooding import Target
from http2_calls import (
    DATA,
    END_HEADERS,
    HEADERS,
    RST_STREAM,
    SETTINGS,
    Http2Connection,
    client_hello,
    dial,
    frame,
    header_block,
    preface,
)
from switchfold.controller.api.open_files import MAX_CALLS, OWN, max_connections
from switchfold.hostlib.control.controller_link import JOIN_METHOD
from switchfold.hostlib.control.session_api import session_pb2 as pb
from switchfold.hostlib.credentials import Role, role_name
from switchfold.hostlib.credentials.grpc_channels import handshake_problem
from switchfold.hostlib.credentials.tokens import token_metadata

SHOW = "/switchfold.operator.v1.Operator/ShowController"
CALL = frame(HEADERS, END_HEADERS, 1, header_block(SHOW))
REFUSED_STREAM = 7
HALF_MESSAGE = b"\0" + (9).to_bytes(4) + b"half"
SILENT: dict[str, bytes] = {
    "nothing": b"",
    "half a greeting": preface()[:10],
    "settings never accepted": preface()[: -len(frame(SETTINGS))],
    "no call": preface(),
    "half the header of a frame": preface() + b"\0\0",
    "half the frame of a call": preface() + CALL[:20],
    "headers without their end": preface() + frame(HEADERS, 0, 1, header_block(SHOW)),
}


CLOSING = ("open_files.HANDSHAKE_S", "open_files.IDLE_S")
READING = ("request_guard.REQUEST_TIMEOUT_S", "session_stream.REQUEST_TIMEOUT_S")
SHORT_S, LONG_S = 0.5, 600.0


def set_limits(monkeypatch: pytest.MonkeyPatch, seconds: float, *names: str) -> None:
    for name in names:
        monkeypatch.setattr(f"switchfold.controller.api.{name}", seconds)


@pytest.fixture
def closes_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, SHORT_S, *CLOSING)


@pytest.fixture
def waits_long(monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, LONG_S, *CLOSING, *READING)


def limit_connections(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr("switchfold.controller.listening.max_connections", lambda: count)


def read_on(sock: socket.socket) -> bytes:
    """Read until the server closes the connection; TimeoutError if it does not."""
    received = b""
    try:
        while data := sock.recv(1 << 16):
            received += data
    except (ConnectionResetError, ssl.SSLError):
        pass
    return received


@pytest.mark.usefixtures("closes_soon")
@pytest.mark.parametrize("begin", SILENT)
def test_connection_without_a_call_is_closed(tmp_path: Path, begin: str):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            with closing(dial(server.address, TEST_TIMEOUT_S)) as sock:
                sock.sendall(SILENT[begin])
                await asyncio.to_thread(read_on, sock)

    run(scenario())


@pytest.mark.usefixtures("closes_soon")
def test_byte_by_byte_gives_no_more_time(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            with closing(dial(server.address, TEST_TIMEOUT_S)) as sock:
                sock.setblocking(False)
                end: list[bytes] = []
                while not end:
                    await asyncio.sleep(0.05)
                    try:
                        sock.send(preface()[:1])
                        end = [data for data in (sock.recv(1 << 16),) if not data]
                    except BlockingIOError:
                        pass
                    except OSError:
                        return

    run(scenario())


@pytest.mark.usefixtures("closes_soon")
@pytest.mark.parametrize("num_bytes", [0, 1, 100, None])
def test_half_open_handshake_is_closed(tmp_path: Path, num_bytes: int | None):
    own = CertificateSet.create(tmp_path / "certificates").of(Role.CONTROLLER)

    async def scenario() -> None:
        async with running_controller(tmp_path, credentials=own.folder) as (server, _):
            with closing(dial(server.address, TEST_TIMEOUT_S)) as sock:
                sock.sendall(client_hello()[:num_bytes])
                await asyncio.to_thread(read_on, sock)

    run(scenario())


def test_caller_with_a_certificate_is_closed_if_it_does_not_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    set_limits(monkeypatch, SHORT_S, "open_files.IDLE_S")
    made = CertificateSet.create(tmp_path / "certificates")
    own, worker = made.of(Role.CONTROLLER), made.of(Role.WORKER)

    async def scenario() -> None:
        async with running_controller(tmp_path, credentials=own.folder) as (server, _):
            target = Target(server.address, SHOW, worker, role_name(Role.CONTROLLER))
            with await asyncio.to_thread(target.connect) as connection:
                while await asyncio.to_thread(connection.next) is not None:
                    pass

    run(scenario())


@pytest.mark.parametrize("method", [SHOW, JOIN_METHOD])
@pytest.mark.parametrize("part", [b"", HALF_MESSAGE[:3], HALF_MESSAGE])
def test_call_without_a_whole_message_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, part: bytes
):
    set_limits(monkeypatch, SHORT_S, *READING)

    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            with Http2Connection(server.address, TEST_TIMEOUT_S) as connection:
                connection.send(frame(HEADERS, END_HEADERS, 1, header_block(method)))
                connection.send(frame(DATA, 0, 1, part))
                await asyncio.to_thread(connection.finish, 1)
                assert b"within 0.5 s; send it" in connection.said

    run(scenario())


@pytest.mark.parametrize("method", [SHOW, JOIN_METHOD])
def test_stranger_is_refused_before_its_message_is_read(tmp_path: Path, method: str):
    async def scenario() -> None:
        async with (
            running_controller(tmp_path, token="token") as (server, _),
            grpc.aio.insecure_channel(server.address) as channel,
        ):
            call: Any = channel.stream_stream(method)(metadata=token_metadata("guess"))
            assert await call.code() is StatusCode.UNAUTHENTICATED

    run(scenario())


def test_call_without_a_request_is_told(tmp_path: Path):
    async def scenario() -> None:
        async with (
            running_controller(tmp_path) as (server, _),
            grpc.aio.insecure_channel(server.address) as channel,
        ):
            call: Any = channel.stream_unary(SHOW)()
            await call.done_writing()
            assert await call.code() is StatusCode.INVALID_ARGUMENT
            assert await call.details() == "the call has no request; send one"

    run(scenario())


async def show(address: str) -> StatusCode:
    """Call a method on a connection of its own."""
    options = (("grpc.use_local_subchannel_pool", 1),)
    async with grpc.aio.insecure_channel(address, options=options) as channel:
        call: Any = channel.unary_unary(SHOW)(b"", timeout=TEST_TIMEOUT_S)
        return await call.code()


@pytest.mark.usefixtures("waits_long")
def test_connections_beyond_the_limit_are_closed_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    limit = 5

    async def scenario() -> None:
        limit_connections(monkeypatch, limit)
        async with running_controller(tmp_path) as (server, _):
            worker = await FakeWorker(server.address, 0, 1).join()
            await worker.join_reply()
            with ExitStack() as stack:
                for _ in range(limit - 1):
                    stack.enter_context(Http2Connection(server.address, TEST_TIMEOUT_S)).sync()
                assert await show(server.address) is StatusCode.UNAVAILABLE
            await worker.send(barrier=pb.Barrier(name="b", use=1))
            assert (await worker.receive()).HasField("barrier_released")
            while await show(server.address) is not StatusCode.OK:
                pass  # until gRPC has noticed that the others are gone
            await worker.close()

    run(scenario())


@pytest.mark.usefixtures("waits_long")
def test_worker_beyond_the_limit_is_not_told_of_its_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    made = CertificateSet.create(tmp_path / "certificates")
    own, worker = made.of(Role.CONTROLLER), made.of(Role.WORKER)

    async def scenario() -> None:
        limit_connections(monkeypatch, 1)
        async with running_controller(tmp_path, credentials=own.folder) as (server, _):
            held = Target(server.address, SHOW, worker, role_name(Role.CONTROLLER)).connect
            with await asyncio.to_thread(held) as connection:
                await asyncio.to_thread(connection.sync)
                problem = await asyncio.to_thread(
                    handshake_problem, server.address, worker, role_name(Role.CONTROLLER)
                )
                assert not problem

    run(scenario())


@pytest.mark.usefixtures("waits_long")
def test_calls_beyond_the_limit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    limit = 5

    async def scenario() -> None:
        limit_connections(monkeypatch, limit)
        async with running_controller(tmp_path, max_calls_per_source=limit) as (server, _):
            with Http2Connection(server.address, TEST_TIMEOUT_S) as connection:
                block = header_block(JOIN_METHOD)
                for stream in range(1, 4 * limit, 2):
                    connection.send(frame(HEADERS, END_HEADERS, stream, block))
                await asyncio.to_thread(connection.finish, limit)  # the others wait
                assert b"limit exceeded" in connection.said
                assert await show(server.address) is StatusCode.RESOURCE_EXHAUSTED
            while await show(server.address) is not StatusCode.OK:
                pass

    run(scenario())


@pytest.mark.usefixtures("waits_long")
def test_calls_of_one_connection_are_limited(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            with Http2Connection(server.address, TEST_TIMEOUT_S) as connection:
                block, last = header_block(JOIN_METHOD), 2 * MAX_CALLS + 1
                for stream in range(1, last + 1, 2):
                    connection.send(frame(HEADERS, END_HEADERS, stream, block))
                answer = await asyncio.to_thread(connection.next)
                while answer is not None and (answer.kind, answer.stream) != (RST_STREAM, last):
                    answer = await asyncio.to_thread(connection.next)
                assert answer is not None, "the connection stays"
                assert int.from_bytes(answer.payload) == REFUSED_STREAM

    run(scenario())


def test_files_bound_connections(monkeypatch: pytest.MonkeyPatch):
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    monkeypatch.setattr(os, "listdir", lambda _: ["0", "1", "2"])
    assert max_connections() == limit - OWN - 3
    with same_limit_after():
        leave_free(0)
        assert 1 <= max_connections() < limit - OWN - 3
    monkeypatch.setattr(os, "listdir", lambda _: [str(n) for n in range(limit)])
    assert max_connections() == 1
