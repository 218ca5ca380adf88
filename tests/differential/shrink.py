# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Shrinks a failing case: leaves out steps while the switches still differ."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from differential.case import Case, Step
from differential.comparison import run_case


def shrink(case: Case, limit_s: float = 60.0) -> Case:
    """Return the smallest case found within the limit that differs at the same step."""
    end_s = time.monotonic() + limit_s

    found = run_case(case)
    wanted = found.difference.step if found.difference is not None else None

    def differs(steps: Sequence[Step]) -> bool:
        difference = run_case(case.with_steps(steps)).difference
        return difference is not None and difference.step == wanted

    steps: Sequence[Step] = found.case.steps
    if found.difference is not None:
        steps = steps[: found.difference.at + 1]
    return case.with_steps(_without_parts(steps, differs, end_s))


def _without_parts(
    steps: Sequence[Step], differs: Callable[[Sequence[Step]], bool], end_s: float
) -> Sequence[Step]:
    size = len(steps) // 2
    while size:
        at = 0
        while at < len(steps):
            if time.monotonic() > end_s:
                return steps
            fewer = [*steps[:at], *steps[at + size :]]
            if differs(fewer):
                steps = fewer
            else:
                at += size
        size //= 2
    return steps
