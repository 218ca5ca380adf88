# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sparse tables and dense tensors of a parameter server, in three modes, with a log."""

from ..hot_worker import UNKNOWN_UPDATES
from .client import SparseTable, TableClient
from .definition import TableDefinition
from .dense import DenseTensor, TensorDefinition

__all__ = [
    "UNKNOWN_UPDATES",
    "DenseTensor",
    "SparseTable",
    "TableClient",
    "TableDefinition",
    "TensorDefinition",
]
