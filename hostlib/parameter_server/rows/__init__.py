# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sparse tables of a parameter server: rows by key, their optimisers, and keys by shard, in C."""

from .initialisers import Initialiser, Normal, Uniform, Zeros
from .optimisers import Adagrad, Adam, Ftrl, GradientSum, Optimiser, Sgd
from .placement import Partition, partition, shard_of
from .table import PulledRows, RowChunk, RowTable, Versions

__all__ = [
    "Adagrad",
    "Adam",
    "Ftrl",
    "GradientSum",
    "Initialiser",
    "Normal",
    "Optimiser",
    "Partition",
    "PulledRows",
    "RowChunk",
    "RowTable",
    "Sgd",
    "Uniform",
    "Versions",
    "Zeros",
    "partition",
    "shard_of",
]
