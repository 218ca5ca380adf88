# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Channels of syncers: one per scheme, each with the same three steps.

`send` returns at once. The reception's `wait` blocks until everything has arrived. Its `mean`
returns the gradient, the mean over the workers that contributed.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import ConfigurationError
from ...factors import FactorExchange, FactorPair, rebuild
from ...future import AllreduceFuture
from ...parameter_server import ParameterClient, PullFuture
from ...schemes import Scheme
from ...session import Session
from ..bounded_loss import BoundedSum
from ..hybrid.switch_losses import SwitchLosses

USED_KEY = "(used parameters)"
"""Key of the flags of the parameters that a rank has used."""
Values = NDArray[Any]
"""float32, or float64 if the channel takes it."""


class Mean(NamedTuple):
    """A mean gradient."""

    values: Values
    """The sent shape, or (M, N) for factors. No other code writes to this array."""
    num_contributors: int
    """Least number of workers in any part of it."""


class Reception(Protocol):
    """The answer to one gradient of one iteration."""

    def wait(self, timeout_s: float) -> None:
        """Block until everything has arrived; raise the channel's error, or TimeoutError."""
        ...

    def mean(self) -> Mean:
        """Return the mean gradient; call it after `wait`."""
        ...


class SchemeChannel(Protocol):
    """Sends gradients to the other workers by one scheme."""

    @property
    def scheme(self) -> Scheme:
        """The scheme."""
        ...

    @property
    def is_ordered(self) -> bool:
        """Whether all workers must send in the same order."""
        ...


class DenseChannel(SchemeChannel, Protocol):
    """Sends gradients themselves."""

    @property
    def takes_float64(self) -> bool:
        """Whether float64 is sent as float64; otherwise as float32."""
        ...

    def send(self, key: str, values: Values, iteration: int) -> Reception:
        """Send a flat gradient, which must not change until its reception is complete."""
        ...


class FactorChannel(SchemeChannel, Protocol):
    """Sends factors u (K, M) and v (K, N), float32; K may differ between workers and may be 0."""

    def send(self, key: str, u: Values, v: Values, iteration: int) -> Reception:
        """Send the factors, which must not change until their reception is complete."""
        ...


class FlagChannel(SchemeChannel, Protocol):
    """Combines the flags of all workers."""

    def poll(self, flags: Values, iteration: int) -> Reception:
        """Send int32 flags of 0 and 1; the mean is not 0 where any worker has set the flag.

        They must not change until the reception is complete.
        """
        ...


class SwitchChannel:
    """In-network aggregation: each chunk's mean is over the workers that contributed to it."""

    scheme = Scheme.INA
    is_ordered = True
    takes_float64 = True

    def __init__(
        self,
        session: Session,
        timeout_s: float,
        losses: SwitchLosses,
        priorities: Mapping[str, int] | None = None,
    ) -> None:
        """`priorities`: of gradients, by key, which may change; others have 0."""
        self._priorities: Mapping[str, int] = {} if priorities is None else priorities
        self._session = session
        self._timeout_s = timeout_s
        self._losses = losses

    def send(self, key: str, values: Values, iteration: int) -> Reception:
        """Submit an allreduce; returns at once."""
        bounded = self._losses.bounded(key)
        # Not-a-number is passed on, as by other backends: loss scalers look for it.
        future = self._session.allreduce(
            bounded.contribution(values),
            "mean",
            precision="block",
            timeout_s=self._timeout_s,
            nonfinite="propagate",
            tolerance=bounded.tolerance,
            priority=self._priorities.get(key, 0),
            large_first=bounded.large_first,
        )
        return _SwitchReception(future, bounded)

    def poll(self, flags: Values, iteration: int) -> Reception:
        """Submit the flags as integers, which need no exponents."""
        tolerance = self._losses.of_others
        future = self._session.allreduce(flags, timeout_s=self._timeout_s, tolerance=tolerance)
        return _SwitchReception(future)


class _SwitchReception:
    def __init__(self, future: AllreduceFuture, bounded: BoundedSum | None = None) -> None:
        self._future = future
        self._bounded = bounded

    def wait(self, timeout_s: float) -> None:
        self._future.result(timeout_s)

    def mean(self) -> Mean:
        """Return the mean, with its gaps filled; called once."""
        values, delivery = self._future.result(0), self._future.delivery
        if self._bounded is not None:
            self._bounded.complete(values, delivery, "mean")
        return Mean(values, self._future.num_contributors)


class ServerChannel:
    """Parameter servers: the gradient is pushed in KV pairs; each pair's mean comes back."""

    scheme = Scheme.PS
    is_ordered = False
    takes_float64 = False

    def __init__(self, client: ParameterClient) -> None:
        self._client = client
        self._buffers: dict[str, Values] = {}

    def send(self, key: str, values: Values, iteration: int) -> Reception:
        """Push the gradient; returns at once."""
        # New memory costs a page fault per 4 KiB, which takes longer than the copy.
        buffer = self._buffers.get(key)
        if buffer is None:
            buffer = self._buffers[key] = np.empty_like(values)
        return _ServerReception(self._client.push_pull(key, values, iteration, buffer))

    def poll(self, flags: Values, iteration: int) -> Reception:
        """Push the flags as a key of their own."""
        return self.send(USED_KEY, flags.astype(np.float32), iteration)


class AdamChannel:
    """Factors go to the one server that owns the matrix; the mean of the products comes back."""

    scheme = Scheme.ADAM
    is_ordered = False

    def __init__(self, client: ParameterClient) -> None:
        self._client = client

    def send(self, key: str, u: Values, v: Values, iteration: int) -> Reception:
        """Push the factors; returns at once."""
        if not len(u):  # this rank did not use the layer: one row of zeros
            u, v = (np.zeros((1, part.shape[1]), np.float32) for part in (u, v))
        return _ServerReception(self._client.push_factors(key, u, v, iteration))


class BroadcastChannel:
    """Sufficient-factor broadcasting: all ranks exchange factors and rebuild the gradient.

    With `rows`, the rows of each block by key, the switch multicasts the factors. Then all ranks
    send in the same order and equally many rows: shorter blocks are padded with rows of zeros.
    """

    scheme = Scheme.SFB

    def __init__(self, exchange: FactorExchange, rows: Mapping[str, int] | None = None) -> None:
        self._exchange = exchange
        self._rows = rows
        self.is_ordered = rows is not None

    def send(self, key: str, u: Values, v: Values, iteration: int) -> Reception:
        """Send the factors to all ranks; returns at once."""
        if self._rows is not None:
            u, v = (self._padded(key, part) for part in (u, v))
        return _FactorReception(self._exchange.exchange(key, u, v, iteration))

    def poll(self, flags: Values, iteration: int) -> Reception:
        """Send the flags as factors of a matrix with one column."""
        u, v = flags.astype(np.float32)[None], np.ones((1, 1), np.float32)
        return _FactorReception(self._exchange.exchange(USED_KEY, u, v, iteration))

    def _padded(self, key: str, part: Values) -> Values:
        assert self._rows is not None
        missing = self._rows[key] - len(part)
        if missing < 0:
            raise ConfigurationError(
                f"{len(part)} rows of factors, but the blocks that the switch multicasts have only"
                f" {self._rows[key]}; pass the most rows of an iteration as batch, or leave out"
                " multicast"
            )
        return np.concatenate([part, np.zeros((missing, part.shape[1]), np.float32)])


class _FactorReception:
    def __init__(self, future: Future[list[FactorPair]]) -> None:
        self._future = future

    def wait(self, timeout_s: float) -> None:
        _wait(self._future, timeout_s, "factors of all ranks")

    def mean(self) -> Mean:
        pairs = self._future.result(0)
        total = rebuild(pairs)
        return Mean(np.divide(total, np.float32(len(pairs)), out=total), len(pairs))


def _wait(future: Future[Any], timeout_s: float, what: str) -> None:
    try:
        future.result(timeout_s)
    except TimeoutError as error:
        if future.done():  # the channel's own error, which is more precise
            raise
        raise TimeoutError(f"no {what} in {timeout_s:.1f} s") from error


class _ServerReception:
    def __init__(self, future: PullFuture) -> None:
        self._future = future

    def wait(self, timeout_s: float) -> None:
        _wait(self._future, timeout_s, "answer of the parameter servers")

    def mean(self) -> Mean:
        return Mean(self._future.result(0), self._future.num_contributors)
