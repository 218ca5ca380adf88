# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A float tensor that is summed exactly: its groups of values, cut into chunks of limbs.

A chunk holds all limbs of the values in it, limb by limb, so that all limbs of a value have the
same contributors. Groups of more limbs have fewer values in a chunk, and more chunks. Where a value
has more limbs than a chunk has lanes, it takes several chunks.
"""

from __future__ import annotations

import ctypes
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..native.library import address, library
from ..native.structures import ExactStruct, LimbGroupStruct, ToleranceStruct
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
from .exact import FORMAT_STRUCTS, RANGE_LANES, full_lanes, full_limbs, group_ranges

GROUP_VALUES: Final = 16 * VALUES_PER_PACKET_WIDE
"""Values that share a range of bits: many enough that the agreement costs little."""
SMALL_LANES: Final = VALUES_PER_PACKET_WIDE
"""A tensor that takes at most so many lanes with limbs for every number of its dtype has these:
then there is nothing to agree on before, which saves half the time of a small sum."""
_GROUPS_AT_ONCE: Final = 8
"""Groups whose ranges are computed at once."""
_GROUP: Final = np.dtype(LimbGroupStruct)


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
        self.groups: NDArray[Any] = np.empty(num_groups, _GROUP)
        """`limb_group_t` of exact.h, in a row."""
        self.dtype = dtype
        agreed_at = None
        if ranges is not None:
            agreed = np.ascontiguousarray(ranges.reshape(num_groups, RANGE_LANES), np.int32)
            agreed_at = address(agreed)
        self.num_chunks: int = library.exact_layout(
            agreed_at,
            ctypes.byref(full_limbs(dtype, num_workers)),
            num_values,
            GROUP_VALUES,
            values_per_packet,
            address(self.groups),
        )
        self._num_values = num_values

    @cached_property
    def is_spread(self) -> bool:
        """Whether any value takes several chunks, whose contributors could differ."""
        return bool((self.groups["unit_chunks"] > 1).any())

    @property
    def nonfinite_ranges(self) -> list[tuple[int, int]]:
        """Element ranges of the groups that are not finite on some worker."""
        starts = (np.flatnonzero(self.groups["limbs"]["has_specials"]) * GROUP_VALUES).tolist()
        return [(start, min(start + GROUP_VALUES, self._num_values)) for start in starts]

    def spread(self, groups: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return for each chunk what its group has."""
        starts = self.groups["first_chunk"].astype(np.int64)
        return np.repeat(groups, np.diff(starts, append=self.num_chunks))


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
    lanes = full_lanes(dtype, num_workers)
    return num_values * lanes <= SMALL_LANES and (most_lanes is None or lanes <= most_lanes)


class ExactSource:
    """A float tensor in limbs; implements ChunkSource."""

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
        self._flat = flat
        self._layout = layout  # its groups must stay
        self._native = ExactStruct(
            groups=address(layout.groups),
            num_groups=len(layout.groups),
            numbers_per_group=GROUP_VALUES,
            num_numbers=len(flat),
            lanes_per_chunk=values_per_packet,
            dtype=FORMAT_STRUCTS[layout.dtype],
            round_to=FORMAT_STRUCTS[round_to],
            numbers=address(flat),
            sums=address(self.output),
            contributors=address(self.contributors),
            is_mean=summand.is_mean,
        )

    @property
    def nonfinite_ranges(self) -> list[tuple[int, int]]:
        """Element range that some worker's values are not finite in, as far as results show."""
        span = self._native.specials
        return [(span.first, span.end)] if span.end else []

    def wire_values(self) -> WireValues:
        """Return the tensor, and where the sums of limbs go."""
        return WireValues(
            kind=ValueKind.LIMBS, data=self._flat, results=self.results, exact=self._native
        )

    def keep(self, lanes: NDArray[np.int32], contributors: NDArray[np.uint16]) -> None:
        """Have the sums in these lanes."""
        self.contributors[...] = contributors
        self.results = lanes
