# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Results of completed tensors, kept for members that may not have them."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigurationError, PeerProtocolError, ResultForgottenError

DEFAULT_LIMIT_BYTES = 256 << 20
MAX_DIMENSIONS = 64
ALLGATHER = "allgather"
"""Operation of results whose values are all members' blocks, one after the other."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RetainedResult:
    """The integers that the workers agreed on for one tensor, before they became its values."""

    tensor: int
    """Tensor number, from 0 per job."""
    generation: int
    """View that completed it."""
    members: tuple[int, ...]
    """Worker ids of that view."""
    dtype: str
    shape: tuple[int, ...]
    operation: str
    """The caller's choice, "sum" or "mean"; or ALLGATHER."""
    precision: str = "exact"
    """How floats became integers: limbs ("exact"), or values with exponents ("block")."""
    values: NDArray[np.int32]
    """Sums, int32 of either byte order, one dimension; empty if an error took their place."""
    exponents: NDArray[np.int32]
    """Agreed before the sums, native int32: the exponent of each chunk, or ranges of bits."""
    contributors: NDArray[np.uint16]
    """Contributors of each chunk, native uint16."""
    bitmaps: NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, np.uint32))
    """Workers in each chunk, native uint32; empty if that is not known."""
    num_contributors: int
    """Fewest contributors of any chunk, exponents included."""
    has_saturated: bool = False

    @property
    def num_chunks(self) -> int:
        """Number of chunks that count towards the limit of the store."""
        return max(1, len(self.contributors))

    @property
    def num_bytes(self) -> int:
        """Bytes of memory that it takes."""
        small = self.exponents.nbytes + self.contributors.nbytes + self.bitmaps.nbytes
        return self.values.nbytes + small

    def description(self) -> bytes:
        """Return everything except the arrays' contents, as JSON."""
        return json.dumps(
            {
                "tensor": self.tensor,
                "generation": self.generation,
                "members": self.members,
                "dtype": self.dtype,
                "shape": self.shape,
                "operation": self.operation,
                "precision": self.precision,
                "lanes": len(self.values),
                "exponents": len(self.exponents),
                "contributors": len(self.contributors),
                "bitmaps": len(self.bitmaps),
                "num_contributors": self.num_contributors,
                "has_saturated": self.has_saturated,
            }
        ).encode()

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Return the arrays in the order in which they travel, in native byte order."""
        values = self.values.astype(np.int32, copy=False)
        return values, self.exponents, self.contributors, self.bitmaps


def describe_result(description: bytes, limit_bytes: int) -> RetainedResult:
    """Return the result that another worker describes in JSON, with its arrays not filled yet.

    Raises PeerProtocolError when it is malformed, or needs more than `limit_bytes`.
    """
    try:
        fields: dict[str, Any] = json.loads(description)
        names = ("lanes", "exponents", "contributors", "bitmaps")
        sizes = [_number(fields[name]) for name in names]
        num_bytes = 4 * sizes[0] + 4 * sizes[1] + 2 * sizes[2] + 4 * sizes[3]
        if num_bytes > limit_bytes:
            raise PeerProtocolError(
                f"a result of {num_bytes} bytes; at most {limit_bytes} are allowed"
            )
        return RetainedResult(
            tensor=_number(fields["tensor"]),
            generation=_number(fields["generation"]),
            members=tuple(_number(member) for member in fields["members"]),
            dtype=np.dtype(str(fields["dtype"])).name,
            shape=tuple(_number(size) for size in fields["shape"][:MAX_DIMENSIONS]),
            operation=str(fields["operation"]),
            precision=str(fields["precision"]),
            values=np.empty(sizes[0], np.int32),
            exponents=np.empty(sizes[1], np.int32),
            contributors=np.empty(sizes[2], np.uint16),
            bitmaps=np.empty(sizes[3], np.uint32),
            num_contributors=_number(fields["num_contributors"]),
            has_saturated=bool(fields["has_saturated"]),
        )
    except (ValueError, TypeError, KeyError, RecursionError, MemoryError) as error:
        raise PeerProtocolError(f"malformed description of a result: {error!r}") from error


def _number(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is not a size")
    return value


class RetainedResults:
    """A bounded store of the newest results; all methods may be called from any thread.

    A result is forgotten when the chunks of later results reach `limit_chunks`, or when all results
    together take more than `limit_bytes`; None: no such limit. The newest is always kept.
    """

    def __init__(
        self, *, limit_chunks: int | None = None, limit_bytes: int | None = DEFAULT_LIMIT_BYTES
    ) -> None:
        self._lock = threading.Lock()
        self._results: OrderedDict[int, RetainedResult] = OrderedDict()
        self._num_bytes = 0
        self._num_chunks = 0
        self._end = 0
        self._on_put: Callable[[], None] | None = None
        self._limit_chunks = limit_chunks
        self._limit_bytes = limit_bytes
        self.gathered_limit_bytes = DEFAULT_LIMIT_BYTES
        """Most memory for results of allgathers; the limit of chunks fits only sums."""
        self._gathered: deque[int] = deque()

    def set_limits(self, *, limit_chunks: int | None, limit_bytes: int | None) -> None:
        """Change the limits, as a new view may have another number of slots."""
        with self._lock:
            self._limit_chunks = limit_chunks
            self._limit_bytes = limit_bytes
            self._trim()

    def put(self, result: RetainedResult) -> None:
        """Keep a result. Tensors complete in order, so their numbers must rise."""
        with self._lock:
            if result.tensor < self._end:
                raise ConfigurationError(
                    f"result of tensor {result.tensor} after that of {self._end - 1};"
                    " tensors complete in order"
                )
            self._results[result.tensor] = result
            self._end = result.tensor + 1
            self._num_bytes += result.num_bytes
            self._num_chunks += result.num_chunks
            if result.operation == ALLGATHER:
                self._gathered.append(result.tensor)
                self._trim_gathered()
            self._trim()
            on_put = self._on_put
        if on_put is not None:
            on_put()

    def get(self, tensor: int) -> RetainedResult | None:
        """Return a result, or None if it is not complete yet.

        Raises ResultForgottenError.
        """
        with self._lock:
            result = self._results.get(tensor)
            if result is None and tensor < self._end:
                raise ResultForgottenError(
                    f"tensor {tensor} is forgotten; the newest result is that of {self._end - 1}"
                )
            return result

    def forget(self, tensor: int) -> None:
        """Forget the results of all tensors below `tensor`."""
        with self._lock:
            while self._results and next(iter(self._results)) < tensor:
                self._forget_oldest()

    def on_put(self, callback: Callable[[], None]) -> None:
        """Call `callback` after every put, in the thread that puts."""
        self._on_put = callback

    def _trim(self) -> None:
        while len(self._results) > 1 and self._is_over():
            self._forget_oldest()

    def _trim_gathered(self) -> None:
        kept = [self._results[tensor] for tensor in self._gathered if tensor in self._results]
        num_bytes = sum(result.num_bytes for result in kept)
        for result in kept[:-1]:
            if num_bytes <= self.gathered_limit_bytes:
                break
            num_bytes -= result.num_bytes
            self._forget(result)
        self._gathered = deque(r.tensor for r in kept if r.tensor in self._results)

    def _is_over(self) -> bool:
        if self._limit_bytes is not None and self._num_bytes > self._limit_bytes:
            return True
        if self._limit_chunks is None:
            return False
        oldest = next(iter(self._results.values()))
        return self._num_chunks - oldest.num_chunks >= self._limit_chunks

    def _forget_oldest(self) -> None:
        self._forget(next(iter(self._results.values())))

    def _forget(self, result: RetainedResult) -> None:
        del self._results[result.tensor]
        self._num_bytes -= result.num_bytes
        self._num_chunks -= result.num_chunks
