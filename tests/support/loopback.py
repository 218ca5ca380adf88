# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The loopback address of a test process: no other process takes ports there that become free."""

from __future__ import annotations

import os

_PID = os.getpid()
LOOPBACK = f"127.{64 + (_PID >> 16)}.{_PID >> 8 & 255}.{_PID & 255}"
"""Process ids have 22 bits; between 127.64.0.0 and 127.127.255.255."""
