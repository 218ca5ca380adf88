# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The client of a parameter server, for a worker."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from ..closable import Closable
from ..errors import (
    ConfigurationError,
    EmptyTensorError,
    ExchangeTimeoutError,
    PeerClosedError,
    PeerError,
    UnsupportedDtypeError,
)
from ..peers.event_loop import EventLoop
from ..peers.frames import Greeting, Purpose
from ..peers.handshake import PeerCall
from .layout import Pair, PairLayout
from .options import GENERATION, ClientOptions
from .pair_state import Failure
from .rules import Values
from .server import ParameterServer
from .shard_link import LocalShard, RemoteShard, ShardLink
from .transfer import KeyTransfer, Matrix, PullFuture, TransferName, error_of

MAX_BEHIND = 0xFFFF
"""Largest difference between two open iterations of a key."""
_CHECK_S = 0.5


@final
class ParameterClient(Closable):
    """Pushes updates of keys and pulls the servers' answers; safe from any thread.

    `servers`: (address, port) by shard, the same on all workers. `local_server`: the shard of this
    process. Its entry in `servers` is not used, and its pairs never travel on the wire.

    All workers must first use the keys in the same order, or declare them. Arrays must not change
    until their future is done. After an error, the client may still write to the result's memory
    until it is closed. `counters`: sent_floats and received_floats count payload on the wire.
    """

    def __init__(
        self,
        servers: Sequence[tuple[str, int]],
        options: ClientOptions,
        *,
        local_server: ParameterServer | None = None,
    ) -> None:
        local_shard = None if local_server is None else local_server.options.shard
        if local_shard is not None and local_shard >= len(servers):
            raise ConfigurationError(f"local shard {local_shard} of {len(servers)} servers")
        options.require_choice()
        self.options = options
        self.worker_id = options.worker_id
        self.layout = PairLayout(len(servers), pair_bytes=options.pair_bytes)
        """Places of the keys; `declare` adds keys."""
        self.counters: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._last: dict[int, int] = {}
        self._is_closed = False
        self._open: dict[TransferName, KeyTransfer] = {}
        self._owns_loop = local_server is None
        self._loop = (
            EventLoop("switchfold-parameters") if local_server is None else local_server.loop
        )
        self._shards: list[ShardLink] = []
        self._loop.run(lambda: self._start(servers, local_server))
        self._loop.on_failure(self._end)

    def declare(self, sizes: Mapping[str, int]) -> None:
        """Add keys with their numbers of values, in order. Raises ConfigurationError."""
        with self._lock:
            self.layout.add_all(sizes)

    def push_pull(
        self,
        key: str,
        array: NDArray[np.float32],
        iteration: int,
        out: NDArray[np.float32] | None = None,
    ) -> PullFuture:
        """Send an update of a key, and return at once; the future has the answer, in `out`.

        `array`: contiguous float32 of any shape, which is the result's shape, too; `out` may be
        `array` itself. `iteration` counts from 0 and rises with each update of a key. The future's
        errors: ExchangeTimeoutError and MemberLostError (workers are missing), PeerMismatchError
        (workers disagree), ServerLostError, ServerRestartedError. Raises ConfigurationError and
        TensorError.
        """
        _check(array)
        return self._submit(key, array, iteration, out, shape=array.shape)

    def push_factors(
        self,
        key: str,
        u: NDArray[np.float32],
        v: NDArray[np.float32],
        iteration: int,
        out: NDArray[np.float32] | None = None,
    ) -> PullFuture:
        """Send factors u [K, M] and v [K, N] of the update u^T v, as by `push_pull` of [M, N].

        K may be 0. The key's matrix is on one server, which multiplies for all workers. So workers
        send less, but one machine sends all answers (the strategy of Adam, as a baseline).
        """
        if u.ndim != 2 or v.ndim != 2 or len(u) != len(v) or not (u.shape[1] and v.shape[1]):
            raise ConfigurationError(
                f"factors of shapes {u.shape} and {v.shape}; give [K, M], [K, N]"
            )
        _check_dtype(u)
        _check_dtype(v)
        joined = np.concatenate([u.reshape(-1), v.reshape(-1)])
        matrix = Matrix(len(u), u.shape[1], v.shape[1])
        return self._submit(key, joined, iteration, out, shape=matrix[1:], matrix=matrix)

    def close(self) -> None:
        """Close all connections; open transfers fail with PeerClosedError."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        if self._owns_loop:
            self._loop.stop(self._end)
            return
        try:
            self._loop.run(self._end)
        except PeerClosedError:  # the local server is closed, and its thread with it
            self._end()

    def _submit(
        self,
        key: str,
        source: NDArray[np.float32],
        iteration: int,
        out: NDArray[np.float32] | None,
        *,
        shape: tuple[int, ...],
        matrix: Matrix | None = None,
    ) -> PullFuture:
        if out is None:
            out = np.empty(shape, np.float32)
        else:
            _check(out)
            if out.shape != shape or not out.flags.writeable:
                raise ConfigurationError(
                    f"`out` has the shape {out.shape}, not {shape}, or is read-only"
                )
        with self._lock:
            if self._is_closed:
                raise PeerClosedError("the parameter client is closed")
            number = self.layout.add(key, out.size, is_whole=matrix is not None)
            last = self._last.get(number, -1)
            if not last < iteration <= max(last, 0) + MAX_BEHIND:
                raise ConfigurationError(
                    f"iteration {iteration} of key {key!r} after {last}; iterations rise, by at"
                    f" most {MAX_BEHIND}"
                )
            self._last[number] = iteration
            transfer = KeyTransfer(
                key=self.layout.keys[number],
                iteration=iteration,
                source=source,
                out=out,
                matrix=matrix,
            )
            transfer.deadline_s = time.monotonic() + self.options.timeout_s
            self._loop.post(lambda: self._begin(transfer))
        return transfer.future

    # The methods below run in the loop's thread.

    def _start(
        self, servers: Sequence[tuple[str, int]], local_server: ParameterServer | None
    ) -> None:
        options = self.options
        for shard, address in enumerate(servers):
            if local_server is not None and shard == local_server.options.shard:
                self._shards.append(LocalShard(self, local_server))
                continue
            call = PeerCall(
                address=address,
                source=options.source,
                greeting=Greeting(
                    options.job, GENERATION, self.worker_id, shard, Purpose.PARAMETERS
                ),
                token=options.token,
                credentials=options.credentials,
                server_role=options.server_role,
            )
            self._shards.append(
                RemoteShard(self, self._loop, call, unreachable_s=options.reconnect_s)
            )
        self._check_deadlines()

    def _begin(self, transfer: KeyTransfer) -> None:
        self._open[transfer.name] = transfer
        for shard in sorted({pair.shard for pair in transfer.key.pairs}):
            self._shards[shard].submit(transfer)

    def _end(self, error: PeerClosedError | None = None) -> None:
        for shard in self._shards:
            shard.close()
        for transfer in list(self._open.values()):
            self._fail(transfer, error or PeerClosedError("the parameter client is closed"))

    def _check_deadlines(self) -> None:
        if self._is_closed:
            return
        now_s = time.monotonic()
        for transfer in list(self._open.values()):
            if now_s > transfer.deadline_s:
                shards = sorted({transfer.key.pairs[number].shard for number in transfer.remaining})
                text = (
                    f"key {transfer.key.name!r}, iteration {transfer.iteration}: no answer from"
                    f" server {', '.join(map(str, shards))} in {self.options.timeout_s:g} s"
                )
                self._fail(transfer, ExchangeTimeoutError(text, []))
        self._loop.call_later(_CHECK_S, self._check_deadlines)

    def _fail(self, transfer: KeyTransfer, error: Exception) -> None:
        if self._open.pop(transfer.name, None) is not None:
            transfer.future.set_exception(error)

    def find(self, name: TransferName, pair: int) -> tuple[KeyTransfer, Pair] | None:
        """Return a transfer and its pair if the pair's answer is due."""
        transfer = self._open.get(name)
        if transfer is None or pair not in transfer.remaining:
            return None
        return transfer, transfer.key.pairs[pair]

    def transfers_at(self, shard: int) -> list[KeyTransfer]:
        """Return the transfers with pairs at a shard, oldest first."""
        return [transfer for transfer in self._open.values() if transfer.pairs_of(shard)]

    def open_from(self, transfer: KeyTransfer) -> int:
        """Return the lowest open iteration of the transfer's key."""
        for key, iteration in self._open:
            if key == transfer.key.number:
                return max(iteration, transfer.iteration - MAX_BEHIND)
        return transfer.iteration

    def on_answer(
        self, transfer: KeyTransfer, pair: Pair, values: Values, num_contributors: int
    ) -> None:
        """Take an answer."""
        if transfer.remaining == {pair.number}:
            del self._open[transfer.name]
        transfer.take(pair, values, num_contributors)

    def on_failure(self, name: TransferName | None, failure: Failure) -> None:
        """Fail a transfer; None: all of them."""
        for transfer in list(self._open.values()):
            if name is None or name == transfer.name:
                self._fail(transfer, error_of(failure))

    def on_shard_lost(self, shard: int, error: PeerError) -> None:
        """Fail the transfers that this shard had to answer."""
        for transfer in self.transfers_at(shard):
            self._fail(transfer, error)


def _check_dtype(array: NDArray[np.float32]) -> None:
    if array.dtype != np.float32:
        raise UnsupportedDtypeError(f"{array.dtype} values; parameter servers sum float32")


def _check(array: NDArray[np.float32]) -> None:
    _check_dtype(array)
    if not array.size:
        raise EmptyTensorError("an array without values; leave it out on all workers")
    if not array.flags.c_contiguous:
        raise ConfigurationError("the array is not contiguous; pass numpy.ascontiguousarray of it")
