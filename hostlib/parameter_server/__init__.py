# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A bulk-synchronous parameter server over TCP: shards of pairs, and the workers' client."""

from hostlib.parameter_server.checkpoint import CheckpointPlan
from hostlib.parameter_server.client import ClientOptions, ParameterClient
from hostlib.parameter_server.layout import PAIR_BYTES, Key, Pair, PairLayout
from hostlib.parameter_server.options import ServerOptions, StragglerDrop
from hostlib.parameter_server.rules import RuleKind, UpdateRule
from hostlib.parameter_server.server import ParameterServer
from hostlib.parameter_server.transfer import PullFuture

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
