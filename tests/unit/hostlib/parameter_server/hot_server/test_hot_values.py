# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which values a server of hot rows writes to the switch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from switchfold.hostlib.hot_rows import LaneLayout, RowShape
from switchfold.hostlib.parameter_server.hot_server import value_server as module
from switchfold.hostlib.parameter_server.hot_server.served_rows import SERVED_DTYPE, ServedRows
from switchfold.hostlib.parameter_server.hot_server.value_server import (
    IDLE_S,
    IDLE_WRITE_S,
    ValueServer,
)
from switchfold.hostlib.peers.event_loop import EventLoop

WRITE_S = 0.01


def test_rows_of_a_log_may_change_before_there_is_a_view() -> None:
    rows = np.zeros(2, SERVED_DTYPE)
    rows["row"], rows["table"], rows["epoch"] = [0, 1], 5, [32, 64]
    layout = LaneLayout(RowShape(num_lanes=2, width=1), np.arange(4), np.ones(2, np.uint32))
    served = ServedRows(3, rows, ((5, layout),))
    tables = SimpleNamespace(hot_state=SimpleNamespace(served=served), counters=Counter[str]())
    loop = EventLoop("test-values")
    try:
        values = ValueServer(loop, cast(Any, tables), None, 0.01)
        loop.run(lambda: values.mark(np.array([0, 1, -1])))
    finally:
        loop.stop(lambda: None)


class StoppedTimers:
    """Keeps timers until the test calls them."""

    def __init__(self) -> None:
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, delay_s: float, call: Callable[[], None]) -> None:
        self.timers.append((delay_s, call))

    def call(self) -> float:
        """Call the only timer; return after what time it was due."""
        ((delay_s, call),) = self.timers
        self.timers.clear()
        call()
        return delay_s


def test_values_that_hardly_anybody_reads_are_written_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = np.zeros(1, SERVED_DTYPE)
    rows["table"], rows["epoch"] = 5, 32
    layout = LaneLayout(RowShape(num_lanes=2, width=1), np.arange(2), np.ones(1, np.uint32))
    served = ServedRows(3, rows, ((5, layout),))
    tables = SimpleNamespace(hot_state=SimpleNamespace(served=served), counters=Counter[str]())
    now_s = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    loop = StoppedTimers()
    values = ValueServer(cast(Any, loop), cast(Any, tables), None, WRITE_S)
    values.start()
    assert loop.call() == WRITE_S
    now_s[0] += IDLE_S / 2
    values.mark(np.array([0]))
    assert loop.call() == WRITE_S
    now_s[0] += IDLE_S
    values.mark(np.array([0]))
    assert loop.call() == IDLE_WRITE_S
    values.mark_summed(np.array([0]))
    assert loop.call() == WRITE_S
