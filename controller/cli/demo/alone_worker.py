# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One worker of the demo's comparison: sums gradients without training, by whatever path.

Runs as a process of its own: `python -m switchfold.controller.cli.demo.alone_worker RECORD`. The
environment describes the session, and its path: through the switch, or among the hosts.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Final

import numpy as np

from ....hostlib.config import join_from_environment
from ....hostlib.errors import HostlibError
from ....hostlib.session import Session
from .perceptron import NUM_PARAMETERS

NUM_SUMS: Final = 40
NUM_WARM: Final = 5
"""Sums before these, whose times do not count: windows grow, connections are made."""


def time_sums(session: Session) -> list[float]:
    """Return the seconds of each sum; ValueError if one is wrong."""
    worker_id, num_workers = session.view.worker_id, session.view.num_workers
    gradient = np.arange(NUM_PARAMETERS, dtype=np.int32) * (worker_id + 1)
    wanted = np.arange(NUM_PARAMETERS, dtype=np.int32) * (num_workers * (num_workers + 1) // 2)
    times: list[float] = []
    for number in range(NUM_WARM + NUM_SUMS):
        session.barrier(f"sum {number}")
        began_s = time.perf_counter()
        total = session.allreduce(gradient).result()
        took_s = time.perf_counter() - began_s
        if not np.array_equal(total, wanted):
            raise ValueError(f"sum {number} of worker {worker_id} is wrong")
        if number >= NUM_WARM:
            times.append(took_s)
    return times


def main() -> int:
    """Run one worker; 1 when the session failed or a sum is wrong."""
    try:
        with join_from_environment() as session:
            times = time_sums(session)
    except (HostlibError, ValueError) as error:
        print(f"error: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    np.save(Path(sys.argv[1]), np.array(times))
    return 0


if __name__ == "__main__":
    sys.exit(main())
