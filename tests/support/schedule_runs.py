# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The command that runs many random schedules, each by its number."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable


def run_schedules(
    module: str,
    description: str | None,
    run_schedule: Callable[[int, int], Counter[str]],
    report_every: int,
) -> int:
    """Run schedules by number and seed; the first that fails ends it with its number."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--schedules", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--seed", type=int, default=1, help="of all")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for done in range(options.schedules):
        number = options.first + done
        try:
            counts += run_schedule(number, options.seed)
        except AssertionError as error:
            error.add_note(f"schedule {number} of seed {options.seed}")
            raise
        if (done + 1) % report_every == 0 or done + 1 == options.schedules:
            print(f"{done + 1} schedules: {dict(counts)}", flush=True)
    return 0
