# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors cut into chunks: what a stream sends for them and what it does with the results."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..native.structures import ExactStruct, ToleranceStruct
from ..tracing.transfer_times import TransferTimes
from .quantization import (
    NONFINITE_EXPONENT,
    chunk_exponents,
    scales,
)

BLOCK_CHUNKS = 64
"""Most chunks that Python fills at once: enough to amortise numpy calls, few enough for cache."""
EXPONENT_CHUNKS = 256
"""Chunks whose exponents are computed at once: there is no scratch memory to keep in cache."""

Lanes = NDArray[np.int32]
"""Big-endian int32, shape (count, values_per_packet)."""
Empty = Callable[[tuple[int, ...], DTypeLike], NDArray[Any]]
"""Makes an array of a shape and dtype, as numpy.empty does."""
Describe = Callable[[NDArray[Any]], NDArray[np.int32]]
"""Returns the lanes that the workers agree on for chunks of shape (count, values)."""


class ValueKind(enum.IntEnum):
    """`values_t` of hostlib/native/slots/source.h: how numbers become values of the wire."""

    INT32 = 0
    FLOAT16 = 1
    FLOAT32 = 2
    FLOAT64 = 3
    READY = 4
    """`fill` prepares the values; the results stay integers."""
    LIMBS = 5
    INT32_REVERSED = 6
    """Smaller numbers are larger values, as in the next but one: for minima."""
    FLOAT32_ORDERED = 7
    """The values are in the order of the numbers: for maxima. Those of INT32 are anyway."""
    FLOAT32_REVERSED = 8


@dataclass(frozen=True, kw_only=True)
class WireValues:
    """The arrays between which the C library and a tensor's owner move values; all contiguous."""

    kind: ValueKind
    data: NDArray[Any]
    """The tensor's numbers in a row; or for READY rows of values, shape (num_chunks, values)."""
    forward: NDArray[Any] | None = None
    backward: NDArray[Any] | None = None
    """Factors by chunk, in the dtype that the kind computes in."""
    exponents: NDArray[np.uint8] | None = None
    """The header's exponent field by chunk."""
    output: NDArray[Any] | None = None
    """Shape (num_chunks, values), in the tensor's dtype."""
    results: Lanes | None = None
    """Where results are kept as they came, if they are."""
    exact: ExactStruct | None = None
    """The limbs of numbers, for LIMBS."""
    is_mean: bool = False
    fill: Callable[[int, NDArray[np.int32]], None] | None = None
    """For READY: writes the values of the chunks from that one on."""


class ChunkSource(Protocol):
    """One tensor as a slot stream sees it."""

    tensor_id: int
    num_elements: int
    num_chunks: int
    results: Lanes
    """Where the stream stores result lanes, one row per chunk; in native order after `keep`."""
    contributors: NDArray[np.uint16]
    """Where the stream stores the number of contributors of each chunk."""
    has_saturated: bool
    """Whether any result carried the OVERFLOW flag."""
    is_plain: bool
    """Whether the workers agree on nothing before."""
    is_maximum: bool
    """Whether the results are the largest values, instead of the sums."""
    withheld: NDArray[np.bool_] | None
    """Chunks that this worker does not contribute to, though it takes their results."""
    has_missed: bool
    """Whether a chunk has no result, as the switch no longer had it for this worker."""
    bitmaps: NDArray[np.uint32] | None
    """Where the stream stores which workers are in each chunk's result; None: not wanted."""
    tolerance: ToleranceStruct | None
    """What the results may lack; None: nothing."""
    may_lose: int
    """How many results this worker may do without; the chunks then have no contributors."""
    priority: int
    """The switches' queue for its packets."""
    large: NDArray[np.bool_] | None
    """Chunks of large values: nothing of them is let go. None: there are none."""
    large_priority: int
    """The queue for packets of these."""
    times: TransferTimes
    """Where streams stamp the first packet and the last result."""

    def wire_values(self) -> WireValues:
        """Return the arrays that the C library works on, which must stay until it is done."""
        ...

    def keep(self, lanes: NDArray[np.int32], contributors: NDArray[np.uint16]) -> None:
        """Have the results in these lanes from now on, in native order: (num_chunks, values)."""
        ...


def flat_chunks(
    flat: NDArray[Any], values_per_packet: int
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Cut a flat array into (whole chunks as a view, zero-padded last chunk or None)."""
    whole = len(flat) // values_per_packet
    body = flat[: whole * values_per_packet].reshape(whole, values_per_packet)
    rest = flat[whole * values_per_packet :]
    if not len(rest):
        return body, None
    tail = np.zeros((1, values_per_packet), flat.dtype)
    tail[0, : len(rest)] = rest
    return body, tail


class TensorChunks:
    """The chunks of a flat array, with block access that hides the padded last chunk."""

    def __init__(self, flat: NDArray[Any], values_per_packet: int) -> None:
        self._body, self._tail = flat_chunks(flat, values_per_packet)
        self.num_chunks = len(self._body) + (self._tail is not None)

    def block(self, first: int, end: int) -> list[tuple[int, NDArray[Any]]]:
        """Return [(row offset, chunks)] covering chunks first..end."""
        whole = len(self._body)
        parts: list[tuple[int, NDArray[Any]]] = []
        if first < whole:
            parts.append((0, self._body[first : min(end, whole)]))
        if end > whole:
            assert self._tail is not None
            parts.append((whole - first, self._tail))
        return parts


class ExponentSource:
    """What workers agree on first for a float tensor: int32 lanes per chunk, maximised."""

    is_maximum = True
    has_missed = False
    bitmaps: NDArray[np.uint32] | None = None
    tolerance: ToleranceStruct | None = None
    may_lose: int = 0
    priority: int = 0
    large: NDArray[np.bool_] | None = None
    large_priority: int = 0

    def __init__(
        self,
        tensor_id: int,
        chunks: TensorChunks,
        values_per_packet: int,
        *,
        describe: Describe = chunk_exponents,
        lanes_per_chunk: int = 1,
        chunks_at_once: int = EXPONENT_CHUNKS,
    ) -> None:
        self.tensor_id = tensor_id
        self.num_elements = chunks.num_chunks * lanes_per_chunk
        self.num_chunks = -(-self.num_elements // values_per_packet)
        self.results = np.empty((self.num_chunks, values_per_packet), ">i4")
        self.contributors = np.zeros(self.num_chunks, np.uint16)
        self.has_saturated = False
        self.is_plain = False
        self.times = TransferTimes()
        self.withheld: NDArray[np.bool_] | None = None
        self._chunks = chunks
        self._values = values_per_packet
        self._describe = describe
        self._at_once = chunks_at_once
        self._own = np.empty((chunks.num_chunks, lanes_per_chunk), np.int32)

    def fill(self, first: int, lanes: Lanes) -> None:
        """Compute the lanes of the data chunks that these rows stand for."""
        lanes[...] = 0
        per_chunk = self._own.shape[1]
        flat = self._own.reshape(-1)
        for row in range(len(lanes)):
            start = (first + row) * self._values
            end = min(start + self._values, self.num_elements)
            last = -(-end // per_chunk)
            for block in range(start // per_chunk, last, self._at_once):
                block_end = min(block + self._at_once, last)
                for offset, chunks in self._chunks.block(block, block_end):
                    place = block + offset
                    described = self._describe(chunks).reshape(len(chunks), per_chunk)
                    self._own[place : place + len(chunks)] = described
            lanes[row, : end - start] = flat[start:end]

    def wire_values(self) -> WireValues:
        """Return rows that `fill` fills."""
        return WireValues(
            kind=ValueKind.READY,
            data=np.empty_like(self.results),
            results=self.results,
            fill=self.fill,
        )

    def keep(self, lanes: NDArray[np.int32], contributors: NDArray[np.uint16]) -> None:
        """Have the maxima in these lanes."""
        self.results = lanes
        self.contributors[...] = contributors

    def agreed(self) -> NDArray[np.int32]:
        """Return the agreed lanes of the data chunks in a row, once all results are there."""
        return self.results.reshape(-1)[: self.num_elements].astype(np.int32)

    def outliers(self, agreed: NDArray[np.int32]) -> NDArray[np.bool_] | None:
        """Return the data chunks whose values here exceed what was agreed on without this worker.

        None where there are none. Only if not all workers are waited for can there be any.
        """
        is_above = self._own > agreed.reshape(self._own.shape)
        is_outlier: NDArray[np.bool_] = np.logical_or.reduce(is_above, axis=1)
        return is_outlier if is_outlier.any() else None


@dataclass(frozen=True, kw_only=True)
class Summand:
    """What a worker adds to one sum, and what it does with the result."""

    tensor_id: int
    """The tensor's id in headers."""
    flat: NDArray[Any]
    """The values, one dimension."""
    is_mean: bool = False
    """The result is the sum divided by the number of contributors."""
    retains: bool = False
    """The sums are kept for other workers, apart from the output, which is the user's."""
    empty: Empty = np.empty
    """Makes the arrays of results."""


class IntegerSource:
    """An int32 tensor, sent as it is."""

    is_maximum = False
    has_missed = False
    bitmaps: NDArray[np.uint32] | None = None
    tolerance: ToleranceStruct | None = None
    may_lose: int = 0
    priority: int = 0
    large: NDArray[np.bool_] | None = None
    large_priority: int = 0

    def __init__(self, summand: Summand, values_per_packet: int) -> None:
        self._flat = summand.flat
        self._retains = summand.retains
        self.tensor_id = summand.tensor_id
        self.num_elements = len(summand.flat)
        self.num_chunks = -(-len(summand.flat) // values_per_packet)
        shape = (self.num_chunks, values_per_packet)
        self.output: NDArray[Any] = summand.empty(shape, np.int32)
        self.results: Lanes = self.output.view(">i4")
        if summand.retains:
            self.results = summand.empty(shape, ">i4")
        self.contributors = np.zeros(self.num_chunks, np.uint16)
        self.has_saturated = False
        self.is_plain = True
        self.times = TransferTimes()
        self.withheld: NDArray[np.bool_] | None = None

    def wire_values(self) -> WireValues:
        """Return the tensor and its sums."""
        return WireValues(
            kind=ValueKind.INT32,
            data=self._flat,
            output=self.output,
            results=self.results if self._retains else None,
        )

    def keep(self, lanes: NDArray[np.int32], contributors: NDArray[np.uint16]) -> None:
        """Have the sums in these lanes."""
        self.results = lanes
        self.contributors[...] = contributors


class FloatSource:
    """A float tensor with agreed exponents."""

    is_maximum = False
    has_missed = False
    bitmaps: NDArray[np.uint32] | None = None
    tolerance: ToleranceStruct | None = None
    may_lose: int = 0
    priority: int = 0
    large: NDArray[np.bool_] | None = None
    large_priority: int = 0

    def __init__(
        self,
        summand: Summand,
        exponents: NDArray[np.int32],
        values_per_packet: int,
        *,
        num_workers: int,
        withheld: NDArray[np.bool_] | None = None,
    ) -> None:
        flat = summand.flat
        self.tensor_id = summand.tensor_id
        self.num_elements = len(flat)
        self.num_chunks = -(-len(flat) // values_per_packet)
        shape = (self.num_chunks, values_per_packet)
        self.output: NDArray[Any] = summand.empty(shape, flat.dtype)
        if summand.retains or flat.dtype.itemsize != 4:
            self.results: Lanes = summand.empty(shape, ">i4")
        else:
            self.results = self.output.view(">i4")
        self.contributors = np.zeros(self.num_chunks, np.uint16)
        self.has_saturated = False
        self.is_plain = False
        self.times = TransferTimes()
        self.withheld = withheld
        self._flat = flat
        self._retains = summand.retains
        self._is_mean = summand.is_mean
        self._forward, self._backward, self._biased = scales(exponents, num_workers, flat.dtype)
        if withheld is not None:
            self._forward[withheld] = 0  # these values would not fit; zeros are not sent either

    @staticmethod
    def nonfinite_ranges(
        exponents: NDArray[np.int32], values_per_packet: int, num_elements: int
    ) -> list[tuple[int, int]]:
        """Return the element ranges of the chunks that are not finite on some worker."""
        if np.maximum.reduce(exponents) != NONFINITE_EXPONENT:
            return []
        places = np.flatnonzero(exponents == NONFINITE_EXPONENT)
        starts = (places * values_per_packet).tolist()
        return [(start, min(start + values_per_packet, num_elements)) for start in starts]

    def wire_values(self) -> WireValues:
        """Return the tensor, its factors and its sums."""
        return WireValues(
            kind=ValueKind[self._flat.dtype.name.upper()],
            data=self._flat,
            forward=self._forward,
            backward=self._backward,
            exponents=self._biased,
            output=self.output,
            results=self.results if self._retains else None,
            is_mean=self._is_mean,
        )

    def keep(self, lanes: NDArray[np.int32], contributors: NDArray[np.uint16]) -> None:
        """Have the sums in these lanes, which must not lie where the output goes."""
        self.contributors[...] = contributors
        self.results = lanes
