# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One step of a packet, ready to be shown."""

from dataclasses import dataclass, field
from typing import Any

from .sources import Source


@dataclass(frozen=True, kw_only=True)
class Step:
    """What happened, where in the P4 program, and with which values."""

    packet: int
    """Number of the packet by arrival, from 1."""
    stage: str
    """arrival, parser, checksums, ingress, replication, egress or deparser"""
    kind: str
    text: str
    details: tuple[str, ...] = ()
    depth: int = 0
    source: Source | None = None
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    """The same values for JSON: numbers and strings by name."""
