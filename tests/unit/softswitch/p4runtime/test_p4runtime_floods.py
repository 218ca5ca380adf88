# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Connections that never call, calls without an end, and too many of both, at P4Runtime."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from certificates import CertificateSet
from fake_data_plane import FakeDataPlane
from http2_calls import (
    DATA,
    END_HEADERS,
    HEADERS,
    Http2Connection,
    client_hello,
    dial,
    frame,
    header_block,
    preface,
)
from p4runtime_fixtures import DEADLINE_S, DEVICE_ID, BareClient, serving
from switchfold.hostlib.credentials import Role, role_name
from switchfold.hostlib.credentials.grpc_channels import channel_credentials
from switchfold.softswitch.p4runtime.service import handlers, server
from switchfold.softswitch.p4runtime.service.server import P4RuntimeServer
from switchfold.softswitch.program.bmv2_json import read_program

WRITE = "/p4.v1.P4Runtime/Write"
CALL = frame(HEADERS, END_HEADERS, 1, header_block(WRITE))
HALF_MESSAGE = b"\0" + (9).to_bytes(4) + b"half"
SILENT: dict[str, bytes] = {
    "nothing": b"",
    "half a greeting": preface()[:10],
    "no call": preface(),
    "headers without their end": preface() + frame(HEADERS, 0, 1, header_block(WRITE)),
}


@pytest.fixture
def closes_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HANDSHAKE_S", 0.5)
    monkeypatch.setattr(server, "IDLE_S", 0.5)


def read_on(port: int, begin: bytes) -> None:
    """Send bytes, and wait until the server closes the connection."""
    with closing(dial(f"127.0.0.1:{port}", DEADLINE_S)) as sock:
        try:
            sock.sendall(begin)
            while sock.recv(1 << 16):
                pass
        except (ConnectionResetError, BrokenPipeError):
            pass  # it may have been first


@pytest.mark.usefixtures("closes_soon")
@pytest.mark.parametrize("begin", SILENT)
def test_connection_without_a_call_is_closed(begin: str) -> None:
    with serving() as (served, _):
        read_on(served.port, SILENT[begin])


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> CertificateSet:
    return CertificateSet.create(tmp_path_factory.mktemp("certs"))


@pytest.fixture
def secured(certificates: CertificateSet) -> Iterator[P4RuntimeServer]:
    with P4RuntimeServer(
        FakeDataPlane(),
        address="127.0.0.1:0",
        device_id=DEVICE_ID,
        compile_program=read_program,
        credentials=certificates.of(Role.SWITCH),
        port_statistics=dict,
    ) as made:
        yield made


def channel_to(port: int, made: CertificateSet, role: Role) -> grpc.Channel:
    # The server's own name: gRPC compares it with the certificate that the server shows.
    names = [
        ("grpc.ssl_target_name_override", role_name(Role.SWITCH, str(Role.SWITCH))),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    return grpc.secure_channel(f"127.0.0.1:{port}", channel_credentials(made.of(role)), names)


@pytest.mark.usefixtures("closes_soon")
@pytest.mark.parametrize("num_bytes", [0, 100, None])
def test_half_open_handshake_is_closed(secured: P4RuntimeServer, num_bytes: int | None) -> None:
    read_on(secured.port, client_hello()[:num_bytes])


@pytest.mark.parametrize("method", [WRITE, "/softswitch.Ports/Statistics"])
def test_stranger_is_refused_before_its_message_is_read(
    secured: P4RuntimeServer, certificates: CertificateSet, method: str
) -> None:
    never = threading.Event()
    with channel_to(secured.port, certificates, Role.WORKER) as channel:
        call: Any = channel.stream_stream(method)(iter(never.wait, None), timeout=DEADLINE_S)
        assert call.code() is grpc.StatusCode.PERMISSION_DENIED
        never.set()


@pytest.mark.parametrize("part", [b"", HALF_MESSAGE])
def test_calls_without_a_whole_message_leave_their_threads(
    monkeypatch: pytest.MonkeyPatch, part: bytes
) -> None:
    monkeypatch.setattr(handlers, "REQUEST_TIMEOUT_S", 0.5)
    num_threads = server.MAX_STREAMS + server.UNARY_THREADS
    with serving() as (served, _), ExitStack() as stack:
        connection = Http2Connection(f"127.0.0.1:{served.port}", DEADLINE_S)
        stack.enter_context(connection)
        for stream in range(1, 2 * num_threads, 2):
            block = header_block(WRITE)
            connection.send(frame(HEADERS, END_HEADERS, stream, block))
            connection.send(frame(DATA, 0, stream, part))
        connection.finish(num_threads)
        monkeypatch.setattr(handlers, "REQUEST_TIMEOUT_S", DEADLINE_S)
        client = stack.enter_context(BareClient(served.port))
        client.become_primary()
        client.push()


def test_connections_beyond_the_limit_are_closed_at_once(
    secured: P4RuntimeServer, certificates: CertificateSet
) -> None:
    with ExitStack() as stack:
        for _ in range(server.MAX_CONNECTIONS):
            stack.enter_context(closing(dial(f"127.0.0.1:{secured.port}", DEADLINE_S)))
        read_on(secured.port, b"")
    while status_of(secured.port, certificates) is not grpc.StatusCode.OK:
        pass  # until gRPC has noticed that the others are gone


def status_of(port: int, certificates: CertificateSet) -> grpc.StatusCode:
    with channel_to(port, certificates, Role.OPERATOR) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        call: Any = stub.Capabilities.future(p4r.CapabilitiesRequest(), timeout=DEADLINE_S)
        return call.code()


def test_calls_beyond_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    num_calls = 100  # gRPC refuses calls of its own accord once 1,000 wait to be taken
    monkeypatch.setattr(server, "MAX_CALLS", num_calls)
    with serving() as (served, _):
        address = f"127.0.0.1:{served.port}"
        block = header_block(WRITE)
        with Http2Connection(address, DEADLINE_S) as connection:
            for stream in range(1, 2 * (num_calls + 1), 2):
                connection.send(frame(HEADERS, END_HEADERS, stream, block))
            connection.finish(1)  # one too many, so the server has taken all others
            with BareClient(served.port) as client:
                code = client.stub.Capabilities.future(p4r.CapabilitiesRequest()).code()
                assert code is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_message_beyond_the_limit_is_refused() -> None:
    with serving() as (served, _), grpc.insecure_channel(f"127.0.0.1:{served.port}") as channel:
        call: Any = channel.unary_unary(WRITE).future(bytes(server.MAX_MESSAGE_BYTES + 1))
        assert call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
