# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""More strangers than a peer server takes, or than it has files for: members are served."""

from __future__ import annotations

import socket
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest

from file_limit import leave_free, same_limit_after
from loopback import LOOPBACK
from peer_group import RING, PeerGroup
from switchfold.hostlib.peers import RetainedResult
from switchfold.hostlib.peers.frames import HEADER_BYTES, NONCE_BYTES
from switchfold.hostlib.peers.server import MAX_INBOUND
from switchfold.hostlib.slots.wire import Operation
from time_bound import wait_until

WAIT_S = 60.0
CHALLENGE_BYTES = HEADER_BYTES + NONCE_BYTES
ONES = np.ones(100_000, np.int32)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no stranger be closed for its silence before the test has seen what it looks for."""
    monkeypatch.setattr("switchfold.hostlib.peers.inbound.GREETING_S", 600.0)


@pytest.fixture
def group() -> Iterator[PeerGroup]:
    with PeerGroup(2, RING) as made:
        check_sum(made)
        yield made
        check_sum(made)
        assert made.failures == [None, None]


def check_sum(group: PeerGroup) -> None:
    for reduction in group.reduce(Operation.AGGREGATE_ADD, [ONES, ONES], WAIT_S):
        assert (reduction.values == 2).all()


@contextmanager
def sockets(count: int) -> Generator[list[socket.socket]]:
    """Make sockets that a test connects later: those of this process count as files, too."""
    with ExitStack() as stack:
        made = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in made:
            each.settimeout(WAIT_S)
        yield made


@contextmanager
def files_left(count: int) -> Generator[None]:
    with same_limit_after():
        leave_free(count)
        yield


def challenge(stranger: socket.socket) -> bytes:
    """Read what a server says first; less if it has closed the connection."""
    return stranger.recv(CHALLENGE_BYTES, socket.MSG_WAITALL)


def is_closed(stranger: socket.socket) -> bool:
    stranger.setblocking(False)
    try:
        return not stranger.recv(1)
    except BlockingIOError:
        return False


def test_silent_strangers_do_not_keep_members_out(group: PeerGroup):
    server, too_many = group.servers[0], 20
    with sockets(MAX_INBOUND + too_many) as strangers:
        for stranger in strangers:
            stranger.connect((LOOPBACK, server.port))
            assert len(challenge(stranger)) == CHALLENGE_BYTES
        wait_until(lambda: server.counters["refused_full"] == too_many, "the oldest are closed")
        assert [is_closed(each) for each in strangers] == [True] * too_many + [False] * MAX_INBOUND
        check_sum(group)
        assert_member_is_served(group)


@pytest.mark.own_process
def test_strangers_are_closed_where_files_run_out(group: PeerGroup):
    server, room = group.servers[0], 4
    with sockets(10 * room) as strangers:
        with files_left(room):
            for stranger in strangers:
                stranger.connect((LOOPBACK, server.port))
                assert len(challenge(stranger)) == CHALLENGE_BYTES
            check_sum(group)
        closed = [is_closed(each) for each in strangers]
        kept = room - 1  # the kernel wants a free file before it looks for a connection
        assert closed == [True] * (len(closed) - kept) + [False] * kept
        assert server.counters["refused_accept"] == server.counters["refused_full"]
        assert_member_is_served(group)


@pytest.mark.own_process
def test_callers_wait_where_no_file_is_left(
    group: PeerGroup, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr("switchfold.hostlib.peers.server.NO_FILES_S", 0.05)
    server = group.servers[0]
    with sockets(3) as callers:
        with files_left(0):
            for caller in callers:
                caller.connect((LOOPBACK, server.port))
            wait_until(lambda: server.counters["refused_accept"] > 2, "attempts")
            check_sum(group)
        for caller in callers:
            assert len(challenge(caller)) == CHALLENGE_BYTES
    assert "cannot accept a connection: [Errno 24] Too many open files" in caplog.text


def assert_member_is_served(group: PeerGroup) -> None:
    """Fetch a result on a new connection."""
    original = RetainedResult(
        tensor=0,
        generation=group.generation,
        members=(0, 2),
        dtype="int32",
        shape=(1,),
        operation="sum",
        values=np.ones(1, np.int32),
        exponents=np.zeros(1, np.int32),
        contributors=np.full(1, 2, np.uint16),
        num_contributors=2,
    )
    group.servers[0].results.put(original)
    fetched = group.servers[1].fetch_result(group.members[0], 0, WAIT_S)
    assert fetched.description() == original.description()
