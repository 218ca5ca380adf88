# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sparse tables of a parameter server: rows by key, in three modes, with a log."""

from .client import SparseTable, TableClient
from .definition import TableDefinition

__all__ = ["SparseTable", "TableClient", "TableDefinition"]
