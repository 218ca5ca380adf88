# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A bulk-synchronous parameter server over TCP: shards of pairs, and the workers' client."""

from .checkpoint import CheckpointPlan
from .client import ClientOptions, ParameterClient
from .layout import PAIR_BYTES, Key, Pair, PairLayout
from .options import ServerOptions, StragglerDrop
from .rules import RuleKind, UpdateRule
from .server import ParameterServer
from .transfer import PullFuture

__all__ = [
    "PAIR_BYTES",
    "CheckpointPlan",
    "ClientOptions",
    "Key",
    "Pair",
    "PairLayout",
    "ParameterClient",
    "ParameterServer",
    "PullFuture",
    "RuleKind",
    "ServerOptions",
    "StragglerDrop",
    "UpdateRule",
]
