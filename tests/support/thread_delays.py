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
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = str(Path(__file__).resolve().parents[2])
SHARE_OF_LINES = 0.05
DELAYS_S = (0.0005, 0.002, 0.01)
LONG_DELAY_S = 0.2
LONG_ONE_IN = 100

Trace = Callable[[FrameType, str, Any], Any]


def delay_threads(seed: int) -> None:
    """Delay this thread, and all that start from now on, at random lines."""
    trace = make_trace(seed)
    threading.settrace(trace)
    sys.settrace(trace)


def make_trace(seed: int) -> Trace:
    """Return a trace function that sleeps before some lines of the project's files."""
    chance = random.Random(seed)

    def trace_line(frame: FrameType, event: str, argument: Any) -> Trace:
        if event == "line" and chance.random() < SHARE_OF_LINES:
            is_long = chance.random() * LONG_ONE_IN < 1
            time.sleep(LONG_DELAY_S if is_long else chance.choice(DELAYS_S))
        return trace_line

    def trace_call(frame: FrameType, event: str, argument: Any) -> Trace | None:
        return trace_line if is_ours(frame.f_code.co_filename) else None

    return trace_call


def is_ours(filename: str) -> bool:
    """Tell whether a file is the project's, not a library's in a folder of the checkout."""
    return filename.startswith(ROOT) and "site-packages" not in filename
