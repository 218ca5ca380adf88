# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A parameter server over TCP: sums of dense keys. `tables` has what servers keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy_names import lazy_names

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

__getattr__ = lazy_names(
    __name__,
    {
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
    },
)
