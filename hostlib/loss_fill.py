# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What takes the place of contributions that a sum lacks."""

from __future__ import annotations

import enum
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from .errors import ConfigurationError
from .loss_tolerance import Delivery
from .options import ReduceOperation

Values = NDArray[Any]
"""Floats in a row."""


class FillPolicy(enum.StrEnum):
    """What takes the place of contributions that a sum lacks; the same on all workers.

    k of the n members have contributed to an element: s is the sum of what they gave.
    """

    MEAN = "mean"
    """The mean of those that are there: the mean is s / k. Keeps nothing."""
    ZERO = "zero"
    """Zeros: the mean is s / n. Keeps nothing."""
    PREVIOUS = "previous"
    """What all workers got for the element last time, p: the mean is (s + (n - k) p) / n.

    The first time it is s / k. Keeps one copy of the tensor.
    """
    FEEDBACK = "feedback"
    """Zeros, and each worker adds to its next contribution what was missing of this one.

    Keeps what was missing, at most 1 - `worker_floor` of the tensor at 8 bytes and the value for an
    element, and a copy of the contribution while a sum with something added is under way.
    """

    @property
    def keeps_state(self) -> bool:
        """Whether something is kept from one sum of a tensor to its next one."""
        return self in (FillPolicy.PREVIOUS, FillPolicy.FEEDBACK)


@final
class TensorFill:
    """Fills what the sums of one tensor lack; its sums come one after the other.

    `contribution` is called before a sum, `complete` after it. If a sum fails, `complete` is not
    called, and what was to be added is added to the next one. All workers that hold the same policy
    end with the same bytes: the fill depends on the result, and on who is in it.

    `worker_id` is this worker's. A tensor of another length or dtype begins without a past.
    """

    def __init__(self, policy: FillPolicy, worker_id: int) -> None:
        self._policy = policy
        self._worker_id = worker_id
        self._kind: tuple[Any, ...] = ()  # length and dtype of what is kept
        self._previous: Values | None = None
        self._given: Values | None = None
        self._places = np.empty(0, np.intp)
        self._kept: Values = np.empty(0, np.float32)

    @property
    def kept(self) -> tuple[NDArray[np.intp], Values]:
        """What FEEDBACK adds to the next contribution: the elements, in order, and the values."""
        return self._places, self._kept

    def contribution(self, values: Values) -> Values:
        """Return what this worker gives to the next sum; `values` must not change until its end."""
        if not self._policy.keeps_state:
            return values
        kind = (len(values), values.dtype)
        if kind != self._kind:
            self._kind = kind
            self._previous, self._places = None, np.empty(0, np.intp)
            self._kept = np.empty(0, values.dtype)
        if self._policy is FillPolicy.PREVIOUS:
            return values
        if len(self._places):
            values = values.copy()
            with np.errstate(all="ignore"):  # to infinity, as sums elsewhere
                values[self._places] += self._kept
        self._given = values
        return values

    def complete(
        self, result: Values, delivery: Delivery | None, operation: ReduceOperation = "mean"
    ) -> None:
        """Fill a result, in place.

        `operation` says what the session was asked for. For "sum" the contributions were divided by
        the number of workers before, so that their sum is the mean. Without a delivery, the result
        has all contributions. Raises ConfigurationError if it is not known who is missing, and the
        policy needs it.
        """
        if delivery is not None:
            places, counts = delivery.lacking()
            if len(places):
                self._fill(result, places, counts, len(delivery.members), operation)
        if self._policy is FillPolicy.PREVIOUS:
            if self._previous is None:
                self._previous = np.zeros_like(result)
            # What is not finite would come back in every later sum that lacks something here.
            np.copyto(self._previous, result, where=np.isfinite(result))
        if self._policy is FillPolicy.FEEDBACK:
            self._keep(delivery)

    def _fill(
        self,
        result: Values,
        places: NDArray[np.intp],
        counts: NDArray[np.uint16],
        num_workers: int,
        operation: ReduceOperation,
    ) -> None:
        # A round begins with a contribution, so every element has one.
        assert counts.all(), "elements without any contributor"
        share = counts / num_workers  # float64
        found = result[places].astype(np.float64)
        is_first = self._policy is FillPolicy.PREVIOUS and self._previous is None
        if self._policy is FillPolicy.MEAN or is_first:
            if operation == "mean":
                return
            found /= share
        elif operation == "mean":
            found *= share
        if self._previous is not None:
            found += (1 - share) * self._previous[places]
        with np.errstate(all="ignore"):
            result[places] = found.astype(result.dtype)

    def _keep(self, delivery: Delivery | None) -> None:
        """Keep what this worker gave and the result lacks."""
        given, self._given = self._given, None
        assert given is not None, "complete without a contribution"
        lost = np.empty(0, np.intp) if delivery is None else delivery.lost(self._worker_id)
        if lost is None:
            assert delivery is not None
            raise ConfigurationError(
                f"fill 'feedback': the sum lacks some of {len(delivery.members)} workers, and"
                " bitmaps of so many do not tell which; choose 'mean', 'zero' or 'previous'"
            )
        self._places = lost
        self._kept = given[lost]
        # What is not finite would come back, too.
        self._kept[~np.isfinite(self._kept)] = 0
