# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a caller may ask of a session's sums; each check raises ConfigurationError."""

from __future__ import annotations

from typing import Any, Final

from numpy.typing import NDArray

from .control.view import JobView
from .errors import ConfigurationError
from .options import Precision, SessionOptions

LARGE_CLASSES: Final = 2
"""Priorities of tensors that are needed for large values to have a higher one than others."""


def check_tolerance(view: JobView, array: NDArray[Any], precision: Precision) -> None:
    """Check that a sum may lack what its caller says."""
    if view.straggler.tolerance is None:
        raise ConfigurationError(
            "tolerance: this job waits for all contributions; join with"
            " SessionOptions(straggler=StragglerPolicy(tolerance=...)) on all workers"
        )
    if precision == "exact" and array.dtype.kind == "f":
        raise ConfigurationError(
            f"tolerance: an exact sum of {array.dtype} lacks nothing; ask for"
            " precision='block', or leave the tolerance out"
        )


def check_large_first(
    view: JobView, options: SessionOptions, array: NDArray[Any], precision: Precision
) -> None:
    """Check that large values of a sum are known, and can come first."""
    if array.dtype.kind != "f":
        raise ConfigurationError(
            f"large_first: sums of {array.dtype} have no scale for each packet; leave it out"
        )
    if precision == "exact":
        raise ConfigurationError(
            f"large_first: exact sums of {array.dtype} lack nothing, and have no scale for each"
            " packet; ask for precision='block', or leave it out"
        )
    check_large_first_of(view, options)


def check_large_first_of(view: JobView, options: SessionOptions) -> None:
    """Check that large values can come first in a job."""
    if view.straggler.tolerance is None and options.max_priority < LARGE_CLASSES:
        raise ConfigurationError(
            "large_first would change nothing: the job waits for all contributions, and asks for"
            f" max_priority {options.max_priority}; join with StragglerPolicy(tolerance=...), or"
            f" with a SessionOptions.max_priority of {LARGE_CLASSES} or more, on all workers"
        )


def checked_priority(options: SessionOptions, priority: int) -> int:
    """Return a tensor's priority, if the session asked for it."""
    # Not by what the view grants: a view change could come between the calls of two workers.
    highest = max(0, options.max_priority - 1)
    if not 0 <= priority <= highest:
        raise ConfigurationError(
            f"priority is {priority}; this session asked for 0 to {highest}: join with a higher"
            " SessionOptions.max_priority on all workers, as control packets have the highest"
        )
    return priority
