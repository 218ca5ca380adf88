# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a caller may ask of a session's sums; each check raises ConfigurationError."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from numpy.typing import NDArray

from .control.view import JobView
from .errors import ConfigurationError
from .loss_tolerance import LossTolerance
from .options import Precision, ReduceOperation, SessionOptions
from .summation.maxima import MAXIMA

LARGE_CLASSES: Final = 2
"""Priorities of tensors that are needed for large values to have a higher one than others."""


def check_stale(view: JobView) -> None:
    """Check that results may be stale over the switches of a job, if they may be at all."""
    tolerance = view.straggler.tolerance
    if tolerance is None or not tolerance.stale or not view.is_on_switch or view.may_be_stale:
        return
    raise ConfigurationError(
        f"job {view.job}: stale is {tolerance.stale}, and the switch at {view.switch.address} is"
        " one of the network, or one of several: over these, all workers get the same bytes. Leave"
        " stale out, or run the job on one softswitch that has on_host in the controller's file"
    )


def check_maximum(
    operation: ReduceOperation, *, tolerance: LossTolerance | None, large_first: bool
) -> None:
    """Check that a maximum or minimum is not asked for what only sums have."""
    if operation not in MAXIMA:
        return
    if tolerance is not None:
        raise ConfigurationError(
            f"tolerance: the {operation} of the workers' values lacks nothing, as one lost value"
            " could be the result; leave the tolerance out"
        )
    if large_first:
        raise ConfigurationError(
            f"large_first: values of a {operation} have no scale for each packet; leave it out"
        )


def check_tolerance(
    view: JobView, tolerance: LossTolerance, array: NDArray[Any], precision: Precision
) -> None:
    """Check that a sum may lack what its caller says."""
    of_job = view.straggler.tolerance
    if of_job is None:
        raise ConfigurationError(
            "tolerance: this job waits for all contributions; join with"
            " SessionOptions(straggler=StragglerPolicy(tolerance=...)) on all workers"
        )
    if (tolerance.stale and not of_job.stale) or (tolerance.loss and of_job.stale):
        raise ConfigurationError(
            f"tolerance: {tolerance} in a job with {of_job}; a job has sums that lack"
            " contributions, or workers that do without results, not both"
        )
    if precision == "exact" and array.dtype.kind == "f":
        raise ConfigurationError(
            f"tolerance: an exact sum of {array.dtype} lacks nothing; ask for"
            " precision='block', or leave the tolerance out"
        )


def checked_previous(
    view: JobView, arrays: Sequence[NDArray[Any]], previous: Sequence[NDArray[Any]] | None
) -> Sequence[NDArray[Any] | None]:
    """Return the old values of arrays, if a job may keep any."""
    if previous is None:
        return [None] * len(arrays)
    of_job = view.straggler.tolerance
    if of_job is None or not of_job.stale:
        raise ConfigurationError(
            "previous: no result of this job is stale; join with SessionOptions(straggler="
            "StragglerPolicy(tolerance=LossTolerance(loss=0, stale=...))) on all workers"
        )
    kinds = [(array.shape, array.dtype) for array in arrays]
    olds = [(array.shape, array.dtype) for array in previous]
    if kinds != olds:
        raise ConfigurationError(
            f"previous: arrays of {olds} for those of {kinds}; give the same shapes and dtypes"
        )
    return previous


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
    tolerance = view.straggler.tolerance
    if tolerance is not None and tolerance.stale:
        raise ConfigurationError(
            f"large_first in a job with {tolerance}: workers do without results whatever their"
            " values are; leave large_first out, or join with LossTolerance(loss=...) on all"
            " workers"
        )
    if tolerance is None and options.max_priority < LARGE_CLASSES:
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
