# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Reservations of all that is granted and has not ended, and what they leave of the network."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from ..network import Links, ResidualNetwork, TransferNetwork
from ..residual_rate import RateSpan


class Carried(enum.Enum):
    """What a reservation is for; with a number, it names the reservation."""

    UPDATE = enum.auto()
    """By transfer id: the leg to the next hop."""
    SUM = enum.auto()
    """By group id: the leg to the server; at a switch, all legs."""
    MODEL = enum.auto()
    """By id of the model's request."""
    REPLICA = enum.auto()
    """By transfer id: the leg to the replica."""
    CHUNK = enum.auto()
    """By number of the leg: a piece of an allreduce."""


@dataclass(kw_only=True)
class _Reservation:
    links: Links
    spans: list[RateSpan]
    planned_end_s: float
    may_be_late: bool


class OpenTransfers:
    """Holds reservations until their transfers end, however late that is.

    Cost: O(links x steps) for a change of one reservation.
    """

    def __init__(self, network: TransferNetwork) -> None:
        self.residual = ResidualNetwork(network)
        """Below 0 where a link has shrunk, or where late transfers take more than is free."""
        self._open: dict[tuple[Carried, int], _Reservation] = {}

    def hold(
        self,
        what: tuple[Carried, int],
        links: Links,
        spans: Sequence[RateSpan],
        *,
        may_be_late: bool = True,
    ) -> None:
        """Keep spans that are reserved in `residual` already.

        With `may_be_late` False, nothing is reserved beyond the plan.
        """
        if spans:
            end_s = spans[-1].end_s
            self._open[what] = _Reservation(
                links=links, spans=list(spans), planned_end_s=end_s, may_be_late=may_be_late
            )

    def release(self, what: tuple[Carried, int], now_s: float) -> None:
        """Give back what a transfer has reserved from now on, if it is open."""
        found = self._open.pop(what, None)
        if found:
            self.residual.release(found.links, found.spans, now_s)

    def extend_late(self, now_s: float) -> None:
        """Reserve more for transfers that should have ended.

        Each is taken to go on at its last rate for as long as it has been late (ours). It takes
        that beside the plans of others, so that nothing further is planned at that time.
        """
        for each in self._open.values():
            if each.may_be_late and each.spans[-1].end_s < now_s:
                late_s = now_s - each.planned_end_s
                more = each.spans[-1]._replace(start_s=now_s, end_s=now_s + late_s)
                self.residual.reserve(each.links, [more], may_exceed=True)
                each.spans.append(more)
