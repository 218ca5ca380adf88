# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the links of a fabric have carried and lost, by their counters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from benchmarks.transport.fabrics import OTHERS, SERVER, WORKERS
from switchfold.bmv2_topos import Testbed

LOSSES: Final = ("lost", "burst_lost", "script_lost")
"""Counters of a relay: of what it lost on purpose."""


@dataclass(frozen=True, kw_only=True)
class LinkReading:
    """Counters of a testbed's links at one time."""

    carried: dict[tuple[str, str], int]
    """Bytes by link and direction."""
    rates: dict[str, int]
    """Bits/s by link."""
    seen: int
    """Packets that came to a place of loss."""
    lost: int
    """Those of them that were lost on purpose."""

    @classmethod
    def of(cls, testbed: Testbed) -> Self:
        """Read the counters now."""
        carried: dict[tuple[str, str], int] = {}
        for link in testbed.link_bytes():
            carried[link.host, "up"] = link.from_host_bytes
            carried[link.host, "down"] = link.to_host_bytes
        for link in testbed.switch_link_bytes():
            carried[f"{link.a}-{link.b}", "up"] = link.from_a_bytes
            carried[f"{link.a}-{link.b}", "down"] = link.from_b_bytes
        every = (*testbed.topology.links, *testbed.topology.switch_links)
        impaired = testbed.impaired_links.show()
        return cls(
            carried=carried,
            rates={link.name: link.rate_bits_per_s or 0 for link in every},
            seen=sum(each.counters["seen"] for each in impaired),
            lost=sum(each.counters[cause] for each in impaired for cause in LOSSES),
        )

    @property
    def own_bytes(self) -> int:
        """Bytes on the links of the workers and of the server."""
        ours = (*WORKERS, SERVER)
        return sum(count for (link, _), count in self.carried.items() if link in ours)

    def busiest_s(self, before: Self) -> float:
        """Return how long the busiest direction of a link needs for its bytes since `before`."""
        return max(
            8 * (count - before.carried[link, side]) / self.rates[link]
            for (link, side), count in self.carried.items()
        )

    def most_traffic(self, before: Self) -> int:
        """Return the bytes since `before` of that host of other traffic which got more."""
        return max(self.carried[h, "down"] - before.carried[h, "down"] for h in OTHERS)
