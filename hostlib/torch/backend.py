# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Registration of the backend; the process group's module is loaded when a group is made.

PyTorch calls `register` near the end of `import torch`. A module of this package may have started
that import and is then only half loaded. So this module imports neither torch nor such a module
before one of its functions is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

BACKEND_NAME = "switchfold"
DEVICES = ("cpu", "cuda")


def register() -> None:
    """Register "switchfold" with torch.distributed; a second call does nothing.

    PyTorch calls this at `import torch` through the entry point group "torch.backends".
    """
    import torch.distributed as dist  # noqa: PLC0415

    if not dist.is_available():
        return
    backends = cast("Any", dist.Backend)
    if BACKEND_NAME.upper() not in backends._plugins:
        backends.register_backend(BACKEND_NAME, _create, extended_api=True, devices=list(DEVICES))


def _create(options: Any, _: object) -> ProcessGroup:
    # Only programs that make a group load sessions and grpc.
    from .process_group.group_creation import create_group  # noqa: PLC0415

    return create_group(options)
