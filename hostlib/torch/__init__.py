# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""torch.distributed over the switch: the backend "switchfold" for unmodified PyTorch.

PyTorch finds the backend by itself when this package is installed; `register` is for scripts that
turned that off with TORCH_DEVICE_BACKEND_AUTOLOAD=0. Importing it loads neither torch nor grpc.
"""

from hostlib.torch.backend import register
from hostlib.torch.errors import (
    CollectiveError,
    CollectiveInputError,
    CollectiveMismatchError,
    CollectiveTimeoutError,
    GroupDestroyedError,
    GroupJoinError,
    RankExitedError,
)

__all__ = [
    "CollectiveError",
    "CollectiveInputError",
    "CollectiveMismatchError",
    "CollectiveTimeoutError",
    "GroupDestroyedError",
    "GroupJoinError",
    "RankExitedError",
    "register",
]
