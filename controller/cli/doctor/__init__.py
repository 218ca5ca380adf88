# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of `switchfold doctor`: each says ok, warn or fail, and what to do."""

from .check import Check, Status

__all__ = ["Check", "Status"]
