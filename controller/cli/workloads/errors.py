# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of workloads.

ControllerError
  WorkloadDataError   files of a workload are missing, or are not the expected ones
"""

from __future__ import annotations

from ...errors import ControllerError


class WorkloadDataError(ControllerError):
    """Files of a workload are missing, or are not the expected ones."""
