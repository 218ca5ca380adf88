# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sufficient-factor broadcasting: a worker's factors go to all others, over TCP or a switch."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from ..closable import Closable
from ..credentials import Credentials, Role, require_choice
from ..errors import (
    ConfigurationError,
    ExchangeTimeoutError,
    MemberLostError,
    PeerClosedError,
    PeerMismatchError,
    PeerProtocolError,
)
from ..peers import PeerServer
from ..peers.frames import MAX_FACTOR_BYTES, FactorsFrame, Frame, FrameKind
from .block import FactorBlock, FactorPair, Floats
from .mesh import Mesh, out_of_place

MAX_KEY_BYTES = 1024
MAX_EARLY_BYTES = 4 << 30
"""Most bytes that workers may send before this one exchanges the same keys."""
KEPT_NAMES = 1 << 14
"""Finished exchanges that are remembered, to tell repeated factors from early ones."""
_CHECK_S = 0.5
_Name = tuple[str, int]


class AllgatherHandle(Protocol):
    """The future of an allgather."""

    def result(self, timeout_s: float | None = None, /) -> Sequence[NDArray[Any]]:
        """Return the members' arrays in the order of their ids."""
        ...

    def add_done_callback(self, callback: Callable[[Any], None], /) -> None:
        """Call `callback(self)` at the end."""
        ...


class Multicast(Protocol):
    """Brings every worker's int32 array to all workers; a session does."""

    def allgather(self, array: NDArray[Any], /, *, timeout_s: float | None) -> AllgatherHandle:
        """Send an array; all workers call this in the same order. Ends after `timeout_s`."""
        ...


@dataclass(frozen=True, kw_only=True)
class ExchangeOptions:
    """Options of an exchange, the same on all workers."""

    job: int = 1
    token: str = ""
    """Secret that the workers share."""
    credentials: Credentials | None = None
    """Certificate of this worker; None: no TLS, which `insecure` must say, too. It may differ
    between workers."""
    insecure: bool = False
    """Without `credentials`: exchange all the same, without TLS. A warning says so."""
    timeout_s: float = 30.0
    """Limit for an exchange; its error names the missing workers."""
    connect_s: float = 20.0
    """Limit for the connections of all workers."""

    def __post_init__(self) -> None:
        if not (self.timeout_s > 0 and self.connect_s > 0):
            raise ConfigurationError(
                f"timeout {self.timeout_s} s, connect {self.connect_s} s; give positive times"
            )


@final
class FactorExchange(Closable):
    """Exchanges factors by key and iteration; safe from any thread.

    `peers`: (address, port) by worker id. This worker listens at its own entry, or `server` listens
    there already, with credentials of its own; it must be unused, and is closed with the exchange.
    `multicast`: exchange by its `allgather` instead, and `peers` may be empty. Then all workers
    must exchange in the same order, and with the same number of rows if it needs arrays of one
    size.

    `counters`: sent_floats and received_floats are payload; ignored_blocks came twice.
    """

    def __init__(
        self,
        worker_id: int,
        peers: Sequence[tuple[str, int]] = (),
        options: ExchangeOptions | None = None,
        *,
        server: PeerServer | None = None,
        multicast: Multicast | None = None,
    ) -> None:
        self.options = options or ExchangeOptions()
        self.worker_id = worker_id
        self.counters: Counter[str] = Counter()
        self._num_workers = len(peers)
        self._multicast = multicast
        self._lock = threading.Lock()
        self._is_closed = False
        self._open: dict[_Name, _Exchange] = {}
        self._finished: dict[_Name, None] = {}  # the newest
        self._rooms: dict[int, tuple[FactorsFrame, NDArray[np.uint8]]] = {}
        self._early_bytes = 0
        self._mesh: Mesh | None = None
        if multicast is not None:
            return
        if not 0 <= worker_id < len(peers) <= 1 << 15:
            raise ConfigurationError(f"worker {worker_id} of {len(peers)} addresses")
        if server is None:
            address, port = peers[worker_id]
            require_choice(
                self.options.credentials,
                who=f"worker {worker_id}'s exchange of factors",
                role=Role.WORKER,
                options=("ExchangeOptions.credentials", "ExchangeOptions.insecure"),
                insecure=self.options.insecure,
            )
            server = PeerServer(
                address, port, token=self.options.token, credentials=self.options.credentials
            )
        self._loop = server.loop
        self._mesh = Mesh(
            server,
            worker_id,
            peers,
            self,
            connect_s=self.options.connect_s,
            job=self.options.job,
        )
        self._loop.run(self._check_deadlines)
        self._loop.on_failure(self._fail_all)

    def exchange(self, key: str, u: Floats, v: Floats, iteration: int) -> Future[list[FactorPair]]:
        """Send factors u [K, M] and v [K, N]; the future has all factors in worker order.

        The factors are copied. K may differ between workers and may be 0; M and N must be the same.
        An iteration of a key is exchanged once. The future's errors: PeerMismatchError, which names
        worker and key, MemberLostError, ExchangeTimeoutError. Raises ConfigurationError,
        UnsupportedDtypeError, PeerClosedError.
        """
        block = FactorBlock.of(u, v)
        if block.values.nbytes > MAX_FACTOR_BYTES - MAX_KEY_BYTES:
            raise ConfigurationError(f"{block.values.nbytes} bytes of factors are too many")
        if not 0 < len(key.encode()) <= MAX_KEY_BYTES or not 0 <= iteration < 1 << 64:
            raise ConfigurationError(
                f"key {key[:40]!r}, iteration {iteration}; give a name of up to {MAX_KEY_BYTES}"
                " bytes, and count from 0"
            )
        future: Future[list[FactorPair]] = Future()
        future.set_running_or_notify_cancel()  # sent frames cannot be cancelled
        with self._lock:
            if self._is_closed:
                raise PeerClosedError("the exchange of factors is closed")
            if self._multicast is not None:
                handle = self._multicast.allgather(
                    block.with_prefix(key, iteration), timeout_s=self.options.timeout_s
                )
                self.counters["sent_floats"] += block.values.size
                handle.add_done_callback(
                    lambda done: self._take_gathered(done, future, block, key, iteration)
                )
            else:
                self._loop.post(lambda: self._begin((key, iteration), block, future))
        return future

    def close(self) -> None:
        """Close the connections once the last factors have left; open exchanges fail."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        if self._mesh is not None:
            self._mesh.close()
            self._fail_all(PeerClosedError("the exchange of factors is closed"))

    def _fail_all(self, error: PeerClosedError) -> None:
        for exchange in list(self._open.values()):
            exchange.fail(error)

    def _take_gathered(
        self,
        done: AllgatherHandle,
        future: Future[list[FactorPair]],
        own: FactorBlock,
        key: str,
        iteration: int,
    ) -> None:
        try:
            blocks = [FactorBlock.of_prefixed(b, key, iteration) for b in done.result(0)]
            for worker_id, block in enumerate(blocks):
                _check_shapes(worker_id, key, block, own)
        except Exception as error:  # for the caller, who waits for the future
            future.set_exception(error)
            return
        received = sum(block.values.size for block in blocks) - own.values.size
        self.counters["received_floats"] += received
        future.set_result([block.pair() for block in blocks])

    # The methods below run in the loop's thread.

    def _begin(self, name: _Name, block: FactorBlock, future: Future[list[FactorPair]]) -> None:
        assert self._mesh is not None
        key, iteration = name
        exchange = self._open.get(name)
        if name in self._finished or (exchange is not None and exchange.future is not None):
            future.set_exception(
                ConfigurationError(f"key {key!r}, iteration {iteration} was exchanged before")
            )
            return
        if exchange is None:
            exchange = self._open[name] = _Exchange(name, self._num_workers)
        else:
            self._early_bytes -= exchange.num_bytes
        exchange.start(self.worker_id, block, future)
        encoded = key.encode()
        payload = memoryview(block.values.tobytes() + encoded)
        frame = FactorsFrame(
            payload_bytes=payload.nbytes,
            iteration=iteration,
            rows=block.rows,
            u_columns=block.columns[0],
            v_columns=block.columns[1],
            name_bytes=len(encoded),
        )
        for peer in range(self._num_workers):
            if peer != self.worker_id:
                self.counters["sent_floats"] += block.values.size
                self._mesh.send(peer, frame, payload)
        for error in self._mesh.lost.values():
            exchange.lose(error)
        self._finish(exchange)

    def _finish(self, exchange: _Exchange) -> None:
        if exchange.finish():
            del self._open[exchange.name]
            self._finished[exchange.name] = None
            if len(self._finished) > KEPT_NAMES:
                del self._finished[next(iter(self._finished))]

    def _check_deadlines(self) -> None:
        now_s = time.monotonic()
        for exchange in list(self._open.values()):
            exchange.check_deadline(now_s, self.options.timeout_s)
            self._finish(exchange)
        if not self._is_closed:
            self._loop.call_later(_CHECK_S, self._check_deadlines)

    def target(self, worker_id: int, frame: Frame) -> memoryview:
        """Return room for a worker's factors."""
        if frame.kind is not FrameKind.FACTORS:
            raise out_of_place(worker_id, frame)
        factors = FactorsFrame.unpack(frame)
        size = factors.value_bytes + factors.name_bytes
        if factors.payload_bytes != size or not 0 < factors.name_bytes <= MAX_KEY_BYTES:
            raise PeerProtocolError(
                f"{factors.rows} rows of {factors.u_columns} and {factors.v_columns} values in"
                f" {factors.payload_bytes} bytes"
            )
        if self._early_bytes > MAX_EARLY_BYTES:
            raise PeerProtocolError(f"worker {worker_id} is too far ahead")
        room = np.empty(size, np.uint8)
        self._rooms[worker_id] = (factors, room)
        return room.data

    def on_frame(self, worker_id: int, frame: Frame) -> None:
        """Take a worker's factors."""
        factors, room = self._rooms.pop(worker_id)
        end = factors.value_bytes
        name = (bytes(room[end:]).decode(errors="replace"), factors.iteration)
        columns = (factors.u_columns, factors.v_columns)
        block = FactorBlock(room[:end].view(np.float32), factors.rows, columns)
        self.counters["received_floats"] += block.values.size
        exchange = self._open.get(name)
        if name in self._finished or (exchange is not None and worker_id in exchange.blocks):
            self.counters["ignored_blocks"] += 1
            return
        if exchange is None:
            exchange = self._open[name] = _Exchange(name, self._num_workers)
        if exchange.future is None:
            self._early_bytes += block.values.nbytes
        exchange.take(worker_id, block)
        self._finish(exchange)

    def on_lost(self, error: MemberLostError) -> None:
        """Fail the exchanges that wait for a lost worker."""
        for exchange in list(self._open.values()):
            exchange.lose(error)
            self._finish(exchange)


@final
class _Exchange:
    """Blocks of one key and iteration; no future yet: they came early."""

    def __init__(self, name: _Name, num_workers: int) -> None:
        self.name = name
        self.blocks: dict[int, FactorBlock] = {}
        self.future: Future[list[FactorPair]] | None = None
        self.num_bytes = 0
        self._num_workers = num_workers
        self._started_s = 0.0
        self._own: FactorBlock | None = None
        self._error: Exception | None = None

    def start(
        self,
        worker_id: int,
        block: FactorBlock,
        future: Future[list[FactorPair]],
    ) -> None:
        """Add the own block."""
        self.future, self._own = future, block
        self._started_s = time.monotonic()
        for peer, early in self.blocks.items():
            self._check(peer, early)
        self.blocks[worker_id] = block

    def take(self, worker_id: int, block: FactorBlock) -> None:
        """Add another worker's block."""
        self.blocks[worker_id] = block
        self.num_bytes += block.values.nbytes
        self._check(worker_id, block)

    def _check(self, worker_id: int, block: FactorBlock) -> None:
        if self._own is None:
            return
        try:
            _check_shapes(worker_id, self.name[0], block, self._own)
        except PeerMismatchError as error:
            self._error = self._error or error

    def lose(self, error: MemberLostError) -> None:
        """Learn that a worker is lost; this matters only if its block is missing."""
        if error.worker_id not in self.blocks:
            self._error = self._error or error

    def check_deadline(self, now_s: float, timeout_s: float) -> None:
        """Fail if the exchange takes too long."""
        if self.future is not None and now_s - self._started_s > timeout_s:
            missing = [peer for peer in range(self._num_workers) if peer not in self.blocks]
            key, iteration = self.name
            self._error = self._error or ExchangeTimeoutError(
                f"key {key!r}, iteration {iteration}: no factors from worker"
                f" {', '.join(map(str, missing))} in {timeout_s:g} s",
                missing,
            )

    def finish(self) -> bool:
        """End the exchange if it is complete or has failed; return whether it ended."""
        if self.future is None or self.future.done():
            return False
        if self._error is not None:
            self.future.set_exception(self._error)
            return True
        if len(self.blocks) < self._num_workers:
            return False
        self.future.set_result([self.blocks[w].pair() for w in range(self._num_workers)])
        return True

    def fail(self, error: Exception) -> None:
        """End the exchange with an error."""
        if self.future is not None and not self.future.done():
            self.future.set_exception(error)


def _check_shapes(worker_id: int, key: str, block: FactorBlock, own: FactorBlock) -> None:
    if block.columns != own.columns:
        raise PeerMismatchError(
            f"key {key!r}: factors of worker {worker_id} have M, N = {block.columns}, this"
            f" worker's {own.columns}"
        )
