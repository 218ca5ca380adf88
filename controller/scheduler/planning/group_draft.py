# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A group of a plan that may not be the one taken: light, since most plans of a search are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..network import Links, TransferNetwork
from ..residual_rate import RateSpan
from ..transfers import PlannedTransfer, TransferGroup, TransferRequest


class DraftLeg(NamedTuple):
    """When one member's bytes are at the aggregator."""

    spans: tuple[RateSpan, ...]
    """Empty at a switch: members' packets move with the sum."""
    end_s: float


class GroupDraft(NamedTuple):
    """A group, by the places of its members in the ordered batch."""

    aggregator: str
    is_switch: bool
    first: int
    """Place of the first member; one leg for each member follows."""
    legs: Sequence[DraftLeg]
    gathered_s: float
    links: Links
    spans: tuple[RateSpan, ...]
    end_s: float

    def group(
        self, number: int, ordered: Sequence[TransferRequest], network: TransferNetwork
    ) -> TransferGroup:
        """Return the group as the scheduler's callers see it; `number` is its id in the batch."""
        requests = ordered[self.first : self.first + len(self.legs)]
        return TransferGroup(
            group_id=number,
            aggregator=self.aggregator,
            is_switch=self.is_switch,
            members=tuple(
                PlannedTransfer(
                    request=request,
                    links=network.route(request.worker, self.aggregator),
                    spans=leg.spans,
                    end_s=leg.end_s,
                )
                for request, leg in zip(requests, self.legs, strict=True)
            ),
            gathered_s=self.gathered_s,
            links=self.links,
            spans=self.spans,
            end_s=self.end_s,
        )
