# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How many chunks of a stream may be without result at a time: `congestion.h` of the C library."""

from __future__ import annotations

import ctypes
from typing import final

from switchfold.hostlib.native.library import library
from switchfold.hostlib.native.structures import CongestionStruct


def tolerated_loss(num_workers: int) -> float:
    """Return which part of a job's chunks may be lost at random on some hop."""
    return library.congestion_tolerated(num_workers)


@final
class CongestionWindow:
    """The window of one stream; learns of results and losses."""

    def __init__(
        self, maximum: int, *, initial: int, minimum: int, tolerated: float = 0.0, floor: int = 0
    ) -> None:
        """Allow `minimum` to `maximum` chunks without result, and `initial` in the beginning.

        A loss leaves at least `floor` chunks. But losses beyond the part `tolerated` of the results
        count like marks.
        """
        self._state: CongestionStruct = library.congestion_new(
            initial, minimum, maximum, floor, tolerated
        )
        self._at = ctypes.byref(self._state)

    @property
    def limit(self) -> int:
        """Most chunks that may be without result now; at least 1."""
        return library.congestion_limit(self._at)

    def on_results(self, count: int, marked: int, under_way: int) -> None:
        """Learn that `count` results came, `marked` of them with ECN_ECHO.

        `under_way` chunks were without result before.
        """
        library.congestion_on_results(self._at, count, marked, under_way)

    def on_loss(self, under_way: int, count: int = 1) -> None:
        """Learn that `count` packets were lost, with `under_way` chunks without result then."""
        library.congestion_on_loss(self._at, under_way, count)
