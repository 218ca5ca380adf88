# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Cells of the grid as the simulator has them, for links and models of this run's size.

The simulator's scenario is the scale: an update that its link carries in 1 s, and half of that to
compute. Models here are smaller, so links are narrower, and computing is as much shorter as an
update's transfer is. Periods of redrawn links stay 5 s.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from benchmarks.simulator.contenders import tau_max_of
from benchmarks.simulator.link_trace import link_rate_changes, link_trace
from benchmarks.simulator.scenario import Scenario
from benchmarks.simulator.traces import ComputeSetting, ComputeTrace, LinkSetting, LinkTrace
from benchmarks.support.limits import host_allreduce_limit_s, ring_limit_s
from switchfold.bmv2_topos.network.rate_trace import LinkRateChange
from switchfold.hostlib.schemes.tcp import TCP_FRAME_BYTES, TCP_PAYLOAD_BYTES

SIMULATED: Final = Scenario(num_workers=8, seed=0)
"""What rates and computing times are scaled from."""
VALUE_BYTES: Final = 4
_PAYLOAD_SHARE: Final = TCP_PAYLOAD_BYTES / TCP_FRAME_BYTES


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One setting of links and computing, with one seed."""

    links: LinkSetting
    computing: ComputeSetting
    seed: int

    @property
    def name(self) -> str:
        """Name both settings."""
        return cell_name(self.links, self.computing)


@dataclass(frozen=True, kw_only=True)
class ClusterSize:
    """Workers on the first hosts of a switch, and one server on the last host."""

    num_workers: int
    num_values: int
    """Of the model, float32."""
    rate_bits_per_s: int
    """Nominal, of each host's link in each direction."""

    @property
    def model_bytes(self) -> int:
        """Payload of a model, and of an update."""
        return VALUE_BYTES * self.num_values

    @property
    def transfer_s(self) -> float:
        """How long an update takes alone on a link of the nominal rate, headers of TCP included."""
        return 8 * self.model_bytes / (_PAYLOAD_SHARE * self.rate_bits_per_s)

    @property
    def compute_s(self) -> float:
        """Nominal computing time: as long as the simulator's for its transfers."""
        simulated_s = 8 * SIMULATED.update_bytes / SIMULATED.link_bits_per_s
        return SIMULATED.compute_s * self.transfer_s / simulated_s

    @property
    def tau_max(self) -> int:
        """The delay bound of scheduled updates, as the simulator's."""
        return tau_max_of(self.num_workers)

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """Names as the trace has them: the workers, then the server."""
        return tuple(f"h{number + 1}" for number in range(self.num_workers + 1))

    def link_trace(self, cell: Cell) -> LinkTrace:
        """Return the shares of the links' rates over time."""
        return link_trace(cell.links, cell.seed, len(self.hosts))

    def compute_trace(self, cell: Cell) -> ComputeTrace:
        """Return the computing times."""
        return ComputeTrace(cell.computing, cell.seed, self.num_workers, self.compute_s)


@dataclass(frozen=True, kw_only=True)
class RateOverTime:
    """The shares of a cell's links, period by period, on a cluster."""

    size: ClusterSize
    trace: LinkTrace

    def period(self, time_s: float) -> int:
        """Return the period of a time since the run began."""
        return int(time_s // self.trace.period_s) if self.trace.changes else 0

    def share(self, host: str, time_s: float) -> float:
        """Return the share of its nominal rate that a host's link has."""
        return self.trace.shares(self.period(time_s))[host]

    def changes(self, until_s: float) -> list[LinkRateChange]:
        """Return the rates that links get, until a time."""
        return [*link_rate_changes(self.trace, self.size.rate_bits_per_s, until_s)]

    def server_limit(self, until_s: float) -> float:
        """Return the most updates that the server's link lets in, or models out, until a time."""
        return self._over_periods(
            until_s, lambda shares: shares[self.size.hosts[-1]] / self.size.transfer_s
        )

    def ring_limit(self, until_s: float) -> float:
        """Return the most updates of a ring among the workers, n in each of its steps."""
        return self._sum_limit(
            until_s, lambda size, rates: ring_limit_s(size, min(rates), len(rates))
        )

    def allreduce_limit(self, until_s: float) -> float:
        """Return the most updates of any sums among the workers, n in each of them."""
        return self._sum_limit(until_s, host_allreduce_limit_s)

    def _sum_limit(self, until_s: float, step_s: Callable[[int, list[float]], float]) -> float:
        """`step_s` returns the least time of a sum of so many bytes over links of these rates."""

        def per_s(shares: dict[str, float]) -> float:
            rates = [self.size.rate_bits_per_s * shares[host] for host in self.size.hosts[:-1]]
            return self.size.num_workers / step_s(self.size.model_bytes, rates)

        return self._over_periods(until_s, per_s)

    def _over_periods(self, until_s: float, per_s: Callable[[dict[str, float]], float]) -> float:
        if not self.trace.changes:
            return until_s * per_s(self.trace.shares(0))
        length = self.trace.period_s
        return math.fsum(
            min(length, until_s - period * length) * per_s(self.trace.shares(period))
            for period in range(1 + self.period(until_s))
        )


def cell_name(links: LinkSetting, computing: ComputeSetting) -> str:
    """Name both settings."""
    return f"links {links.value}, computing {computing.value}"
