# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sums of gradients that may lack contributions: tolerances by parameter, fills by bucket."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, final

import numpy as np
import torch
from numpy.typing import NDArray

from ..errors import ConfigurationError
from ..loss_fill import FillPolicy, TensorFill
from ..loss_tolerance import Delivery, LossTolerance, strictest
from ..options import ReduceOperation
from ..step_tolerance import StepTolerance
from ..summation.hadamard import RandomizedHadamard
from .agreement import tolerance_text

ParameterTolerance = (
    LossTolerance
    | Mapping[torch.Tensor, LossTolerance]
    | Callable[[torch.Tensor], LossTolerance | None]
)
"""What the gradients of all parameters may lack, or of each one; None, or no entry: nothing."""


@dataclass(frozen=True, kw_only=True)
class BoundedSum:
    """What one sum may lack, and what becomes of its result."""

    tolerance: LossTolerance | None
    """None: what the job's policy for late workers leaves out."""
    fill: TensorFill
    note: Callable[[Delivery], None]
    """Takes the delivery of the result, before the sum's work ends."""
    observe: Callable[[NDArray[Any], Delivery | None], None] | None = None
    """Takes the result before that, still spread over its packets: the same bytes on all ranks."""
    dispersal: RandomizedHadamard | None = None
    """How it is spread over its packets."""
    round_number: int = 0
    """Of the signs of `dispersal`."""
    large_first: bool = False
    """Whether packets of large values lack nothing, and leave first: `Session.allreduce`."""

    def contribution(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return what this worker gives; `values` must not change until the sum ends.

        Raises ConfigurationError for float64 that is to be spread.
        """
        if self.dispersal is not None:
            if values.dtype == np.float64:
                raise ConfigurationError(
                    "dispersal of float64 gradients: the transform is of float32; leave it out for"
                    " this model"
                )
            values = values.astype(np.float32)
            self.dispersal.forward(values, self.round_number)
        return self.fill.contribution(values)

    def complete(
        self, result: NDArray[Any], delivery: Delivery | None, operation: ReduceOperation
    ) -> None:
        """Turn a result into that of the gradients, in place, and hand on what it lacks."""
        self.fill.complete(result, delivery, operation)
        if self.observe is not None:
            self.observe(result, delivery)
        if self.dispersal is not None:
            self.dispersal.inverse(result, self.round_number)
        if delivery is not None:
            self.note(delivery)


def fill_policy(fill: FillPolicy | str) -> FillPolicy:
    """Return the policy of a name; raises ConfigurationError."""
    try:
        return FillPolicy(fill)
    except ValueError as exc:
        raise ConfigurationError(f"fill is {fill!r}; choose {', '.join(FillPolicy)}") from exc


def check_tolerance(tolerance: object) -> None:
    """Raise ConfigurationError unless it is a `ParameterTolerance`."""
    if isinstance(tolerance, Mapping):
        wrong = next(
            (key for key in cast("Mapping[object, object]", tolerance) if not _is_tensor(key)), None
        )
        if wrong is not None:
            raise ConfigurationError(
                f"tolerance has the key {wrong!r}; its keys are parameters, as in"
                " {p: LossTolerance(loss=0.05) for p in layer.parameters()}"
            )
    elif not isinstance(tolerance, LossTolerance) and not callable(tolerance):
        raise ConfigurationError(
            f"tolerance is {tolerance!r}; give a LossTolerance, or a mapping or function from a"
            " parameter to one"
        )


def _is_tensor(key: object) -> bool:
    return isinstance(key, torch.Tensor)


@dataclass(frozen=True)
class _Bucket:
    """What is known of one arrangement of parameters in a bucket."""

    parameters: tuple[weakref.ref[torch.Tensor], ...]
    tolerance: LossTolerance | None
    fill: TensorFill
    rounds: Iterator[int]
    """Numbers of the next sums."""

    def is_of(self, parameters: Sequence[torch.Tensor]) -> bool:
        """Whether these are its parameters; an id alone may be that of another one by now."""
        known = self.parameters
        return len(known) == len(parameters) and all(
            reference() is parameter for reference, parameter in zip(known, parameters, strict=True)
        )


@final
class GroupLosses:
    """What DDP's buckets may lack in a process group, which knows no parameters."""

    def __init__(self, tolerance: LossTolerance, fill: FillPolicy, worker_id: int) -> None:
        """`fill` keeps no state."""
        self._tolerance, self._fill = tolerance, TensorFill(fill, worker_id)
        self._pass = _NO_PASS
        self.deliveries: list[Delivery] = []
        """Of the last backward pass, in the order of the buckets."""

    def bounded(self) -> BoundedSum:
        """Return what the sum of a bucket may lack; called where DDP asks for the sum."""
        running = int(cast("Any", torch)._C._current_graph_task_id())
        if running != self._pass:
            self._pass, self.deliveries = running, []
        note = self.deliveries.append
        if running == _NO_PASS:  # a rank that has run out of inputs
            note = _forget
        return BoundedSum(tolerance=self._tolerance, fill=self._fill, note=note)


_NO_PASS = -1


def _forget(_: Delivery) -> None:
    pass


def _agree_with_none(_: Mapping[str, str]) -> None:
    pass


@final
class BucketLosses:
    """Tolerance and fill of each bucket; deliveries of the last backward pass.

    DDP arranges its buckets again after the first pass. A bucket of other parameters begins without
    a past, on all ranks.
    """

    def __init__(  # noqa: PLR0913 - options of the hook
        self,
        tolerance: ParameterTolerance | None,
        fill: FillPolicy,
        worker_id: int,
        dispersal: RandomizedHadamard | None = None,
        *,
        steps: StepTolerance | None = None,
        large_first: bool = False,
        agree: Callable[[Mapping[str, str]], None] = _agree_with_none,
    ) -> None:
        """`agree` raises an error on all ranks if what they give it differs between them."""
        self._tolerance, self._fill, self._worker_id = tolerance, fill, worker_id
        self._dispersal, self._large_first = dispersal, large_first
        self._steps = steps or StepTolerance()
        self._agree = agree
        self._buckets: dict[tuple[int, ...], _Bucket] = {}
        self.deliveries: dict[int, Delivery] = {}
        """By bucket."""

    def bounded(self, index: int, parameters: Sequence[torch.Tensor]) -> BoundedSum:
        """Return what the sum of a bucket may lack; bucket 0 begins a backward pass."""
        if index == 0:
            self._steps.begin_step()
            self.deliveries = {}
        deliveries, steps = self.deliveries, self._steps

        def note(delivery: Delivery) -> None:
            deliveries[index] = delivery

        def observe(result: NDArray[Any], delivery: Delivery | None) -> None:
            steps.note(index, result, delivery)

        bucket = self._bucket(index, parameters)
        return BoundedSum(
            tolerance=steps.of(bucket.tolerance),
            fill=bucket.fill,
            note=note,
            observe=observe,
            dispersal=self._dispersal,
            round_number=next(bucket.rounds),
            large_first=self._large_first,
        )

    def _bucket(self, index: int, parameters: Sequence[torch.Tensor]) -> _Bucket:
        key = tuple(id(parameter) for parameter in parameters)
        bucket = self._buckets.get(key)
        if bucket is None or not bucket.is_of(parameters):
            self._forget(set(key))
            tolerance = self._of(parameters)
            if tolerance is not self._tolerance:  # each rank has asked its own mapping or function
                self._agree({f"tolerance of DDP bucket {index}": tolerance_text(tolerance)})
            bucket = self._buckets[key] = _Bucket(
                tuple(weakref.ref(parameter) for parameter in parameters),
                tolerance,
                TensorFill(self._fill, self._worker_id),
                # What is kept from a sum to the next one has the signs of both.
                itertools.repeat(0) if self._fill.keeps_state else itertools.count(),
            )
        return bucket

    def _forget(self, moved: set[int]) -> None:
        """Drop buckets of parameters that are in another one now, or no more."""
        for key, bucket in list(self._buckets.items()):
            has_gone = any(reference() is None for reference in bucket.parameters)
            if has_gone or not moved.isdisjoint(key):
                del self._buckets[key]

    def _of(self, parameters: Sequence[torch.Tensor]) -> LossTolerance | None:
        """Return the strictest tolerance of the parameters."""
        tolerance = self._tolerance
        if tolerance is None or isinstance(tolerance, LossTolerance):
            return tolerance
        find = tolerance if callable(tolerance) else tolerance.get
        found = [find(parameter) for parameter in parameters]
        for each in cast("list[object]", found):
            if each is not None and not isinstance(each, LossTolerance):
                raise ConfigurationError(
                    f"the tolerance of a parameter is {each!r}; give a LossTolerance, or None for"
                    " gradients that lack nothing"
                )
        return strictest(found)
