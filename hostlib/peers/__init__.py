# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""TCP connections between workers: frames, a server per session, retained results."""

from .results import RetainedResult, RetainedResults
from .server import PeerAddress, PeerServer

__all__ = ["PeerAddress", "PeerServer", "RetainedResult", "RetainedResults"]
