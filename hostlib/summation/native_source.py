# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A tensor as the C library sees it; see `hostlib/native/slots/source.h`."""

from __future__ import annotations

import ctypes
from typing import final

import numpy as np
from numpy.typing import NDArray

from ..native.library import address, library
from ..native.structures import SourceStruct
from .chunks import ChunkSource, ValueKind


def _address(array: NDArray[np.generic] | None) -> int | None:
    return None if array is None else address(array)


@final
class NativeSource:
    """The library's structure of a source, and the arrays that must stay while it is in use."""

    def __init__(self, source: ChunkSource) -> None:
        self._source = source  # keeps the arrays that are not in `wire`
        self.wire = wire = source.wire_values()
        self.is_ready_made = wire.kind is ValueKind.READY
        """Whether Python computes the values."""
        self.struct = SourceStruct(
            tensor_id=source.tensor_id & 0xFFFFFFFF,
            num_chunks=source.num_chunks,
            num_values=source.num_elements,
            values=wire.kind.value,
            num_ready=0 if self.is_ready_made else source.num_chunks,
            data=_address(wire.data),
            forward=_address(wire.forward),
            backward=_address(wire.backward),
            exponents=_address(wire.exponents),
            withheld=_address(source.withheld),
            large=_address(source.large),
            output=_address(wire.output),
            results=_address(wire.results),
            exact=None if wire.exact is None else ctypes.addressof(wire.exact),
            contributors=address(source.contributors),
            bitmaps=_address(source.bitmaps),
            tolerance=None if source.tolerance is None else ctypes.pointer(source.tolerance),
            stale_left=source.may_lose,
            may_be_stale=source.may_lose > 0,
            is_mean=wire.is_mean,
            is_maximum=source.is_maximum,
            priority=source.priority,
            large_priority=source.large_priority,
        )

    def fill(self, first: int, rows: NDArray[np.int32]) -> None:
        """Write the own values of the chunks from `first` on, in native order: (count, values)."""
        if self.wire.fill is not None:
            self.wire.fill(first, rows)
            return
        count, values = rows.shape
        library.source_fill_rows(ctypes.byref(self.struct), first, count, address(rows), values)

    def take(self, first: int, rows: NDArray[np.int32]) -> None:
        """Turn the final sums of the chunks from `first` on into results; the sums stay.

        They are in native order, shape (count, values), in memory that is not the results'.
        """
        count, values = rows.shape
        library.source_take_rows(ctypes.byref(self.struct), first, count, address(rows), values)
