# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A parameter server over TCP: sums of dense keys. `tables` has what servers keep."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .client import ClientOptions, ParameterClient
    from .layout import PAIR_BYTES, Key, Pair, PairLayout
    from .options import HotRowUse, ServerOptions, StragglerDrop
    from .rules import RuleKind
    from .server import ParameterServer
    from .transfer import PullFuture

__all__ = [
    "PAIR_BYTES",
    "ClientOptions",
    "HotRowUse",
    "Key",
    "Pair",
    "PairLayout",
    "ParameterClient",
    "ParameterServer",
    "PullFuture",
    "RuleKind",
    "ServerOptions",
    "StragglerDrop",
]

_HOMES = {
    "PAIR_BYTES": "layout",
    "ClientOptions": "client",
    "HotRowUse": "options",
    "Key": "layout",
    "Pair": "layout",
    "PairLayout": "layout",
    "ParameterClient": "client",
    "ParameterServer": "server",
    "PullFuture": "transfer",
    "RuleKind": "rules",
    "ServerOptions": "options",
    "StragglerDrop": "options",
}
"""Imported when first used: a controller needs no more than the layout."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
