# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Delays threads between two lines of the project's code, as a busy machine does.

A test that asserts more than it waits for fails on a busy machine, once in hundreds of runs. With
`--thread-delays SEED` it fails soon: any thread may stop between any two lines of the project or
of its tests, for as long as another process would keep the processor.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = str(Path(__file__).resolve().parents[2])
SHARE_OF_LINES = 0.05
DELAYS_S = (0.0005, 0.002, 0.01)
LONG_DELAY_S = 0.2
LONG_ONE_IN = 100
# Of all delays of a test: below the deadlines that are for hangs alone.
MOST_DELAY_S = 20.0

Trace = Callable[[FrameType, str, Any], Any]


@contextmanager
def new_threads_delayed(trace: Trace) -> Generator[None]:
    """Delay all threads that start within; they are delayed to their ends."""
    threading.settrace(trace)
    try:
        yield
    finally:
        threading.settrace(None)


@contextmanager
def this_thread_delayed(trace: Trace) -> Generator[None]:
    """Delay the thread that runs this."""
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)


def make_trace(seed: int | str, sleep: Callable[[float], None] = time.sleep) -> Trace:
    """Return a trace function that sleeps before some lines of the project's files.

    Its delays get rarer as their sum comes near MOST_DELAY_S: a test of many lines ends, too.
    """
    chance = random.Random(seed)
    left = 1.0

    def trace_line(frame: FrameType, event: str, argument: Any) -> Trace:
        nonlocal left
        if event == "line" and chance.random() < SHARE_OF_LINES * left:
            is_long = chance.random() * LONG_ONE_IN < 1
            delay_s = LONG_DELAY_S if is_long else chance.choice(DELAYS_S)
            left = max(left - delay_s / MOST_DELAY_S, 0.0)
            sleep(delay_s)
        return trace_line

    def trace_call(frame: FrameType, event: str, argument: Any) -> Trace | None:
        return trace_line if left > 0.01 and is_ours(frame.f_code.co_filename) else None

    return trace_call


def is_ours(filename: str) -> bool:
    """Tell whether a file is the project's, not a library's in a folder of the checkout."""
    return filename.startswith(f"{ROOT}/") and "site-packages" not in filename
