# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of `switchfold calibrate`.

ControllerError
  CalibrationRunError   a part of the measurement is not possible here, or failed
"""

from __future__ import annotations

from ...errors import ControllerError


class CalibrationRunError(ControllerError):
    """A part of the measurement is not possible on this machine, or a worker of it failed."""
