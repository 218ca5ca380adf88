# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What syncers send by: a channel per scheme, each with the same three steps.

`send` returns at once; the reception's `wait` blocks until all is in; its `mean` makes the
gradient of it: the mean over the workers that contributed.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from hostlib.future import AllreduceFuture
from hostlib.schemes import Scheme
from hostlib.session import Session

Values = NDArray[Any]
"""float32, or float64 where the channel takes it."""


class Mean(NamedTuple):
    """A mean gradient."""

    values: Values
    """Of the shape that was sent, (M, N) for factors. Nobody else writes to it."""
    num_contributors: int
    """Fewest workers that any part of it holds."""


class Reception(Protocol):
    """What comes back for one gradient of one iteration."""

    def wait(self, timeout_s: float) -> None:
        """Block until all is in; raises what went wrong, or TimeoutError."""
        ...

    def mean(self) -> Mean:
        """Return the mean gradient; may be called after `wait`."""
        ...


class Channel(Protocol):
    """One scheme's way to the other workers."""

    @property
    def scheme(self) -> Scheme:
        """The scheme."""
        ...

    @property
    def is_ordered(self) -> bool:
        """Whether all workers must send in the same order."""
        ...


class DenseChannel(Channel, Protocol):
    """Takes gradients as they are."""

    @property
    def takes_float64(self) -> bool:
        """Whether float64 travels as such; else as float32."""
        ...

    def send(self, key: str, values: Values, iteration: int) -> Reception:
        """Send a flat gradient, which must not change until its reception is in."""
        ...


class FactorChannel(Channel, Protocol):
    """Takes factors u (K, M) and v (K, N), float32; K may differ between workers, and be 0."""

    def send(self, key: str, u: Values, v: Values, iteration: int) -> Reception:
        """Send the factors, which must not change until their reception is in."""
        ...


class SwitchChannel:
    """In-network aggregation: the session sums, each chunk's mean is over its contributors."""

    scheme = Scheme.INA
    is_ordered = True
    takes_float64 = True

    def __init__(self, session: Session, timeout_s: float) -> None:
        self._session = session
        self._timeout_s = timeout_s

    def send(self, key: str, values: Values, iteration: int) -> Reception:
        """Submit an allreduce; returns at once."""
        # Not-a-number travels, as with other backends: loss scalers look for it.
        return _SwitchReception(
            self._session.allreduce(
                values, "mean", timeout_s=self._timeout_s, nonfinite="propagate"
            )
        )


class _SwitchReception:
    def __init__(self, future: AllreduceFuture) -> None:
        self._future = future

    def wait(self, timeout_s: float) -> None:
        self._future.result(timeout_s)

    def mean(self) -> Mean:
        return Mean(self._future.result(0), self._future.num_contributors)
