# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Moves the tables of servers that are stopped to another number of servers."""

from .reshard import ReshardReport, TableReport, reshard

__all__ = ["ReshardReport", "TableReport", "reshard"]
