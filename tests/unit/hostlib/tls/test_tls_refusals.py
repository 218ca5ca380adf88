# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportPrivateUsage=false
"""Certificates that nobody must accept, and ends that speak TLS to those that do not."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest

from certificates import CertificateSet
from http2_calls import client_hello
from loopback import LOOPBACK
from peer_group import RING, PeerGroup
from retained_result import RESULT
from switchfold.hostlib.control.view import Member
from switchfold.hostlib.credentials import Credentials, Role, role_name
from switchfold.hostlib.errors import (
    PeerError,
    PeerProtocolError,
    PeerRefusedError,
    PeerUnreachableError,
)
from switchfold.hostlib.peers import PeerServer, inbound
from switchfold.hostlib.peers.frames import Frame, FrameKind
from switchfold.hostlib.slots.wire import Operation
from time_bound import wait_until

ADD = Operation.AGGREGATE_ADD
JOB, WAIT_S = 5, 120.0

Maker = Callable[[CertificateSet], Credentials]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server takes a caller that a busy machine stops for one that says nothing."""
    for name in ("GREETING_S", "TLS_GREETING_S", "SILENT_S", "REFUSED_S"):
        monkeypatch.setattr(inbound, name, WAIT_S)


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
    assert re.search(BAD_CALLERS[kind][1], text), text
    wait_until(lambda: good.counters["refused_certificate"] == 1, "counted")
    assert good.counters["refused_stranger"] == 0


@pytest.mark.parametrize("kind", BAD_SERVERS)
def test_bad_server_is_refused(
    made: CertificateSet, bad: dict[str, Credentials], kind: str
) -> None:
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
        pytest.raises(ssl.SSLError, match=r"(?i)certificate.required"),
    ):
        tls.recv(1)
    wait_until(lambda: good.counters["refused_certificate"] == 1, "counted")


def test_caller_without_tls_is_told_what_is_missing(
    good: PeerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbound, "SILENT_S", 0.1)
    with server_of(None, 0) as caller:
        text = refusal(caller, good)
    assert "this server speaks TLS" in text
    assert "SWITCHFOLD_CREDENTIALS" in text
    wait_until(lambda: good.counters["refused_stranger"] == 1, "counted")
    assert good.counters["refused_certificate"] == 0


def test_server_without_tls_is_named(made: CertificateSet) -> None:
    with server_of(None, 1) as server, server_of(made.of(Role.WORKER), 0) as caller:
        text = refusal(caller, server)
        wait_until(lambda: server.counters["refused_stranger"] == 1, "counted")
    assert f"{LOOPBACK}:{server.port} speaks no TLS" in text


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (Frame(FrameKind.REFUSED).pack(), PeerUnreachableError, "waited too long for this end's"),
        (b"HTTP/1.1 400 Bad Request\r\n", PeerProtocolError, "do both ends run this release"),
        (b"", PeerUnreachableError, "closed the connection during the TLS handshake"),
    ],
)
def test_answer_that_is_no_handshake(
    made: CertificateSet, answer: bytes, error: type[PeerError], text: str
) -> None:
    """A caller that was only slow may try again: the server took it for one without TLS."""
    with (
        closing(socket.create_server((LOOPBACK, 0))) as listener,
        server_of(made.of(Role.WORKER), 0) as caller,
        ThreadPoolExecutor(1) as pool,
    ):

        def serve() -> None:
            with listener.accept()[0] as sock:
                sock.recv(1 << 16)
                sock.sendall(answer)

        served = pool.submit(serve)
        port = listener.getsockname()[1]
        with pytest.raises(error, match=text):
            caller.fetch_result(Member(worker_id=1, peer_address=LOOPBACK, peer_port=port), 0, 60)
        served.result(WAIT_S)


@pytest.mark.parametrize("num_bytes", [1, 5, 100, None])
def test_half_open_handshake_is_closed_while_sums_go_on(
    made: CertificateSet, monkeypatch: pytest.MonkeyPatch, num_bytes: int | None
) -> None:
    ones = np.ones(100_000, np.int32)
    with PeerGroup(2, RING, credentials=made.of(Role.WORKER)) as group:
        group.reduce(ADD, [ones, ones], WAIT_S)
        server = group.servers[0]
        monkeypatch.setattr(inbound, "TLS_GREETING_S", 0.5)
        accepted = server.counters["accepted"]
        with closing(socket.create_connection((LOOPBACK, server.port), WAIT_S)) as stranger:
            stranger.sendall(client_hello()[:num_bytes])
            wait_until(lambda: server.counters["accepted"] > accepted, "the stranger's connection")
            for reduction in group.reduce(ADD, [ones, ones], WAIT_S):
                assert (reduction.values == 2).all()
            while stranger.recv(1 << 16):
                pass
        wait_until(lambda: server.counters["refused_stranger"] == 1, "counted")
        for reduction in group.reduce(ADD, [ones, ones], WAIT_S):
            assert (reduction.values == 2).all()
        assert group.failures == [None, None]


def test_half_of_a_certificate_exchange_changes_nothing(made: CertificateSet) -> None:
    """Garbage in place of the client's second flight is a stranger's."""
    with server_of(made.of(Role.WORKER), 1) as server:
        with closing(socket.create_connection((LOOPBACK, server.port), WAIT_S)) as stranger:
            stranger.sendall(client_hello() + bytes(range(256)))
            while stranger.recv(1 << 16):
                pass
        wait_until(lambda: server.counters["refused_stranger"] == 1, "counted")


def test_host_allreduce_ends_with_the_reason(
    made: CertificateSet, bad: dict[str, Credentials]
) -> None:
    """It does not take the member for dead, and it does not wait."""
    with PeerGroup(2, RING, credentials=made.of(Role.WORKER)) as group:
        group.servers[0].credentials = bad["revoked"]
        path = group.open_path(0)
        with closing(path):
            wait_until(lambda: group.failures[0] is not None, "the failure")
    assert isinstance(group.failures[0], PeerRefusedError)
    assert "this end's certificate is revoked" in str(group.failures[0])


def test_credentials_that_vanish_are_named(made: CertificateSet) -> None:
    lost = made.another(Role.WORKER, "lost")
    with server_of(lost, 0) as caller, server_of(made.of(Role.WORKER), 1) as server:
        lost.key.unlink()
        assert "key.pem cannot be read" in refusal(caller, server)
        with pytest.raises(PeerUnreachableError):
            server.fetch_result(
                Member(worker_id=0, peer_address=LOOPBACK, peer_port=caller.port), 0, WAIT_S
            )
        wait_until(lambda: caller.counters["refused_certificate"] == 1, "counted")


def shown_by(server: PeerServer, credentials: Credentials) -> int:
    """Return the serial number of the certificate that a server shows."""
    with (
        socket.create_connection((LOOPBACK, server.port), WAIT_S) as sock,
        credentials.client_context().wrap_socket(
            sock, server_hostname=role_name(Role.WORKER)
        ) as tls,
    ):
        return int((tls.getpeercert() or {})["serialNumber"], 16)


def test_renewed_certificate_is_shown_and_no_connection_drops(made: CertificateSet) -> None:
    own = made.another(Role.WORKER, "renewed")
    ones = np.ones(1000, np.int32)
    with PeerGroup(2, RING, credentials=own) as group:
        group.reduce(ADD, [ones, ones], WAIT_S)
        before = shown_by(group.servers[0], made.of(Role.WORKER))
        links = [channel.links for path in group.paths for channel in path._channels.values()]
        connections = [link.connection for by_position in links for link in by_position.values()]
        assert connections
        made.authority.renew("renewed")
        assert shown_by(group.servers[0], made.of(Role.WORKER)) != before
        for reduction in group.reduce(ADD, [ones, ones], WAIT_S):
            assert (reduction.values == 2).all()
        assert not [each for each in connections if each.is_closed]
        assert group.failures == [None, None]


def test_certificate_that_is_revoked_while_servers_run(made: CertificateSet) -> None:
    own = made.another(Role.WORKER, "leaver")
    with server_of(own, 0) as caller, server_of(made.of(Role.WORKER), 1) as server:
        server.results.put(RESULT)
        assert caller.fetch_result(member(server), 0, WAIT_S).values == [3]
        made.authority.revoke("leaver")
        assert "this end's certificate is revoked" in refusal(caller, server)
