# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What workers say to each other over TCP: frames, a server per session, retained results."""

from hostlib.peers.results import RetainedResult, RetainedResults
from hostlib.peers.server import PeerAddress, PeerServer

__all__ = ["PeerAddress", "PeerServer", "RetainedResult", "RetainedResults"]
