# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Facts about machines and network on which the choice of a scheme depends."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Final, Self, cast

from ..errors import SchemeError
from ..slots.wire import NUM_SLOTS, VALUES_PER_PACKET_WIDE

MIN_SLOTS: Final = 2
"""Least slots for a float tensor: one for values and one for exponents."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Workers, server shards, links and switch. All links are full duplex and have one rate."""

    num_workers: int
    """P1, the number of workers."""
    num_servers: int = 0
    """P2, the number of parameter server shards; 0: as many as workers."""
    is_colocated: bool = True
    """Whether shards run on the workers' hosts; otherwise they have hosts of their own."""
    batch: int = 1
    """K, samples per worker and iteration; a layer gives one pair of factors per sample."""
    link_bits_per_s: float = 1e9
    """Rate of every host's link in each direction, in Ethernet frames without preamble."""
    round_trip_s: float = 200e-6
    """RTT of one packet to another host, or to the switch."""
    slots: int = NUM_SLOTS // 2
    """Free slots of the switch; with fewer than MIN_SLOTS it cannot aggregate."""
    values_per_packet: int = VALUES_PER_PACKET_WIDE
    has_switch: bool = True
    """Whether a switch between the hosts can aggregate."""
    has_multicast: bool = False
    """Whether the switch can multicast factors to the other workers."""
    flops_per_s: float = math.inf
    """Rate at which a worker rebuilds gradients from factors; infinite: it takes no time."""

    def __post_init__(self) -> None:
        if self.num_servers == 0:
            object.__setattr__(self, "num_servers", self.num_workers)
        for name in ("num_workers", "num_servers", "batch", "values_per_packet"):
            if getattr(self, name) < 1:
                raise SchemeError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.slots < 0:
            raise SchemeError(f"slots is {self.slots}; write 0 or more")
        for name in ("link_bits_per_s", "flops_per_s"):
            if not getattr(self, name) > 0:  # NaN too
                raise SchemeError(f"{name} is {getattr(self, name)}; it must be above 0")
        if not 0 <= self.round_trip_s < math.inf:
            raise SchemeError(f"round_trip_s is {self.round_trip_s}; write 0 or more seconds")

    @property
    def can_aggregate(self) -> bool:
        """Whether a switch has enough free slots to aggregate."""
        return self.has_switch and self.slots >= MIN_SLOTS

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other facts.

        If there are as many servers as workers, a new `num_workers` changes both numbers.
        """
        if "num_workers" in changes and self.num_servers == self.num_workers:
            changes.setdefault("num_servers", 0)
        return dataclasses.replace(self, **changes)

    def as_dict(self) -> dict[str, int | float | bool | None]:
        """Return the facts for JSON; infinite values become None."""
        facts = dataclasses.asdict(self)
        return {name: None if value == math.inf else value for name, value in facts.items()}

    @classmethod
    def from_dict(cls, facts: object) -> Self:
        """Return the cluster that a dict describes; SchemeError names the wrong fact."""
        if not isinstance(facts, dict):
            raise SchemeError(f"a cluster is described by {facts!r}; write names and numbers")
        entries = dict(cast("dict[str, Any]", facts))
        kinds = {field.name: str(field.type) for field in dataclasses.fields(cls)}
        accepted = {"int": (int,), "float": (int, float), "bool": ()}
        for name, value in entries.items():
            if name not in kinds:
                raise SchemeError(
                    f"unknown fact {name!r} of the cluster; known: {', '.join(sorted(kinds))}"
                )
            kind = kinds[name]
            if value is None and kind == "float":
                entries[name] = math.inf
            elif isinstance(value, bool) != (kind == "bool") or not isinstance(
                value, (*accepted[kind], bool)
            ):
                raise SchemeError(f"{name} of the cluster is {value!r}, which is no {kind}")
        if "num_workers" not in entries:
            raise SchemeError("the cluster does not say num_workers")
        return cls(**entries)
