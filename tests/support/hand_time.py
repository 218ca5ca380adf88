# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Time that passes on all machines at once, and only when a test says so."""

from __future__ import annotations

import threading
from collections.abc import Callable

MS = 1_000_000
HOUR = 3_600_000 * MS


class HandTime:
    """`clock` gives a machine's clock, in nanoseconds from its own beginning."""

    def __init__(self) -> None:
        self._passed_ns = 0
        self._lock = threading.Lock()

    def pass_by(self, ns: int) -> None:
        with self._lock:
            self._passed_ns += ns

    def clock(self, beginning_ns: int = HOUR) -> Callable[[], int]:
        return lambda: beginning_ns + self._passed_ns
