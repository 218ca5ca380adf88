# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which Python floats are numbers in float32, too."""

from __future__ import annotations

from typing import Final

import numpy as np

MAXIMUM: Final = float(np.finfo(np.float32).max)
_LEAST: Final = float(np.finfo(np.float32).tiny)


def is_positive(number: float) -> bool:
    """Return whether a number is above 0 and finite, and still is when it is rounded."""
    return _LEAST <= number <= MAXIMUM


def is_positive_or_zero(number: float) -> bool:
    """Return the same, or whether it is 0."""
    return number == 0 or is_positive(number)
