# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of runs with sparse tables.

ControllerError
  TableRunError   a run did not end, or its sums are wrong
"""

from __future__ import annotations

from ...errors import ControllerError


class TableRunError(ControllerError):
    """A run with sparse tables did not end, or its sums are wrong."""
