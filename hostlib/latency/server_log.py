# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a server logs: arrivals of requests, its load, and updates by key."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from ..peers.event_loop import EventLoop
from ..peers.frames import FrameKind
from .parquet_log import ParquetLog
from .schema import ARRIVALS, OPERATIONS, SAMPLES, UPDATES

SAMPLE_S: Final = 1.0
"""Time between two samples of the load."""
_PULL: Final = OPERATIONS.index("pull")
_PUSH: Final = OPERATIONS.index("push")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


@final
class ServerLog:
    """Runs in the loop's thread, except for the constructor and `close`. Raises LatencyLogError."""

    def __init__(self, loop: EventLoop, directory: Path, *, shard: int, job: int) -> None:
        self._loop = loop
        self._shard = shard
        self._num_connections = 0
        self.is_paused = False
        """Whether no arrival is noted."""
        stem, about = f"server{shard}-{secrets.token_hex(4)}", {"server": shard, "job": job}
        self._arrivals, self._samples, self._updates = (
            ParquetLog(directory, kind, stem, about) for kind in (ARRIVALS, SAMPLES, UPDATES)
        )
        loop.run(self._sample)

    def connect(self) -> int:
        """Return the number of another connection, from 1."""
        self._num_connections += 1
        return self._num_connections

    def arrived(self, worker_id: int, connection: int, kind: FrameKind, arrived_ns: int) -> None:
        """Note a push or pull."""
        operation = _PULL if kind is FrameKind.PULL else _PUSH
        self._arrivals.append((self._shard, worker_id, connection, arrived_ns // 1000, operation))

    def close(self, counts: Iterable[tuple[int, NDArray[np.int64], NDArray[np.uint32]]]) -> None:
        """Write updates, by table number, keys, and counts of these keys; then end.

        After the loop has ended.
        """
        for table, keys, updates in counts:
            rows = np.empty((keys.size, len(UPDATES.columns)), np.int64)
            rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3] = self._shard, table, keys, updates
            self._updates.extend(rows)
        for log in (self._arrivals, self._samples, self._updates):
            log.close()

    def _sample(self) -> None:
        resident = int(Path("/proc/self/statm").read_bytes().split()[1]) * _PAGE_BYTES
        processor_us = time.process_time_ns() // 1000
        self._samples.append((self._shard, self._loop.clock_ns() // 1000, processor_us, resident))
        self._loop.call_later(SAMPLE_S, self._sample)
