# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of the demo.

ControllerError
  DemoError       the demo could not run, or one of its proofs failed
"""

from __future__ import annotations

from ...errors import ControllerError


class DemoError(ControllerError):
    """The demo could not run, or one of its proofs failed."""
