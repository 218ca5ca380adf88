# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportPrivateUsage=false
from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from loopback import LOOPBACK
from switchfold.hostlib.errors import (
    ConfigurationError,
    ExchangeTimeoutError,
    MemberLostError,
    PeerMismatchError,
    PeerProtocolError,
    PeerRefusedError,
)
from switchfold.hostlib.factors import ExchangeOptions, FactorExchange, FactorPair, rebuild
from switchfold.hostlib.factors.mesh import GENERATION
from switchfold.hostlib.peers import PeerServer
from switchfold.hostlib.peers.connection import KEEPALIVE_S
from switchfold.hostlib.peers.frames import HEADER_BYTES, Frame, FrameKind, Greeting, Purpose

WAIT_S = 60.0
PATIENT: dict[str, Any] = {"connect_s": WAIT_S, "timeout_s": WAIT_S}


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no server hang up on a test that greets late."""
    monkeypatch.setattr("switchfold.hostlib.peers.inbound.GREETING_S", 600.0)


@contextmanager
def mesh(num_workers: int, **options: Any) -> Generator[list[FactorExchange]]:
    token = options.get("token", "")
    servers = [PeerServer(LOOPBACK, token=token) for _ in range(num_workers)]
    peers = [(server.address, server.port) for server in servers]
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                FactorExchange(
                    worker_id, peers, ExchangeOptions(**PATIENT | options), server=server
                )
            )
            for worker_id, server in enumerate(servers)
        ]


def batch_factors(rows: list[int], shape: tuple[int, int], seed: int = 0) -> list[FactorPair]:
    rng = np.random.default_rng(seed)
    return [
        FactorPair(*(rng.standard_normal((k, size), np.float32) for size in shape)) for k in rows
    ]


def exchange_all(
    workers: list[FactorExchange], key: str, factors: list[FactorPair], iteration: int = 0
) -> list[list[FactorPair]]:
    futures = [
        worker.exchange(key, *own, iteration) for worker, own in zip(workers, factors, strict=True)
    ]
    return [future.result(WAIT_S) for future in futures]


@pytest.mark.parametrize(("batch", "floats"), [(4, 2688), (16, 10_752)])
def test_all_workers_rebuild_the_same_gradient(batch: int, floats: int) -> None:
    factors = batch_factors([batch] * 4, (64, 48))
    direct = sum(u.T @ v for u, v in factors)
    with mesh(4, token="secret") as workers:
        gradients = [rebuild(pairs) for pairs in exchange_all(workers, "fc", factors)]
        for worker in workers:
            assert worker.counters["sent_floats"] + worker.counters["received_floats"] == floats
    for gradient in gradients:
        assert gradient.tobytes() == gradients[0].tobytes()
        assert np.abs(gradient - direct).max() < 1e-5 * np.sqrt(batch)


def test_batches_may_differ_and_be_empty() -> None:
    factors = batch_factors([3, 0, 1], (5, 7))
    with mesh(3) as workers:
        for pairs in exchange_all(workers, "head", factors):
            assert [len(u) for u, _ in pairs] == [3, 0, 1]
            np.testing.assert_allclose(rebuild(pairs), sum(u.T @ v for u, v in factors), atol=1e-5)
        empty = exchange_all(workers, "head", batch_factors([0, 0, 0], (5, 7)), 1)
        assert (rebuild(empty[0]) == np.zeros((5, 7))).all()


def test_infinity_and_overflow_are_rebuilt_without_a_warning() -> None:
    u = np.array([[3e38, np.inf], [3e38, -np.inf]], np.float32)
    gradient = rebuild([FactorPair(u, np.ones((2, 1), np.float32))])
    np.testing.assert_array_equal(gradient, np.array([[np.inf], [np.nan]]))


def test_iterations_and_keys_in_any_order() -> None:
    names = [(key, iteration) for key in ("a", "b") for iteration in range(3)]
    factors = {name: batch_factors([2, 2], (3, 4), seed) for seed, name in enumerate(names)}
    with mesh(2) as (one, other):
        futures = {name: one.exchange(name[0], *factors[name][0], name[1]) for name in names}
        for name in reversed(names):
            pairs = other.exchange(name[0], *factors[name][1], name[1]).result(WAIT_S)
            for got in (pairs, futures[name].result(WAIT_S)):
                for have, want in zip(got, factors[name], strict=True):
                    assert (have.u == want.u).all()
                    assert (have.v == want.v).all()


def test_unlike_shapes_name_worker_and_key() -> None:
    with mesh(3) as workers:
        factors = [*batch_factors([2, 2], (64, 48)), *batch_factors([2], (64, 40))]
        futures = [w.exchange("fc7", *own, 0) for w, own in zip(workers, factors, strict=True)]
        for future in futures[:2]:
            with pytest.raises(PeerMismatchError, match=r"'fc7': factors of worker 2 .*40"):
                future.result(WAIT_S)
        with pytest.raises(PeerMismatchError, match=r"of worker [01] .*48"):
            futures[2].result(WAIT_S)


def test_missing_and_dead_workers_are_named() -> None:
    with mesh(3, timeout_s=0.5) as workers:
        factors = batch_factors([2] * 3, (4, 4))
        late = workers[1].exchange("fc", *factors[1], 0)
        with pytest.raises(
            ExchangeTimeoutError, match=r"'fc', iteration 0: .* worker 0, 2"
        ) as caught:
            late.result(60)
        assert caught.value.worker_ids == [0, 2]
        for worker in workers:
            worker.options = replace(worker.options, timeout_s=WAIT_S)
        exchange_all(workers, "fc", factors, 1)
        waiting = workers[0].exchange("fc", *factors[0], 2)
        workers[2].close()
        for future in (waiting, workers[0].exchange("fc", *factors[0], 3)):
            error = future.exception(60)
            assert isinstance(error, MemberLostError)
            assert error.worker_id == 2


@pytest.mark.parametrize("stalled", [0, 1])
def test_a_worker_whose_stream_stalls_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, stalled: int
) -> None:
    # Longer than the interval of the kernel's probes, which go on while all threads pause.
    monkeypatch.setattr("switchfold.hostlib.peers.heartbeat.SILENCE_S", 2.5 * KEEPALIVE_S)
    monkeypatch.setattr("switchfold.hostlib.peers.heartbeat.HEARTBEAT_S", 0.1)
    factors = batch_factors([2] * 2, (4, 4))
    hangs, release = threading.Event(), threading.Event()

    def hang() -> None:
        hangs.set()
        release.wait(WAIT_S)

    with mesh(2) as workers:
        exchange_all(workers, "fc", factors)
        # Neither factors nor heartbeats come, but its kernel acknowledges.
        workers[stalled]._loop.post(hang)
        try:
            assert hangs.wait(WAIT_S)
            futures = [w.exchange("fc", *own, 1) for w, own in zip(workers, factors, strict=True)]
            with pytest.raises(TimeoutError):
                futures[1 - stalled].result(4 * KEEPALIVE_S)
        finally:
            release.set()
        for future in futures:
            assert len(future.result(WAIT_S)) == 2


def test_worker_that_never_comes_or_has_another_secret_is_named() -> None:
    servers = [PeerServer(LOOPBACK, token=token) for token in ("right", "wrong")]
    peers = [(server.address, server.port) for server in servers]
    # Only the worker to which nobody connects has a short limit.
    options = [
        ExchangeOptions(connect_s=connect_s, timeout_s=2 * WAIT_S) for connect_s in (0.3, WAIT_S)
    ]
    with contextlib.ExitStack() as stack:
        workers = [
            stack.enter_context(FactorExchange(i, peers, options[i], server=server))
            for i, server in enumerate(servers)
        ]
        (own,) = batch_factors([1], (2, 2))
        with pytest.raises(MemberLostError, match="worker 0 is lost: wrong secret"):
            workers[1].exchange("fc", *own, 0).result(60)
        with pytest.raises(MemberLostError, match="worker 1 is lost: it did not connect"):
            workers[0].exchange("fc", *own, 0).result(60)


def receive_frame(sock: socket.socket) -> tuple[Frame, bytes]:
    frame = Frame.unpack(memoryview(sock.recv(HEADER_BYTES, socket.MSG_WAITALL)))
    size = frame.payload_bytes
    return frame, sock.recv(size, socket.MSG_WAITALL) if size else b""


def greeted(server: PeerServer, job: int) -> socket.socket:
    """Return worker 1's connection to worker 0, after its WELCOME frame has come."""
    sock = socket.create_connection((server.address, server.port), timeout=WAIT_S)
    _, nonce = receive_frame(sock)
    proof = Greeting(job, GENERATION, 1, 0, Purpose.FACTORS).pack("", nonce)
    sock.sendall(Frame(FrameKind.GREETING, payload_bytes=len(proof)).pack() + proof)
    kind = FrameKind.HEARTBEAT
    while kind is FrameKind.HEARTBEAT:
        frame, payload = receive_frame(sock)
        kind = frame.kind
    if kind is FrameKind.REFUSED:
        sock.close()
        raise PeerRefusedError(payload.decode())
    assert kind is FrameKind.WELCOME
    return sock


@pytest.mark.parametrize("is_known_to_be_over", [False, True])
def test_a_connection_given_up_before_its_welcome_frame_is_no_loss(
    *, is_known_to_be_over: bool
) -> None:
    """The WELCOME frame comes too late for the caller; the connection's end comes soon or never."""
    servers = [PeerServer(LOOPBACK) for _ in range(2)]
    peers = [(server.address, server.port) for server in servers]
    factors = batch_factors([2] * 2, (4, 4))
    with contextlib.ExitStack() as stack:
        options = ExchangeOptions(**PATIENT)
        first = stack.enter_context(FactorExchange(0, peers, options, server=servers[0]))
        waiting = first.exchange("fc", *factors[0], 0)
        sock = stack.enter_context(greeted(servers[0], first.options.job))
        if is_known_to_be_over:
            sock.shutdown(socket.SHUT_WR)
            while header := sock.recv(HEADER_BYTES, socket.MSG_WAITALL):
                # The factors are for the next connection.
                assert Frame.unpack(header).kind is FrameKind.HEARTBEAT
        second = stack.enter_context(FactorExchange(1, peers, options, server=servers[1]))
        for future in (second.exchange("fc", *factors[1], 0), waiting):
            assert len(future.result(WAIT_S)) == 2


def test_a_second_connection_in_use_is_refused() -> None:
    factors = batch_factors([2] * 2, (4, 4))
    with mesh(2) as workers:
        exchange_all(workers, "fc", factors)
        mesh_of_first = workers[0]._mesh
        assert mesh_of_first is not None
        with (
            pytest.raises(PeerRefusedError, match=r"worker 1: .*here already"),
            greeted(mesh_of_first._server, workers[0].options.job),
        ):
            pass
        exchange_all(workers, "fc", factors, 1)


def test_bad_arguments_and_repeated_exchanges_are_refused() -> None:
    with mesh(1) as (worker,):
        u, v = batch_factors([2], (3, 4))[0]
        with pytest.raises(ConfigurationError, match="shapes"):
            worker.exchange("fc", u, v[:1], 0)
        assert len(worker.exchange("fc", u, v, 0).result(WAIT_S)) == 1
        with pytest.raises(ConfigurationError, match="exchanged before"):
            worker.exchange("fc", u, v, 0).result(WAIT_S)


class MulticastSwitch:
    """A switch that multicasts: it returns what all have sent, in the order of their calls."""

    def __init__(self, num_workers: int) -> None:
        self._lock = threading.Lock()
        self._rounds: list[dict[int, tuple[NDArray[Any], Future[Any]]]] = []
        self._calls = [0] * num_workers

    def end(self, worker_id: int) -> MulticastEnd:
        return MulticastEnd(lambda array: self._gather(worker_id, array))

    def _gather(self, worker_id: int, array: NDArray[Any]) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            number = self._calls[worker_id]
            self._calls[worker_id] += 1
            if number == len(self._rounds):
                self._rounds.append({})
            here = self._rounds[number]
            here[worker_id] = (array, future)
        if len(here) == len(self._calls):
            for _, waiting in here.values():
                waiting.set_result([here[w][0].copy() for w in range(len(self._calls))])
        return future


class MulticastEnd:
    def __init__(self, gather: Callable[[NDArray[Any]], Future[Any]]) -> None:
        self._gather = gather
        self.timeouts_s: list[float | None] = []

    def allgather(self, array: NDArray[Any], /, *, timeout_s: float | None) -> Future[Any]:
        self.timeouts_s.append(timeout_s)
        return self._gather(array)


def test_a_switch_may_multicast_the_factors() -> None:
    switch = MulticastSwitch(4)
    ends = [switch.end(w) for w in range(4)]
    options = ExchangeOptions(timeout_s=7.0)
    workers = [FactorExchange(w, (), options, multicast=end) for w, end in enumerate(ends)]
    factors = batch_factors([4] * 4, (64, 48))
    for pairs in exchange_all(workers, "fc", factors):
        for have, want in zip(pairs, factors, strict=True):
            assert have.u.tobytes() == want.u.tobytes()
            assert have.v.tobytes() == want.v.tobytes()
    for worker in workers:
        assert worker.counters["sent_floats"] + worker.counters["received_floats"] == 1792
    # The exchange's own time-out holds, not that of the session.
    assert [end.timeouts_s for end in ends] == [[7.0]] * 4
    # Workers that exchange in different orders find out.
    futures = [
        worker.exchange(f"fc{w % 2}", *own, 1)
        for w, (worker, own) in enumerate(zip(workers, factors, strict=True))
    ]
    for future in futures:
        with pytest.raises(PeerProtocolError, match="in the same order"):
            future.result(WAIT_S)
