# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A parameter server over TCP: sums of dense keys. `tables` has what servers keep."""

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
