# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Optimisers, by which gradients change the values of rows and of dense arrays.

All of it is in float32; hostlib/native/rows/optimisers.h has the formulas. A NaN or an infinity
that a state or a value grows into stays, as it does in other libraries.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, fields, replace
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from ...errors import ConfigurationError, RowShapeError
from ...native.library import address, library
from ...native.row_library import OPTIMISER_NUMBERS
from .float32_range import is_positive, is_positive_or_zero

Values = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Optimiser:
    """Base of those below: the C library has no others."""

    @property
    def name(self) -> str:
        """The name in the C library, and in stored rows."""
        return type(self).__name__.lower()

    @property
    def handle(self) -> int:
        """Where it is in the C library. Raises ConfigurationError if it is not there."""
        handle: int | None = library.optimiser_find(self.name.encode())
        if handle is None:
            raise ConfigurationError(
                f"the C library has no optimiser {self.name}; use one of this module"
            )
        return handle

    @property
    def num_states(self) -> int:
        """How many float32 numbers it keeps for each value: 0, 1 or 2."""
        states: int = library.optimiser_states(self.handle)
        return states

    @property
    def numbers(self) -> tuple[float, ...]:
        """Its numbers in the order of optimisers.h: that of the fields."""
        given: list[float] = [getattr(self, field.name) for field in fields(self)]
        return (*given, *(0.0,) * (OPTIMISER_NUMBERS - len(given)))

    @property
    def rate(self) -> float | None:
        """Its learning rate, the first of its numbers; None: it has none."""
        return self.numbers[0] if fields(self) else None

    def with_rate(self, rate: float) -> Self:
        """Return it with another learning rate. Raises ConfigurationError."""
        if not fields(self):
            raise ConfigurationError(
                f"{type(self).__name__} has no learning rate to set; scale the gradients"
            )
        try:
            number = float(rate)
        except (TypeError, ValueError) as error:
            raise ConfigurationError(f"learning rate {rate!r}; give a number") from error
        return replace(self, **{fields(self)[0].name: number})

    def apply_dense(self, values: Values, state: Values, gradient: Values, *, step: int) -> None:
        """Apply a gradient to a dense array, in place; `step` counts from 1.

        `values` and `gradient` have the shape (n,), `state` has (num_states, n) and is zeros before
        the first step. The arrays must not overlap. A gradient may hold NaN and infinity. Raises
        RowShapeError.
        """
        if step < 1:
            raise ConfigurationError(f"step {step} of an optimiser; the first one is 1")
        for name, array, shape in (
            ("values", values, (values.size,)),
            ("gradient", gradient, (values.size,)),
            ("state", state, (self.num_states, values.size)),
        ):
            check_array(name, array, np.float32, shape)
        if not (values.flags.writeable and state.flags.writeable):
            raise RowShapeError("values and state are changed in place; give arrays to write to")
        numbers = (ctypes.c_double * OPTIMISER_NUMBERS)(*self.numbers)
        arrays = address(values), address(state), address(gradient)
        library.optimiser_apply(self.handle, numbers, *arrays, values.size, step)


def check_array(
    name: str, array: NDArray[Any], dtype: type[np.generic], shape: tuple[int, ...]
) -> None:
    """Raise RowShapeError unless C code can take the array as it lies in memory."""
    is_plain = array.flags.c_contiguous and array.flags.aligned
    if array.dtype != dtype or array.shape != shape or not is_plain:
        kind = "" if is_plain else ", not contiguous or not aligned"
        raise RowShapeError(
            f"{name} of {array.dtype} and shape {array.shape}{kind}; give a contiguous array of"
            f" {np.dtype(dtype)} and shape {shape}, such as numpy.ascontiguousarray makes"
        )


@final
@dataclass(frozen=True, kw_only=True)
class GradientSum(Optimiser):
    """values += gradient. Sums of integers are exact up to 2^24."""

    @property
    def name(self) -> str:
        """The name in the C library, and in stored rows."""
        return "sum"


@final
@dataclass(frozen=True, kw_only=True)
class Sgd(Optimiser):
    """Gradient descent: v = momentum * v + gradient, values -= learning_rate * v."""

    learning_rate: float
    momentum: float = 0.0
    """0: no state is kept."""

    def __post_init__(self) -> None:
        if not (is_positive(self.learning_rate) and 0 <= self.momentum < 1):
            raise ConfigurationError(
                f"SGD with learning rate {self.learning_rate} and momentum {self.momentum}; give a"
                " rate above 0 and a momentum from 0 to below 1"
            )

    @property
    def name(self) -> str:
        """The name in the C library, and in stored rows."""
        return "momentum" if self.momentum else "sgd"


@final
@dataclass(frozen=True, kw_only=True)
class Adagrad(Optimiser):
    """Steps shrink with the sum of a value's squared gradients (Duchi et al., 2011)."""

    learning_rate: float
    epsilon: float = 1e-10

    def __post_init__(self) -> None:
        if not (is_positive(self.learning_rate) and is_positive(self.epsilon)):
            raise ConfigurationError(
                f"Adagrad with learning rate {self.learning_rate} and epsilon {self.epsilon}; give"
                " float32 numbers above 0"
            )


@final
@dataclass(frozen=True, kw_only=True)
class Adam(Optimiser):
    """Steps by the means of gradients and of their squares (Kingma and Ba, 2015).

    A row counts its own updates as steps. Where each push touches a row, the row moves as with
    `torch.optim.Adam`. A row that a push does not touch stays as it is, and so do its means and its
    count; `torch.optim.SparseAdam` counts those steps for the row's bias correction.
    """

    learning_rate: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        is_positive_pair = is_positive(self.learning_rate) and is_positive(self.epsilon)
        if not (is_positive_pair and 0 <= self.beta1 < 1 and 0 <= self.beta2 < 1):
            raise ConfigurationError(
                f"Adam with learning rate {self.learning_rate}, beta1 {self.beta1}, beta2"
                f" {self.beta2} and epsilon {self.epsilon}; give a rate and an epsilon above 0, and"
                " betas from 0 to below 1"
            )


@final
@dataclass(frozen=True, kw_only=True)
class Ftrl(Optimiser):
    """FTRL-Proximal (McMahan et al., 2013), for sparse linear models.

    The method expects values that start at 0: the first update of a row shrinks others.
    """

    alpha: float
    beta: float = 1.0
    l1: float = 0.0
    l2: float = 0.0

    def __post_init__(self) -> None:
        is_positive_pair = is_positive(self.alpha) and is_positive(self.beta)
        if not (is_positive_pair and is_positive_or_zero(self.l1) and is_positive_or_zero(self.l2)):
            raise ConfigurationError(
                f"FTRL with alpha {self.alpha}, beta {self.beta}, l1 {self.l1} and l2 {self.l2};"
                " give alpha and beta above 0, and l1 and l2 of 0 or above"
            )
