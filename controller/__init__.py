# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Control plane of Switchfold: admits jobs, programs switches, serves sessions and operators."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .api.operator_client import OperatorClient
    from .config import ControllerConfig, HostConfig, SwitchConfig, load_config
    from .errors import ControllerError
    from .server import ControllerServer

__all__ = [
    "ControllerConfig",
    "ControllerError",
    "ControllerServer",
    "HostConfig",
    "OperatorClient",
    "SwitchConfig",
    "load_config",
]

# gRPC's C core writes its own lines to stderr; users get our one-line errors instead.
# It reads the variable when it is imported, hence here.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

_HOMES = {
    "ControllerConfig": "config",
    "ControllerError": "errors",
    "ControllerServer": "server",
    "HostConfig": "config",
    "OperatorClient": "api.operator_client",
    "SwitchConfig": "config",
    "load_config": "config",
}
"""Imported when first used, so that a command starts without what it does not need."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
