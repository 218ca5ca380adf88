# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A controller with kill points, and with a clock that may go wrong."""

from __future__ import annotations

import inspect
import sys
import time
from pathlib import Path

from kill_points import points
from switchfold.controller.__main__ import run as run_command


def run(arguments: list[str]) -> None:
    """Run `switchfold controller`: folder of the points, seconds to shift the clock, options."""
    folder, shift_s, *options = arguments
    _shift_clock(float(shift_s))
    points.install(Path(folder))
    sys.exit(run_command(["controller", "run", *options]))


def _shift_clock(shift_s: float) -> None:
    """Set back the clock that the controller reads.

    Not that of its libraries, as libfaketime would: no certificate would be valid, and gRPC's
    deadlines would be over before they begin.
    """
    true_time = time.time

    def shifted_time() -> float:
        frame = inspect.currentframe()
        assert frame is not None
        assert frame.f_back is not None
        caller: str = frame.f_back.f_globals["__name__"]
        return true_time() + (shift_s if caller.startswith("switchfold.controller.") else 0.0)

    time.time = shifted_time
