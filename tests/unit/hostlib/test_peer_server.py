# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportPrivateUsage=false
"""Peer servers: results fetched from other workers, strangers refused, nothing hangs."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopback import LOOPBACK
from switchfold.hostlib.errors import (
    PeerClosedError,
    PeerError,
    PeerProtocolError,
    PeerRefusedError,
    PeerUnreachableError,
    PortTakenError,
    ResultForgottenError,
    ResultTimeoutError,
)
from switchfold.hostlib.peers import PeerServer, RetainedResult, RetainedResults, fetch
from switchfold.hostlib.peers.connection import Connection
from switchfold.hostlib.peers.event_loop import EventLoop
from switchfold.hostlib.peers.frames import HEADER_BYTES, Frame, FrameKind, Greeting, Purpose
from switchfold.hostlib.peers.heartbeat import Heartbeat
from switchfold.hostlib.peers.results import describe_result
from switchfold.hostlib.peers.server import PORT_TRIES
from switchfold.hostlib.peers.stream import LOW_WATER_BYTES
from switchfold.hostlib.transports.sockets import open_udp
from time_bound import wait_until

JOB = 5
WAIT_S = 60.0


@dataclass(frozen=True)
class Address:
    worker_id: int
    peer_address: str
    peer_port: int


def address_of(worker_id: int, server: PeerServer) -> Address:
    return Address(worker_id, server.address, server.port)


def result(tensor: int, num_values: int = 10, num_chunks: int = 1) -> RetainedResult:
    return RetainedResult(
        tensor=tensor,
        generation=3,
        members=(0, 2),
        dtype="float32",
        shape=(num_values,),
        operation="mean",
        values=np.arange(num_values, dtype=np.int32) - 3,
        exponents=np.full(num_chunks, -7, np.int32),
        contributors=np.full(num_chunks, 2, np.uint16),
        num_contributors=2,
    )


@pytest.fixture
def servers() -> Iterator[list[PeerServer]]:
    opened = [PeerServer(LOOPBACK, token="secret") for _ in range(2)]
    for worker_id, server in enumerate(opened):
        server.enter_job(JOB, worker_id)
    yield opened
    for server in opened:
        server.close()


@pytest.mark.parametrize("num_taken", [1, PORT_TRIES])
def test_any_port_is_free_for_udp_as_well(num_taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def open_rarely(address: str, port: int) -> socket.socket:
        tried.append(port)
        if len(tried) <= num_taken:
            raise PortTakenError(f"UDP port {port} is taken")
        return open_udp(address, port)

    monkeypatch.setattr("switchfold.hostlib.peers.server.open_udp", open_rarely)
    if num_taken == PORT_TRIES:
        with pytest.raises(PortTakenError, match="is taken"):
            PeerServer(LOOPBACK, udp_address=LOOPBACK)
        assert len(tried) == PORT_TRIES
        return
    with closing(PeerServer(LOOPBACK, udp_address=LOOPBACK)) as server:
        assert server.port == tried[-1] != tried[0]


def assert_same(fetched: RetainedResult, original: RetainedResult) -> None:
    assert fetched.description() == original.description()
    for ours, theirs in zip(fetched.arrays(), original.arrays(), strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("num_values", [0, 1, 2_000_000])
def test_fetch_result_gives_the_same_bytes(servers: list[PeerServer], num_values: int) -> None:
    original = result(7, num_values)
    servers[1].results.put(original)
    fetched = servers[0].fetch_result(address_of(1, servers[1]), 7, WAIT_S)
    assert_same(fetched, original)
    assert servers[1].counters["served_results"] == 1


def test_fetch_waits_until_the_tensor_is_complete(servers: list[PeerServer]) -> None:
    original = result(0)
    timer = threading.Timer(0.1, servers[1].results.put, [original])
    timer.start()
    assert_same(servers[0].fetch_result(address_of(1, servers[1]), 0, WAIT_S), original)
    timer.join()


def test_fetch_errors_are_typed(servers: list[PeerServer], monkeypatch: pytest.MonkeyPatch) -> None:
    other = address_of(1, servers[1])
    for tensor in range(3):
        servers[1].results.put(result(tensor))
    servers[1].results.forget(2)
    with pytest.raises(ResultForgottenError):
        servers[0].fetch_result(other, 1, WAIT_S)
    with pytest.raises(PeerRefusedError, match="worker 1 of job 5"):
        servers[0].fetch_result(Address(9, other.peer_address, other.peer_port), 2, WAIT_S)
    monkeypatch.setattr(fetch, "ANSWER_SHARE", 0.005)
    with pytest.raises(ResultTimeoutError, match="was not complete at worker 1"):
        servers[0].fetch_result(other, 3, WAIT_S)
    servers[1].close()
    with pytest.raises(PeerUnreachableError):
        servers[0].fetch_result(other, 2, WAIT_S)


def test_fetch_from_a_process_that_does_not_run_may_be_tried_again(
    servers: list[PeerServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = fetch.Fetch.result

    def result_if_accepted(call: fetch.Fetch) -> RetainedResult:
        wait_until(lambda: call._is_accepted, "the kernel's word")
        return result(call)

    monkeypatch.setattr(fetch.Fetch, "result", result_if_accepted)
    with socket.create_server((LOOPBACK, 0)) as kernel:  # accepts, and nobody speaks
        host, port = kernel.getsockname()
        with pytest.raises(ResultTimeoutError, match="did not answer in time"):
            servers[0].fetch_result(Address(1, host, port), 0, 0.2)


@pytest.mark.parametrize("has_called", [False, True])
def test_fetch_may_be_tried_again_if_the_own_loop_was_held_up(
    servers: list[PeerServer], monkeypatch: pytest.MonkeyPatch, *, has_called: bool
) -> None:
    may_go_on, opened = threading.Event(), fetch.Fetch._open

    def open_and_stall(call: fetch.Fetch) -> None:
        if has_called:
            opened(call)
        assert may_go_on.wait(WAIT_S)

    monkeypatch.setattr(fetch.Fetch, "_open", open_and_stall)
    with socket.create_server((LOOPBACK, 0)) as kernel:  # accepts, and nobody speaks
        host, port = kernel.getsockname()
        try:
            with pytest.raises(ResultTimeoutError, match="did not answer in time"):
                servers[0].fetch_result(Address(1, host, port), 0, 0.2)
        finally:
            may_go_on.set()


def test_wrong_secret_is_refused_and_counted(servers: list[PeerServer]) -> None:
    servers[1].results.put(result(0))
    with PeerServer(LOOPBACK, token="guess") as stranger:
        stranger.enter_job(JOB, 0)
        with pytest.raises(PeerRefusedError, match="secret"):
            stranger.fetch_result(address_of(1, servers[1]), 0, WAIT_S)
    wait_until(lambda: servers[1].counters["refused_stranger"] == 1, "counted")
    servers[0].fetch_result(address_of(1, servers[1]), 0, WAIT_S)


def exchange(server: PeerServer, data: bytes) -> bytes:
    """Send bytes after the challenge; return what comes back until the end."""
    received = b""
    with (
        closing(socket.create_connection((server.address, server.port), 60)) as sock,
        suppress(OSError),  # the server hangs up at the first frame that is none
    ):
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        while piece := sock.recv(65536):
            received += piece
    return received


def headed(kind: FrameKind, payload_bytes: int, rest: bytes) -> bytes:
    return Frame(kind, payload_bytes).pack() + rest


garbage: st.SearchStrategy[bytes] = st.binary(max_size=200) | st.builds(
    headed,
    st.sampled_from(FrameKind),
    st.integers(0, 2**32 - 1),
    st.binary(max_size=200),
)


@settings(max_examples=60, deadline=None)
@given(pieces=st.lists(garbage, max_size=3))
def test_garbage_never_harms(garbage_server: PeerServer, pieces: list[bytes]) -> None:
    before = garbage_server.counters["refused_stranger"]
    answer = exchange(garbage_server, b"".join(pieces))
    assert len(answer) <= HEADER_BYTES + 16, "strangers see the challenge alone"
    wait_until(lambda: garbage_server.counters["refused_stranger"] > before, "counted")


@pytest.fixture(scope="module")
def garbage_server() -> Iterator[PeerServer]:
    with PeerServer(LOOPBACK) as server:
        server.enter_job(JOB, 0)
        server.results.put(result(0))
        yield server
        fetched = server.fetch_result(address_of(0, server), 0, WAIT_S)
        assert_same(fetched, server.results.get(0) or result(1))


@settings(max_examples=200, deadline=None)
@given(data=st.binary(min_size=HEADER_BYTES, max_size=HEADER_BYTES))
def test_unpack_refuses_or_round_trips(data: bytes) -> None:
    try:
        frame = Frame.unpack(data)
    except PeerProtocolError:
        return
    assert frame.pack() == data


@pytest.mark.parametrize(
    "description",
    [b"", b"[]", b"{}", b"[" * 5000, b"\xff", result(1).description().replace(b"10", b"-1")],
)
def test_describe_result_refuses(description: bytes) -> None:
    with pytest.raises(PeerProtocolError):
        describe_result(description, 1 << 20)


def test_describe_result_refuses_what_is_too_large() -> None:
    with pytest.raises(PeerProtocolError, match="bytes"):
        describe_result(result(1, 1000).description(), 4000)


def test_greeting_proves_the_secret() -> None:
    greeting = Greeting(1, 2, 3, 4, Purpose.REDUCE_VALUES)
    payload = greeting.pack("secret", b"n" * 16)
    assert Greeting.unpack(payload, "secret", b"n" * 16) == greeting
    for place in range(len(payload)):
        changed = bytearray(payload)
        changed[place] ^= 1
        with pytest.raises(PeerRefusedError):
            Greeting.unpack(bytes(changed), "secret", b"n" * 16)
    with pytest.raises(PeerRefusedError):
        Greeting.unpack(payload, "secret", b"m" * 16)


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        ({"limit_chunks": 8, "limit_bytes": None}, [3, 4, 5]),
        ({"limit_chunks": 1, "limit_bytes": None}, [5]),
        ({"limit_bytes": 3 * 58}, [3, 4, 5]),
        ({"limit_bytes": 1}, [5]),
    ],
)
def test_results_are_bounded(limits: dict[str, Any], kept: list[int]) -> None:
    results = RetainedResults(**limits)
    for tensor in range(6):
        results.put(result(tensor, 10, 3))
    assert results.get(6) is None
    for tensor in range(6):
        if tensor in kept:
            assert results.get(tensor) is not None
        else:
            with pytest.raises(ResultForgottenError):
                results.get(tensor)


def test_call_that_reaches_its_own_end_is_refused() -> None:
    loop = EventLoop("test")
    errors: list[PeerError] = []
    receiver: Any = SimpleNamespace(on_closed=lambda _, error: errors.append(error))
    sock = socket.socket()
    sock.bind((LOOPBACK, 0))
    sock.setblocking(False)
    sock.connect_ex(sock.getsockname())  # as when the kernel chooses that port
    loop.run(lambda: Connection(loop, sock, receiver, is_connecting=True) and None)
    wait_until(lambda: errors, "the end")
    assert isinstance(errors[0], PeerUnreachableError)
    loop.stop(lambda: None)


def test_acknowledgements_are_signs_of_life() -> None:
    with closing(socket.create_server((LOOPBACK, 0))) as listener:
        loop = EventLoop("test")
        receiver: Any = SimpleNamespace()
        opened: list[Connection] = []
        address: tuple[str, int] = listener.getsockname()
        loop.run(lambda: opened.append(Connection.open(loop, address, LOOPBACK, receiver)))
        (connection,) = opened
        with closing(listener.accept()[0]):
            wait_until(lambda: not connection._is_opening, "the loop's notice of it")
            wait_until(lambda: time.monotonic() - connection.alive_s > 0.15, "silence")
            moved_s, silent_s = connection.moved_s, connection.alive_s
            loop.run(lambda: connection.send(Frame(FrameKind.HEARTBEAT)))
            # Nobody reads it.
            wait_until(lambda: connection.alive_s > silent_s + 0.1, "receipt")
            assert connection.moved_s == moved_s, "a receipt is no progress"
            loop.run(connection.close)
            assert connection.alive_s < silent_s + 0.1, "the kernel has forgotten the receipt"
        loop.stop(lambda: None)


def test_heartbeats_go_out_while_idle_and_silence_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("switchfold.hostlib.peers.heartbeat.HEARTBEAT_S", 0.05)
    errors: list[PeerError] = []
    receiver: Any = SimpleNamespace(on_closed=lambda _, error: errors.append(error))
    near, far = socket.socketpair()
    loop = EventLoop("test")

    def start() -> None:
        connection = Connection(loop, near, receiver, is_connecting=False)
        Heartbeat(loop, connection, silence_s=0.3)

    with far:
        far.settimeout(60)
        loop.run(start)
        wait_until(lambda: errors, "the end of the silent connection")
        assert isinstance(errors[0], PeerClosedError)
        assert "silent for 0.3 s" in str(errors[0])
        received = b""
        while piece := far.recv(1 << 16):
            received += piece
        heartbeat = Frame(FrameKind.HEARTBEAT).pack()
        count = len(received) // len(heartbeat)
        assert received == count * heartbeat
        assert count > 0
    loop.stop(lambda: None)


def test_small_segments_of_a_large_payload_are_progress_but_wake_nobody() -> None:
    room = bytearray(3 * LOW_WATER_BYTES + 500)
    arrived: list[tuple[int, bytes]] = []

    class Receiver:
        def target(self, connection: Connection, frame: Frame) -> memoryview:
            return memoryview(room)[: frame.payload_bytes]

        def on_frame(self, connection: Connection, frame: Frame, payload: memoryview) -> None:
            arrived.append((wakes[0], bytes(payload)))

        def on_drained(self, connection: Connection) -> None: ...

        def on_closed(self, connection: Connection, error: PeerError) -> None: ...

    wakes = [0]
    with closing(socket.create_server((LOOPBACK, 0))) as listener:
        loop = EventLoop("test")
        opened: list[Connection] = []
        address: tuple[str, int] = listener.getsockname()
        loop.run(lambda: opened.append(Connection.open(loop, address, LOOPBACK, Receiver())))
        (connection,) = opened
        on_ready = connection.on_ready

        def count(events: int) -> None:
            wakes[0] += 1
            on_ready(events)

        connection.on_ready = count
        with closing(listener.accept()[0]) as other:
            payload = bytes(range(256)) * (len(room) // 256)
            short = Frame(FrameKind.LANES, payload_bytes=8)
            other.sendall(Frame(FrameKind.LANES, payload_bytes=len(payload)).pack())
            wait_until(lambda: connection._low_water == LOW_WATER_BYTES, "the header")
            before = wakes[0]
            for start in (0, 1000):
                moved_s = connection.moved_s
                wait_until(lambda since_s=moved_s: time.monotonic() - since_s > 0.1, "silence")
                other.sendall(payload[start : start + 1000])
                # The kernel counts in ticks.
                wait_until(lambda since_s=moved_s: connection.moved_s > since_s + 0.05, "progress")
            assert wakes[0] == before
            # The rest of it wakes the thread at once, and so does what comes behind.
            other.sendall(payload[2000:] + short.pack() + b"12345678")
            wait_until(lambda: len(arrived) == 2, "both frames")
            assert [each for _, each in arrived] == [payload, b"12345678"]
            assert arrived[0][0] <= before + 8
        loop.run(connection.close)
        loop.stop(lambda: None)
