# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Registration of the backend; the process group itself is loaded when one is made.

PyTorch calls `register` near the end of `import torch`, which may itself have been asked for by a
module of this package that is half loaded then. So nothing here loads torch, or such a module,
before it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

BACKEND_NAME = "switchfold"
DEVICES = ("cpu", "cuda")


def register() -> None:
    """Make "switchfold" known to torch.distributed; does nothing the second time.

    PyTorch calls this at `import torch` through the entry point group "torch.backends".
    """
    import torch.distributed as dist  # noqa: PLC0415

    if not dist.is_available():
        return
    backends = cast("Any", dist.Backend)
    if BACKEND_NAME.upper() not in backends._plugins:
        backends.register_backend(BACKEND_NAME, _create, extended_api=True, devices=list(DEVICES))


def _create(options: Any, _: object) -> ProcessGroup:
    # Sessions, and grpc behind them, only for those who make a group.
    from .process_group.group_creation import create_group  # noqa: PLC0415

    return create_group(options)
