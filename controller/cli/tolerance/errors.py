# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of `switchfold tolerance`.

ControllerError
  ToleranceRunError   a training did not end, or lacked more than was tolerated
"""

from __future__ import annotations

from ...errors import ControllerError


class ToleranceRunError(ControllerError):
    """A training did not end, or lacked more than was tolerated."""
