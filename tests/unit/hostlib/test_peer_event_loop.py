# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The event loop of peers ends whole, however its threads take turns."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from switchfold.hostlib.peers.event_loop import EventLoop

WAIT_S = 60.0


def test_a_loop_that_is_awake_does_not_end_before_its_last_call() -> None:
    loop = EventLoop("loop")
    may_run, is_running, has_ended = threading.Event(), threading.Event(), threading.Event()

    class LateCalls(deque[Callable[[], None]]):
        def append(self, call: Callable[[], None], /) -> None:
            may_run.set()
            loop._thread.join(0.1)  # long enough to end without the call
            super().append(call)

    def work() -> None:
        is_running.set()
        may_run.wait(WAIT_S)

    loop.post(work)
    assert is_running.wait(WAIT_S)
    loop._calls = LateCalls()
    loop.stop(has_ended.set)
    assert has_ended.is_set()
    assert not loop._thread.is_alive()
