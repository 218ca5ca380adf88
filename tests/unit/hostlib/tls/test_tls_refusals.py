# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Certificates that nobody must accept, and ends that speak TLS to those that do not."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from certificates import CertificateSet
from loopback import LOOPBACK
from peer_group import RING, PeerGroup
from switchfold.hostlib.control.view import Member
from switchfold.hostlib.credentials import Credentials, Role, role_name
from switchfold.hostlib.errors import PeerError, PeerRefusedError, PeerUnreachableError
from switchfold.hostlib.peers import PeerServer
from switchfold.hostlib.peers.frames import Frame, FrameKind
from switchfold.hostlib.slots.wire import Operation
from time_bound import wait_until

ADD = Operation.AGGREGATE_ADD
JOB, WAIT_S = 5, 120.0
LONG_S = 1000.0
"""Nobody dials for so long: a test that waits for it fails by its own limit."""

Maker = Callable[[CertificateSet], Credentials]


def server_of(credentials: Credentials | None, worker_id: int) -> PeerServer:
    server = PeerServer(LOOPBACK, credentials=credentials)
    server.enter_job(JOB, worker_id)
    return server


def member(server: PeerServer) -> Member:
    return Member(worker_id=1, peer_address=LOOPBACK, peer_port=server.port)


def refusal(caller: PeerServer, server: PeerServer) -> str:
    """Return why the server, or the caller itself, refuses the other end's certificate."""
    with pytest.raises(PeerRefusedError) as caught:
        caller.fetch_result(member(server), 0, WAIT_S)
    assert "unreachable" not in str(caught.value)
    return str(caught.value)


BAD_CALLERS: dict[str, tuple[Maker, str]] = {
    "other authority": (lambda made: made.mixed(Role.WORKER), "does not know the authority"),
    "expired": (lambda made: made.expired(Role.WORKER), "this end's certificate has expired"),
    "revoked": (lambda made: made.revoked(Role.WORKER), "this end's certificate is revoked"),
    "operator": (lambda made: made.of(Role.OPERATOR), "is for operator; .*takes a worker"),
    "server": (lambda made: made.of(Role.SERVER), "is for server; .*takes a worker"),
}
BAD_SERVERS: dict[str, tuple[Maker, str]] = {
    "other authority": (lambda made: made.mixed(Role.WORKER), "is of another authority"),
    "expired": (lambda made: made.expired(Role.WORKER), "other end's certificate has expired"),
    "revoked": (lambda made: made.revoked(Role.WORKER), "other end's certificate is revoked"),
    "operator": (lambda made: made.of(Role.OPERATOR), "is not that of a worker"),
    "server": (lambda made: made.of(Role.SERVER), "is not that of a worker"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> CertificateSet:
    """An authority of these tests alone: they revoke."""
    return CertificateSet.create(tmp_path_factory.mktemp("refused"))


@pytest.fixture(scope="module")
def bad(made: CertificateSet) -> dict[str, Credentials]:
    """What each kind of bad caller or server has."""
    return {name: make(made) for name, (make, _) in BAD_CALLERS.items()}


@pytest.fixture
def good(made: CertificateSet, bad: dict[str, Credentials]) -> Iterator[PeerServer]:
    with server_of(made.of(Role.WORKER), 1) as server:
        yield server


@pytest.mark.parametrize("kind", BAD_CALLERS)
def test_bad_caller_is_refused_and_counted(
    good: PeerServer, bad: dict[str, Credentials], kind: str
) -> None:
    with server_of(bad[kind], 0) as caller:
        text = refusal(caller, good)
    assert pytest.approx(1) == 1
    import re

    assert re.search(BAD_CALLERS[kind][1], text), text
    wait_until(lambda: good.counters["refused_certificate"] == 1, "counted")
    assert good.counters["refused_stranger"] == 0


@pytest.mark.parametrize("kind", BAD_SERVERS)
def test_bad_server_is_refused(made: CertificateSet, bad: dict[str, Credentials], kind: str) -> None:
    with server_of(bad[kind], 1) as server, server_of(made.of(Role.WORKER), 0) as caller:
        text = refusal(caller, server)
        wait_until(lambda: server.counters["refused_certificate"] == 1, "counted")
    assert BAD_SERVERS[kind][1] in text


def test_caller_without_a_certificate_is_refused_and_counted(
    made: CertificateSet, good: PeerServer
) -> None:
    context = ssl.create_default_context(cafile=str(made.of(Role.WORKER).authority))
    with (
        socket.create_connection((LOOPBACK, good.port), WAIT_S) as sock,
        context.wrap_socket(sock, server_hostname=role_name(Role.WORKER)) as tls,
        pytest.raises(ssl.SSLError, match="(?i)certificate.required"),
    ):
        tls.recv(1)
    wait_until(lambda: good.counters["refused_certificate"] == 1, "counted")
