# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""torch.distributed over the switch: the backend "switchfold" for unmodified PyTorch.

PyTorch finds the backend by itself when this package is installed; `register` is for scripts that
turned that off with TORCH_DEVICE_BACKEND_AUTOLOAD=0. This module loads neither torch nor grpc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy_names import lazy_names
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

__getattr__ = lazy_names(
    __name__,
    {
        "HybridParallel": "hybrid.hybrid_parallel",
        "SwitchfoldState": "ddp.hooks",
        "TableEmbedding": "table_embedding",
        "TableOptimizer": "table_optimizer",
        "TrainingTask": "training_task",
        "allreduce_hook": "ddp.hooks",
    },
)
