# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a stream of chunks has sent and received."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(kw_only=True)
class StreamCounters:
    """What a stream sent and received, in packets."""

    sent: int = 0
    """First transmissions."""
    retransmitted: int = 0
    fast_retransmitted: int = 0
    """Of these, as later results had shown the loss."""
    probe_retransmitted: int = 0
    """Of these, after silence; all others when a timer ran out."""
    received: int = 0
    """Results taken."""
    replayed: int = 0
    """Of these, answers to retransmissions."""
    flushed: int = 0
    """Flushes sent for rounds that waited too long."""
    marked: int = 0
    """Of these, with ECN_ECHO: a contribution met congestion."""
    kept: int = 0
    """Results that were let go, in whose place old values are kept."""
