# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's side of hot rows: pushes to a switch that sums them, and reads from it."""

from .merged_pull import UNKNOWN_UPDATES
from .server_rows import ServerRows

__all__ = ["UNKNOWN_UPDATES", "ServerRows"]
