# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker tells one server of the keys that it pushes, once a second."""

from __future__ import annotations

from typing import Final, Protocol, final

import numpy as np
from numpy.typing import NDArray

from ...hot_rows import KeyBatches
from ...peers.event_loop import EventLoop, Timer
from ...peers.frames import FrameKind, Packable, SampleFrame
from ..options import ClientOptions
from .key_counts import CountsKeys, MakeCounts
from .sample_budget import SampleBudget

SAMPLE_S: Final = 1.0
"""Between two samples of a table."""
_BATCH_KEYS: Final = 1 << 12
"""Keys of whole mini-batches in a sample, from which servers learn what comes together."""


class SamplePort(Protocol):
    """What takes samples to the server."""

    @property
    def can_send(self) -> bool:
        """Whether the server takes frames now."""
        ...

    def send_frame(self, frame: Packable, payload: memoryview) -> None:
        """Send a frame that needs no receipt."""
        ...


@final
class KeySamples:
    """Counts keys, and keeps the first mini-batches of each second, as far as there is room.

    What it sends is bounded by a share of the pushes.
    """

    def __init__(
        self, loop: EventLoop, port: SamplePort, options: ClientOptions, make_counts: MakeCounts
    ) -> None:
        self._loop = loop
        self._port = port
        self._options = options
        self._make_counts = make_counts
        self._counts: dict[int, CountsKeys] = {}  # by table
        self._batches: dict[int, KeyBatches] = {}  # by table
        self._budget = SampleBudget()
        self._timer: Timer | None = None

    def begin(self, table: int, capacity: int) -> None:
        """Count the keys of a table's pushes from now on, with so many counters."""
        if table not in self._counts:
            options = self._options
            self._counts[table] = self._make_counts(capacity, options.hot_sample, options.worker_id)
            self._batches[table] = KeyBatches(_BATCH_KEYS)

    def count(self, table: int, keys: NDArray[np.int64], pushed_bytes: int) -> None:
        """Learn of the keys of a push."""
        counts = self._counts.get(table)
        if counts is None:
            return
        self._budget.earn(pushed_bytes)
        counts.count(keys, may_skip=not self._budget.allows_counts)
        batches = self._batches[table]
        if batches.num_keys + keys.size <= batches.capacity and self._budget.allows_batches:
            batches.add(keys)
        if self._timer is None:
            self._timer = self._loop.call_later(SAMPLE_S, self._send)

    def close(self) -> None:
        """Send no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _send(self) -> None:
        self._timer = None
        if not self._port.can_send:
            return  # the next push tries again
        for table, counts in self._counts.items():
            packed = counts.take()
            if packed is not None:
                self._send_frame(FrameKind.SKETCH, table, packed)
            if self._batches[table].num_keys:
                self._send_frame(FrameKind.BATCHES, table, self._batches[table].pack())
                self._batches[table] = KeyBatches(_BATCH_KEYS)

    def _send_frame(self, kind: FrameKind, table: int, packed: bytes) -> None:
        self._budget.spend(len(packed))
        self._port.send_frame(SampleFrame(kind, len(packed), table), memoryview(packed))
