# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""torch.distributed over the switch: the backend "switchfold" for unmodified PyTorch.

PyTorch finds the backend by itself when this package is installed; `register` is for scripts that
turned that off with TORCH_DEVICE_BACKEND_AUTOLOAD=0. This module loads neither torch nor grpc.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from .backend import register
from .errors import (
    CollectiveError,
    CollectiveInputError,
    CollectiveMismatchError,
    CollectiveTimeoutError,
    GroupDestroyedError,
    GroupJoinError,
    RankExitedError,
)

if TYPE_CHECKING:
    from .ddp.hooks import SwitchfoldState, allreduce_hook
    from .hybrid.hybrid_parallel import HybridParallel
    from .table_embedding import TableEmbedding
    from .table_optimizer import TableOptimizer
    from .training_task import TrainingTask

__all__ = [
    "CollectiveError",
    "CollectiveInputError",
    "CollectiveMismatchError",
    "CollectiveTimeoutError",
    "GroupDestroyedError",
    "GroupJoinError",
    "HybridParallel",
    "RankExitedError",
    "SwitchfoldState",
    "TableEmbedding",
    "TableOptimizer",
    "TrainingTask",
    "allreduce_hook",
    "register",
]

_HOMES = {
    "HybridParallel": "hybrid.hybrid_parallel",
    "SwitchfoldState": "ddp.hooks",
    "TableEmbedding": "table_embedding",
    "TableOptimizer": "table_optimizer",
    "TrainingTask": "training_task",
    "allreduce_hook": "ddp.hooks",
}
"""Modules that load torch; each is imported when its name is first used."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
