# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Registration of the backend; the process group itself is loaded when one is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch.distributed as dist

if TYPE_CHECKING:
    from hostlib.torch.torch_seam import BackendOptions

BACKEND_NAME = "switchfold"
DEVICES = ("cpu", "cuda")


def register() -> None:
    """Make "switchfold" known to torch.distributed; does nothing the second time.

    PyTorch calls this at `import torch` through the entry point group "torch.backends".
    """
    if not dist.is_available():
        return
    # Builds without torch.distributed lack what is behind this.
    from hostlib.torch import torch_seam  # noqa: PLC0415

    if not torch_seam.is_registered(BACKEND_NAME):
        torch_seam.register_backend(BACKEND_NAME, _create, list(DEVICES))


def _create(options: BackendOptions, _: object) -> dist.ProcessGroup:
    # Sessions, and grpc behind them, only for those who make a group.
    from hostlib.torch.group_creation import create_group  # noqa: PLC0415

    return create_group(options)
