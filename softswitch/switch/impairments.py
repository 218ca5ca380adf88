# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Impairments of a link, from a seed: loss, duplication, corruption, reordering, delay and rate."""

from __future__ import annotations

import dataclasses
from typing import Literal

PortDirection = Literal["in", "out"]
"""`in`: as the switch receives; `out`: as it transmits."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Impairments:
    """Impairments of one port and one direction; raises ValueError on impossible settings.

    With the same settings, port and direction, the same sequence of packets has the same fate.
    """

    loss: float = 0.0
    """Probability that a packet is lost."""
    duplication: float = 0.0
    """Probability that a packet arrives twice; each copy has its own corruption and reordering."""
    corruption: float = 0.0
    """Probability that one random bit of a packet is flipped."""
    reordering: float = 0.0
    """Probability that a packet is held back while later ones pass."""
    reordering_delay_s: float = 0.0
    """A held packet goes on after this time (0: no time limit)."""
    reordering_packets: int = 0
    """A held packet goes on once this many later packets have arrived (0: no such limit)."""
    delay_s: float = 0.0
    """Every packet is delayed by this time. Synchronous `process` ignores it."""
    rate_bits_per_s: float = 0.0
    """Frames leave at this rate (0: unlimited). Synchronous `process` ignores it."""
    queue_packets: int = 1000
    """Packets of one priority that may wait for rate and delay; more are dropped as `overrun`."""
    seed: int = 1
    """Seed of the random numbers, below 2**64."""

    def __post_init__(self) -> None:
        for name in ("loss", "duplication", "corruption", "reordering"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"impairments: {name} must be a probability, 0 to 1")
        for name in ("reordering_delay_s", "delay_s", "rate_bits_per_s", "reordering_packets"):
            if not 0 <= getattr(self, name) < 1e12:
                raise ValueError(f"impairments: {name} must be 0 or more (and finite)")
        if self.delay_s > 3600 or self.reordering_delay_s > 3600:
            raise ValueError("impairments: delays are at most 3600 s")
        if self.reordering > 0 and not (self.reordering_delay_s or self.reordering_packets):
            raise ValueError(
                "impairments: reordering needs reordering_delay_s or reordering_packets, "
                "otherwise a held packet would never go on"
            )
        if not 1 <= self.queue_packets < 1 << 31:
            raise ValueError("impairments: queue_packets must be 1 to 2**31 - 1")
        if not 0 <= self.seed < 1 << 64:
            raise ValueError("impairments: seed must be 0 to 2**64 - 1")


def parse_impairments(text: str) -> tuple[int, PortDirection, Impairments]:
    """Read `PORT:in|out:NAME=VALUE,...`, the form of the command line.

    Raises ValueError with what is wrong.

    Example: `1:in:loss=0.05,reordering=0.05,reordering_delay_s=0.02,seed=7`.
    """
    port, _, rest = text.partition(":")
    direction, _, settings = rest.partition(":")
    if not port.isdigit() or direction not in ("in", "out") or not settings:
        raise ValueError(f"impairments {text!r}: expected PORT:in|out:NAME=VALUE,NAME=VALUE...")
    kinds = {field.name: field.type for field in dataclasses.fields(Impairments)}
    values: dict[str, float | int] = {}
    for item in settings.split(","):
        name, _, value = item.partition("=")
        if name not in kinds:
            raise ValueError(f"impairments {text!r}: no {name!r}; there are {', '.join(kinds)}")
        try:
            values[name] = int(value) if kinds[name] == "int" else float(value)
        except ValueError as exc:
            raise ValueError(f"impairments {text!r}: {name} is not a number: {value!r}") from exc
    impairments = Impairments(**values)  # pyright: ignore[reportArgumentType]
    return int(port), "in" if direction == "in" else "out", impairments
