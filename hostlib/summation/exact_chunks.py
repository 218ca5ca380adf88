# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A float tensor that is summed exactly: its groups of values, cut into chunks of limbs.

A chunk holds all limbs of the values in it, limb by limb, so that all limbs of a value have the
same contributors. Groups of more limbs have fewer values in a chunk, and more chunks. Where a value
has more limbs than a chunk has lanes, it takes several chunks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..slots.wire import VALUES_PER_PACKET_WIDE
from ..tracing.transfer_times import TransferTimes
from .chunks import (
    ExponentSource,
    Lanes,
    Summand,
    TensorChunks,
    ValueKind,
    WireValues,
)
from .exact import (
    FORMATS,
    HIGH,
    MINUS_LOW,
    NONFINITE,
    RANGE_LANES,
    SPECIAL_LANES,
    Limbs,
    full_limbs,
    group_ranges,
    limb_bits,
    split,
)
from .exact_rounding import recombine
from .quantization import ZERO_EXPONENT, compute_dtype

GROUP_VALUES: Final = 16 * VALUES_PER_PACKET_WIDE
"""Values that share a range of bits: enough to amortise numpy calls, few enough for cache."""
SMALL_LANES: Final = VALUES_PER_PACKET_WIDE
"""A tensor that takes at most so many lanes with limbs for every number of its dtype has these:
then there is nothing to agree on before, which saves half the time of a small sum."""
DRAIN_CHUNKS: Final = 32
"""Least chunks recombined at once, but for the last ones."""
_GROUPS_AT_ONCE: Final = 8
"""Groups whose ranges are computed at once."""


class _Part(NamedTuple):
    """Consecutive chunks of one group; all of `units` are in them but where fill asks for less."""

    limbs: Limbs
    chunks: tuple[int, int]
    """Of the tensor."""
    values: tuple[int, int]
    """Of the tensor; the last unit may have room for more."""
    width: int
    """Values of a unit."""
    unit_chunks: int
    num_units: int
    skipped: int
    """Chunks of the first unit before the first of `chunks`."""


class ExactLayout:
    """Where the groups of a tensor lie among its chunks; the same on all workers."""

    def __init__(
        self,
        num_values: int,
        values_per_packet: int,
        *,
        dtype: str,
        num_workers: int,
        ranges: NDArray[np.int32] | None,
    ) -> None:
        """`ranges` are the agreed ones in a row; None: limbs for every number of the dtype."""
        num_groups = -(-num_values // GROUP_VALUES)
        self._bits = limb_bits(num_workers)
        full = full_limbs(dtype, num_workers)
        if ranges is None:
            self._counts = np.full(num_groups, full.count)
            self._lows = np.full(num_groups, full.low)
            self._has_specials = np.ones(num_groups, np.bool_)
        else:
            agreed = ranges.reshape(num_groups, RANGE_LANES).astype(np.int64)
            is_zero = agreed[:, HIGH] == ZERO_EXPONENT
            spans = agreed[:, HIGH] + agreed[:, MINUS_LOW]
            self._counts = np.clip(-(-spans // self._bits), 1, full.count)
            self._lows = np.where(is_zero, 0, -agreed[:, MINUS_LOW])
            self._has_specials = agreed[:, NONFINITE] > 0
        lanes = self._counts + SPECIAL_LANES * self._has_specials
        self._unit_chunks = -(-lanes // values_per_packet)
        self._widths = np.maximum(1, values_per_packet // lanes)
        sizes = np.full(num_groups, GROUP_VALUES)
        sizes[-1] = num_values - GROUP_VALUES * (num_groups - 1)
        num_units = -(-sizes // self._widths)
        self._starts = np.concatenate([[0], np.cumsum(num_units * self._unit_chunks)])
        self._num_values = num_values
        self.num_chunks = int(self._starts[-1])

    @property
    def is_spread(self) -> bool:
        """Whether any value takes several chunks, whose contributors could differ."""
        return bool((self._unit_chunks > 1).any())

    @property
    def nonfinite_ranges(self) -> list[tuple[int, int]]:
        """Element ranges of the groups that are not finite on some worker."""
        starts = (np.flatnonzero(self._has_specials) * GROUP_VALUES).tolist()
        return [(start, min(start + GROUP_VALUES, self._num_values)) for start in starts]

    def spread(self, groups: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return for each chunk what its group has."""
        return np.repeat(groups, np.diff(self._starts))

    def whole(self, end: int) -> int:
        """Return `end`, or the start of the unit that is cut there."""
        if end >= self.num_chunks:
            return self.num_chunks
        group = int(np.searchsorted(self._starts, end, "right")) - 1
        return end - int((end - self._starts[group]) % self._unit_chunks[group])

    def parts(self, first: int, end: int) -> Iterator[_Part]:
        """Return the parts of groups that the chunks first .. end - 1 hold."""
        group = int(np.searchsorted(self._starts, first, "right")) - 1
        while first < end:
            start, stop = int(self._starts[group]), min(end, int(self._starts[group + 1]))
            width, chunks = int(self._widths[group]), int(self._unit_chunks[group])
            unit, skipped = divmod(first - start, chunks)
            last_unit = -(-(stop - start) // chunks)
            base = group * GROUP_VALUES
            limit = min(base + GROUP_VALUES, self._num_values)
            yield _Part(
                limbs=Limbs(
                    self._bits,
                    int(self._counts[group]),
                    int(self._lows[group]),
                    bool(self._has_specials[group]),
                ),
                chunks=(first, stop),
                values=(base + unit * width, min(base + last_unit * width, limit)),
                width=width,
                unit_chunks=chunks,
                num_units=last_unit - unit,
                skipped=skipped,
            )
            first, group = stop, group + 1


def range_source(tensor_id: int, flat: NDArray[Any], values_per_packet: int) -> ExponentSource:
    """Return what the workers agree on for a tensor's groups."""
    return ExponentSource(
        tensor_id,
        TensorChunks(flat, GROUP_VALUES),
        values_per_packet,
        describe=group_ranges,
        lanes_per_chunk=RANGE_LANES,
        chunks_at_once=_GROUPS_AT_ONCE,
    )


def num_range_lanes(num_values: int) -> int:
    """Return how many lanes the workers agree on for so many values."""
    return RANGE_LANES * -(-num_values // GROUP_VALUES)


def is_small(num_values: int, dtype: str, num_workers: int, most_lanes: int | None) -> bool:
    """Return whether a tensor has limbs for every number of its dtype, and needs no ranges.

    `most_lanes` bounds the lanes of one value; None: nothing does.
    """
    lanes = full_limbs(dtype, num_workers).lanes
    return num_values * lanes <= SMALL_LANES and (most_lanes is None or lanes <= most_lanes)


class ExactSource:
    """A float tensor in limbs; implements ChunkSource."""

    def __init__(
        self,
        summand: Summand,
        layout: ExactLayout,
        values_per_packet: int,
        *,
        round_to: str,
        is_plain: bool = False,
        withheld: NDArray[np.bool_] | None = None,
    ) -> None:
        flat, empty = summand.flat, summand.empty
        self.tensor_id = summand.tensor_id
        self.num_chunks = layout.num_chunks
        self.num_elements = layout.num_chunks * values_per_packet
        self.output: NDArray[Any] = empty((len(flat),), flat.dtype)
        self.results: Lanes = empty((self.num_chunks, values_per_packet), ">i4")
        self.contributors = np.zeros(self.num_chunks, np.uint16)
        self.has_saturated = False
        self.is_plain = is_plain
        self.times = TransferTimes()
        self.withheld = None if withheld is None else layout.spread(withheld)
        self.nonfinite_ranges: list[tuple[int, int]] = []
        """Element ranges that some worker's values are not finite in, as far as results show."""
        self._flat = flat
        self._layout = layout
        self._form = FORMATS[round_to]
        self._compute = compute_dtype(flat.dtype)
        self._is_mean = summand.is_mean
        self._drained = 0
        self._num_taken = 0

    def fill(self, first: int, lanes: Lanes) -> None:
        """Split the values of the chunks into limbs."""
        for part in self._layout.parts(first, first + len(lanes)):
            start, stop = part.values
            values = np.zeros((part.num_units, part.width), self._compute)
            values.reshape(-1)[: stop - start] = self._flat[start:stop]
            rows = lanes[part.chunks[0] - first : part.chunks[1] - first]
            used = part.limbs.lanes * part.width
            if part.unit_chunks == 1:
                rows[:, used:] = 0
                split(values, part.limbs, rows[:, :used])
                continue
            units = np.zeros((part.num_units, part.unit_chunks * lanes.shape[1]), ">i4")
            split(values, part.limbs, units[:, :used])
            rows[...] = units.reshape(-1, lanes.shape[1])[part.skipped :][: len(rows)]

    def wire_values(self) -> WireValues:
        """Return rows that `fill` fills, and where the sums of limbs go."""
        return WireValues(
            kind=ValueKind.READY,
            data=np.empty_like(self.results),
            results=self.results,
            fill=self.fill,
            drain=self.drain,
            take=self.take,
        )

    def drain(self, end: int) -> None:
        """Recombine the limbs of finished chunks, block by block."""
        if end - self._drained < DRAIN_CHUNKS and end < self.num_chunks:
            return
        end = self._layout.whole(end)
        self._recombine(self.results[self._drained : end], self._drained)
        self._drained = end

    def keep(self, lanes: NDArray[np.int32], contributors: NDArray[np.uint16]) -> None:
        """Have the sums in these lanes."""
        self.contributors[...] = contributors
        self.results = lanes

    def take(self, first: int, lanes: NDArray[np.int32]) -> None:
        """Recombine the limbs of final sums, in any order of the chunks."""
        if not self._layout.is_spread:
            self._recombine(lanes, first)
            return
        self._num_taken += len(lanes)  # parts may cut a value: wait for all
        if self._num_taken == self.num_chunks:
            self._recombine(self.results, 0)

    def _recombine(self, lanes: Lanes, first: int) -> None:
        """Write the values of whole units, from chunk `first` on, to the output."""
        for part in self._layout.parts(first, first + len(lanes)):
            begin, end = part.chunks
            units = lanes[begin - first : end - first].reshape(part.num_units, -1)
            units = units[:, : part.limbs.lanes * part.width]
            divisors = None
            if self._is_mean:
                divisors = self.contributors[begin : end : part.unit_chunks, None]
            values = recombine(units, part.limbs, self._form, self._flat.dtype, divisors)
            start, stop = part.values
            self.output[start:stop] = values.reshape(-1)[: stop - start]
            if part.limbs.has_specials:
                self._note_specials(units, part)

    def _note_specials(self, units: Lanes, part: _Part) -> None:
        counts = units[:, part.limbs.count * part.width :].reshape(part.num_units, 2, -1)
        places = np.flatnonzero(counts.any(axis=1))
        if len(places):
            start = part.values[0]
            self.nonfinite_ranges.append((start + int(places[0]), start + int(places[-1]) + 1))
