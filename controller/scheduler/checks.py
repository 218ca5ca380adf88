# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of numbers that callers give."""

from __future__ import annotations

import math

from .errors import InvalidTransferError


def check_whole(what: str, value: object, least: int) -> None:
    """Raise InvalidTransferError unless a value is a whole number from `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidTransferError(f"{what} is {value!r}; it must be a whole number from {least}")


def check_finite(what: str, value: float, least: float) -> None:
    """Raise InvalidTransferError unless a value is a finite number from `least`."""
    if not (math.isfinite(value) and value >= least):
        raise InvalidTransferError(f"{what} is {value}; it must be finite and at least {least:g}")
