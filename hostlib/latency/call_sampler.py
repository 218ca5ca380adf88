# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which calls a worker's log records, so that it takes a bounded share of the processor."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final, final

RECORD_NS: Final = 80_000
"""Processor time that a record is taken to cost the worker, until it is in a file.

`benchmarks/parameter_server/latency_log.py` measures it. In a loop of nothing else, it is 5 to 9
us. Among requests, whose work displaces the log's code and data from the caches, it was 20 to 40 us
where other work shared the two cores of an AMD EPYC. What records cost the throughput of a whole
job there was about twice as much. This is the dear case.
"""
SHARE: Final = 0.015
"""Of the process's processor time, for records."""
MOST_NS: Final = 100_000_000
"""Processor time that is saved up for records at most, and that a log begins with."""
WHOLE_NS: Final = 20_000_000
"""With so much left, all calls are recorded; with less, they are in proportion to what is left."""
STRETCH: Final = 8
"""Consecutive calls that are recorded, or not, together."""


@final
class CallSampler:
    """Draws lots for stretches of calls, within a budget of processor time.

    In any period, records take at most SHARE of the process's processor time, MOST_NS and one
    stretch more, at RECORD_NS each. A stretch has as many pushes as pulls where these alternate,
    whichever of them earns the budget. In it, times between requests are those of all requests, and
    a hot push follows a recorded hot pull.
    """

    def __init__(self, seed: int, clock_ns: Callable[[], int] = time.process_time_ns) -> None:
        """`clock_ns`: processor time of the process, read once for a stretch."""
        self._coin = random.Random(seed)
        self._clock_ns = clock_ns
        self._budget_ns = float(MOST_NS)
        self._read_ns = clock_ns()
        self._num_records = 0
        self._num_left = 0
        self._is_recorded = False

    def restart(self, num_records: int) -> None:
        """Go on after a pause, in which nothing was earned."""
        self._read_ns, self._num_records = self._clock_ns(), num_records
        self._num_left = 0

    def begin_call(self, num_records: int) -> bool:
        """Return whether the next call is recorded; `num_records`: of all calls before it."""
        if not self._num_left:
            self._num_left = STRETCH
            self._is_recorded = self._draw(num_records)
        self._num_left -= 1
        return self._is_recorded

    def _draw(self, num_records: int) -> bool:
        now_ns = self._clock_ns()
        earned_ns = SHARE * (now_ns - self._read_ns)
        spent_ns = RECORD_NS * (num_records - self._num_records)
        self._read_ns, self._num_records = now_ns, num_records
        self._budget_ns = min(self._budget_ns + earned_ns - spent_ns, MOST_NS)
        return self._coin.random() * WHOLE_NS < self._budget_ns
