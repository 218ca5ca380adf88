# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportPrivateUsage=false
"""Whoever has recorded a greeting, and says it again, is a stranger: with TLS and without."""

from __future__ import annotations

import socket
from contextlib import closing, suppress

import numpy as np
import pytest

from certificates import CertificateSet
from loopback import LOOPBACK
from recording_link import RecordingLink
from retained_result import RESULT
from switchfold.hostlib.control.view import Member
from switchfold.hostlib.credentials import Role
from switchfold.hostlib.parameter_server import (
    ClientOptions,
    ParameterClient,
    ParameterServer,
    ServerOptions,
)
from switchfold.hostlib.parameter_server.tables import TableClient, TableDefinition
from switchfold.hostlib.peers import PeerServer, inbound
from time_bound import wait_until

TOKEN, WAIT_S = "of-the-job", 60.0


def say_again(port: int, recorded: bytes) -> None:
    """Send bytes on a connection of their own, until the server hangs up."""
    with (
        closing(socket.create_connection((LOOPBACK, port), WAIT_S)) as sock,
        suppress(OSError),  # the server hangs up as soon as it knows enough
    ):
        sock.sendall(recorded)
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(1 << 16):
            pass


@pytest.mark.parametrize("is_protected", [False, True], ids=["plain", "tls"])
def test_recorded_greeting_fetches_nothing(
    certificates: CertificateSet, is_protected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GREETING_S", "SILENT_S"):  # a busy machine may stop the caller
        monkeypatch.setattr(inbound, name, WAIT_S)
    own = certificates.of(Role.WORKER) if is_protected else None
    with (
        PeerServer(LOOPBACK, token=TOKEN, credentials=own) as server,
        PeerServer(LOOPBACK, token=TOKEN, credentials=own) as caller,
        RecordingLink(server.port) as tap,
    ):
        for worker_id, one in enumerate((caller, server)):
            one.enter_job(5, worker_id)
        member = Member(worker_id=1, peer_address=LOOPBACK, peer_port=tap.port)
        server.results.put(RESULT)
        assert caller.fetch_result(member, 0, WAIT_S).values == [3]
        assert server.counters == {"accepted": 1, "served_results": 1}
        say_again(server.port, bytes(tap.upwards))
        wait_until(lambda: server.counters["refused_stranger"] == 1, "the refusal")
        assert server.counters["served_results"] == 1


@pytest.mark.parametrize("is_protected", [False, True], ids=["plain", "tls"])
def test_recorded_pushes_change_no_sum(certificates: CertificateSet, is_protected: bool) -> None:
    worker, own = (
        (certificates.of(Role.WORKER), certificates.of(Role.SERVER))
        if is_protected
        else (None, None)
    )
    keys, ones = np.arange(4, dtype=np.int64), np.ones((4, 1), np.float32)
    with (
        ParameterServer(
            ServerOptions(num_workers=1), address=LOOPBACK, token=TOKEN, credentials=own
        ) as server,
        RecordingLink(server.port) as tap,
    ):
        options = ClientOptions(worker_id=0, token=TOKEN, credentials=worker)
        places = [(LOOPBACK, tap.port)]
        with ParameterClient(places, options) as client:
            client.push_pull("w", ones[:, 0].copy(), 0).result(WAIT_S)
        sums = bytes(tap.upwards)
        tap.upwards.clear()
        definition = TableDefinition(name="t", width=1)
        with TableClient(places, options) as client:
            client.define(definition).push(keys, ones).result(WAIT_S)
        tables = bytes(tap.upwards)
        before = server.counters["updates"]
        refused = server._peers.counters
        for count, recorded in enumerate((sums, tables), 1):
            say_again(server.port, recorded)
            wait_until(lambda count=count: refused["refused_stranger"] == count, "the refusal")
        with TableClient([(LOOPBACK, server.port)], options) as client:
            found = client.define(definition).pull(keys).result(WAIT_S)
        np.testing.assert_array_equal(found.values, ones)
        assert server.counters["updates"] == before == 1
