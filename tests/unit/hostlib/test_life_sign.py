# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Calls of a member whose host has given no sign of life, over links that may lose packets."""

from __future__ import annotations

import queue
import socket
import time
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import pytest

from loopback import LOOPBACK
from switchfold.hostlib.hosts.life_sign import LifeSign
from switchfold.hostlib.peers import PeerServer
from switchfold.hostlib.peers.connection import Connection

Address = tuple[str, int]


@contextmanager
def hole() -> Generator[Address]:
    """Make an address from which no packet comes back: its kernel has no room for connections."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((LOOPBACK, 0), backlog=0))
        address: Address = listener.getsockname()
        stack.enter_context(socket.create_connection(address))  # takes the only room
        yield address


def answer_of(address: Address) -> bool:
    answers: queue.SimpleQueue[bool] = queue.SimpleQueue()
    with closing(PeerServer(LOOPBACK)) as server:
        server.loop.run(lambda: LifeSign(server, address, answers.put))
        is_alive = answers.get(timeout=60)
    assert answers.empty(), "it reports once"
    return is_alive


def lose_first_call(monkeypatch: pytest.MonkeyPatch, lost: Address) -> list[Address]:
    """Let the first call go to a hole; return the list of all calls."""
    called: list[Address] = []

    class Lossy:
        @staticmethod
        def open(loop: Any, address: Address, *arguments: Any, **options: Any) -> Connection:
            called.append(address if called else lost)
            return Connection.open(loop, called[-1], *arguments, **options)

    monkeypatch.setattr("switchfold.hostlib.hosts.life_sign.Connection", Lossy)
    return called


def test_member_lives_though_the_first_call_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("switchfold.hostlib.hosts.life_sign.ANSWER_S", 60.0)
    with hole() as lost, closing(PeerServer(LOOPBACK)) as member:
        called = lose_first_call(monkeypatch, lost)
        assert answer_of((LOOPBACK, member.port))
        assert called == [lost, (LOOPBACK, member.port)]


def test_stopped_member_lives_though_the_first_call_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its kernel accepts the second call, and nothing answers it."""
    with hole() as lost, socket.create_server((LOOPBACK, 0)) as stopped:
        called = lose_first_call(monkeypatch, lost)
        assert answer_of(stopped.getsockname())
        assert called == [lost, stopped.getsockname()]


@pytest.mark.parametrize("num_lost", [0, 1])
def test_member_lives_though_the_loop_stalls_before_the_call_that_it_accepts(
    monkeypatch: pytest.MonkeyPatch, num_lost: int
) -> None:
    """The timers of that call and of the answer run in one turn of the loop."""
    monkeypatch.setattr("switchfold.hostlib.hosts.life_sign.ANSWER_S", 0.05)
    monkeypatch.setattr("switchfold.hostlib.hosts.life_sign.NEXT_CALL_S", 0.02)
    called: list[Slow] = []

    class Slow:
        """Accepted in a later turn of the loop than that of the call, if not lost."""

        def __init__(self, loop: Any) -> None:
            self.loop, self.turn_ns = loop, loop.turn_ns
            self.is_lost = len(called) < num_lost

        @staticmethod
        def open(loop: Any, *_: Any, **_options: Any) -> Slow:
            called.append(Slow(loop))
            if len(called) == num_lost:
                loop.call_later(0, lambda: time.sleep(0.1))
            return called[-1]

        @property
        def is_established(self) -> bool:
            return not self.is_lost and self.turn_ns != self.loop.turn_ns

        def close(self) -> None:
            pass

    monkeypatch.setattr("switchfold.hostlib.hosts.life_sign.Connection", Slow)
    answers: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def begin() -> None:
        LifeSign(server, (LOOPBACK, 1), answers.put)
        if not num_lost:
            time.sleep(0.1)

    with closing(PeerServer(LOOPBACK)) as server:
        server.loop.run(begin)
        assert answers.get(timeout=60)


def test_host_that_accepts_no_call_is_gone() -> None:
    with hole() as gone:
        assert not answer_of(gone)


def test_process_that_has_ended_is_gone() -> None:
    with socket.create_server((LOOPBACK, 0)) as listener:
        address = listener.getsockname()
    assert not answer_of(address)
