# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Blocks that every worker sends once and the switch copies to all others."""

from .allgather_task import AllgatherTask
from .block_exchange import BlockExchange

__all__ = ["AllgatherTask", "BlockExchange"]
