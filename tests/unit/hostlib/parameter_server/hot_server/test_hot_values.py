# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which values a server of hot rows writes to the switch."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from switchfold.hostlib.hot_rows import LaneLayout, RowShape
from switchfold.hostlib.parameter_server.hot_server.served_rows import SERVED_DTYPE, ServedRows
from switchfold.hostlib.parameter_server.hot_server.value_server import ValueServer
from switchfold.hostlib.peers.event_loop import EventLoop


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
