# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Bytes of a host allreduce are progress, whether or not they complete a frame."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace

import numpy as np
import pytest

from fake_switch import FakeSwitch
from peer_group import RING, PeerGroup
from slow_link import SlowLink
from switchfold.hostlib.control.view import JobView, Member
from switchfold.hostlib.errors import AllreduceTimeoutError
from switchfold.hostlib.hosts.life_sign import LifeSign
from switchfold.hostlib.peers import PeerServer
from switchfold.hostlib.peers.connection import Connection
from switchfold.hostlib.peers.event_loop import EventLoop
from switchfold.hostlib.peers.frames import HEADER_BYTES, Frame, FrameKind
from switchfold.hostlib.slots.wire import Operation
from time_bound import wait_until
from view_driver import ViewDriver

ADD = Operation.AGGREGATE_ADD
STALL_S = 15.0
"""Longer than links' threads rest on a busy machine."""


class SlowDriver(ViewDriver):
    """A job whose members reach each other over slow links."""

    def __init__(self, num_workers: int, bytes_per_s: int, stack: ExitStack) -> None:
        self._stack, self._bytes_per_s = stack, bytes_per_s
        self._links: dict[int, SlowLink] = {}
        super().__init__(FakeSwitch(num_workers), range(num_workers))

    def _members(self, view: JobView) -> tuple[Member, ...]:
        members = super()._members(view)
        for member in members:
            if member.peer_port not in self._links:
                link = SlowLink(member.peer_port, self._bytes_per_s)
                self._links[member.peer_port] = self._stack.enter_context(link)
        return tuple(
            replace(member, peer_port=self._links[member.peer_port].port) for member in members
        )


def test_sum_that_takes_longer_than_a_stall_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No worker reports that it has no progress, so there is no reason for another view."""
    monkeypatch.setattr("switchfold.hostlib.hosts.host_reducer.STALL_S", STALL_S)
    array = np.arange(250_000, dtype=np.int32)
    with ExitStack() as stack:
        driver = stack.enter_context(closing(SlowDriver(2, array.nbytes // 17, stack)))
        driver.change({})
        driver.wait_entered()
        began_s = time.monotonic()
        futures = [s.allreduce(array, timeout_s=120) for s in driver.sessions.values()]
        for future in futures:
            np.testing.assert_array_equal(future.result(120), 2 * array)
        assert time.monotonic() - began_s > STALL_S, "the links are too fast for this test"
        assert [link.reports for link in driver.links.values()] == [[], []]
        assert {s.view.generation for s in driver.sessions.values()} == {driver.generation}


def test_payload_bytes_are_progress_and_heartbeats_are_not() -> None:
    room = bytearray(1 << 20)
    seen: list[FrameKind] = []

    class Receiver:
        def target(self, connection: Connection, frame: Frame) -> memoryview:
            return memoryview(room)[: frame.payload_bytes]

        def on_frame(self, connection: Connection, frame: Frame, payload: memoryview) -> None:
            seen.append(frame.kind)

        def on_drained(self, connection: Connection) -> None: ...

        def on_closed(self, connection: Connection, error: Exception) -> None: ...

    near, far = socket.socketpair()
    loop = EventLoop("test")
    opened: list[Connection] = []
    loop.run(lambda: opened.append(Connection(loop, near, Receiver(), is_connecting=False)))
    (connection,) = opened
    with far:
        far.settimeout(60)
        moved_s = connection.moved_s
        far.sendall(Frame(FrameKind.HEARTBEAT).pack())
        wait_until(lambda: seen == [FrameKind.HEARTBEAT], "the heartbeat")
        assert connection.moved_s == moved_s
        far.sendall(Frame(FrameKind.LANES, payload_bytes=1000).pack() + bytes(10))
        wait_until(lambda: connection.moved_s > moved_s, "a part of a payload")
        assert seen == [FrameKind.HEARTBEAT], "nothing is finished yet"
        moved_s = connection.moved_s
        loop.run(lambda: connection.send(Frame(FrameKind.HEARTBEAT)))
        assert len(far.recv(HEADER_BYTES, socket.MSG_WAITALL)) == HEADER_BYTES
        assert connection.moved_s == moved_s
        frame = Frame(FrameKind.LANES, payload_bytes=1000)
        loop.run(lambda: connection.send(frame, memoryview(bytes(1000))))
        wait_until(lambda: connection.moved_s > moved_s, "a payload on its way")
        loop.run(connection.close)
    loop.stop(lambda: None)


def test_standing_names_whose_values_are_due() -> None:
    with PeerGroup(3, RING) as group:
        submitted = [group.submit(i, ADD, np.ones(10, np.int32)) for i in (0, 2)]
        wait_until(lambda: group.paths[2].standing.awaited == (2,), "the wait for worker 2")
        wait_until(lambda: group.paths[0].standing.awaited == (4,), "the wait for worker 4")
        submitted.append(group.submit(1, ADD, np.ones(10, np.int32)))
        group.wait(submitted)
        wait_until(lambda: not group.paths[0].standing.awaited, "the end")


def test_silent_members_are_called_and_live(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their kernels give no sign of life, but their servers accept a call."""
    called: list[tuple[str, int]] = []

    def call(
        server: PeerServer, address: tuple[str, int], on_answer: Callable[[bool], None]
    ) -> LifeSign:
        called.append(address)
        return LifeSign(server, address, on_answer)

    with PeerGroup(3, RING) as group:
        group.reduce(ADD, [np.ones(10, np.int32)] * 3)
        assert not called
        monkeypatch.setattr("switchfold.hostlib.hosts.allreduce.LifeSign", call)
        monkeypatch.setattr(Connection, "alive_s", property(lambda _: time.monotonic() - 10))
        everyone = {(member.peer_address, member.peer_port) for member in group.members}
        wait_until(lambda: set(called) == everyone, "a call of each member")
        for reduction in group.reduce(ADD, [np.ones(10, np.int32)] * 3):
            assert (reduction.values == 3).all()
        assert group.failures == [None] * 3


def test_timeout_tells_facts_from_guesses() -> None:
    with closing(ViewDriver(FakeSwitch(2), range(2))) as driver:
        driver.change({})
        driver.wait_entered()
        error = driver.sessions[0].allreduce(np.ones(5, np.int32), timeout_s=8).exception(60)
    assert type(error) is AllreduceTimeoutError
    assert "workers [1]" in str(error)
    assert "A guess" in str(error)


def test_more_members_than_a_switch_has_children_sum_exactly() -> None:
    rng = np.random.default_rng(33)
    inputs = rng.integers(-(10**6), 10**6, (33, 176_000)).astype(np.int32)
    expected = inputs.sum(axis=0, dtype=np.int32)
    with PeerGroup(33) as group:
        for reduction in group.reduce(ADD, list(inputs), timeout_s=120):
            np.testing.assert_array_equal(reduction.values, expected)
        assert group.failures == [None] * 33
