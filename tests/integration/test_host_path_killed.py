# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Members of a host path: one that is killed is named by all, one that stops is waited for."""

from __future__ import annotations
