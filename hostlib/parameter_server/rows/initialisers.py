# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Values of new rows; they depend on seed, key and position alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

from ...errors import ConfigurationError
from ...native.row_library import InitialKind, InitialStruct
from .float32_range import MAXIMUM, is_positive


class Initialiser(ABC):
    """Base of those below: the C library has no others."""

    @abstractmethod
    def describe(self, seed: int) -> InitialStruct:
        """Return it with its seed as the C library takes it."""


@final
@dataclass(frozen=True, kw_only=True)
class Zeros(Initialiser):
    """All values are 0."""

    def describe(self, seed: int) -> InitialStruct:
        """Return it with its seed as the C library takes it."""
        return InitialStruct(seed=seed, kind=InitialKind.ZEROS)


@final
@dataclass(frozen=True, kw_only=True)
class Uniform(Initialiser):
    """Multiples of (high - low) / 2^24 from low to high, in float32; all machines make the same."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (-MAXIMUM / 2 <= self.low <= self.high <= MAXIMUM / 2):
            raise ConfigurationError(
                f"uniform values from {self.low} to {self.high}; give two float32 numbers, the"
                " lower one first"
            )

    def describe(self, seed: int) -> InitialStruct:
        """Return it with its seed as the C library takes it."""
        return InitialStruct(seed=seed, kind=InitialKind.UNIFORM, low=self.low, high=self.high)


@final
@dataclass(frozen=True, kw_only=True)
class Normal(Initialiser):
    """Mean 0 and this standard deviation, computed in float64 and rounded to float32.

    All machines make the same: the C code takes a logarithm of its own, not the C library's.
    """

    deviation: float

    def __post_init__(self) -> None:
        if not is_positive(self.deviation):
            raise ConfigurationError(
                f"normal values with a standard deviation of {self.deviation}; give a float32"
                " number above 0, or use Zeros"
            )

    def describe(self, seed: int) -> InitialStruct:
        """Return it with its seed as the C library takes it."""
        return InitialStruct(seed=seed, kind=InitialKind.NORMAL, deviation=self.deviation)
