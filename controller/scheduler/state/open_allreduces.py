# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Allreduces that are under way, beside updates and models: MLfabric names the call (ours)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import UnknownTransferError
from ..planning.allreduce_plan import AllreducePlan, plan_allreduce
from .open_transfers import Carried, OpenTransfers


@dataclass(frozen=True, kw_only=True)
class AllreduceGrant:
    """All legs of an allreduce may travel, as planned."""

    number: int
    """Unique in the job."""
    plan: AllreducePlan


class OpenAllreduces:
    """Plans allreduces in what other transfers leave, and holds their reservations."""

    def __init__(self, open_transfers: OpenTransfers) -> None:
        self._open = open_transfers
        self._numbers = itertools.count()
        self._leg_numbers = itertools.count()
        self._legs: dict[int, list[int]] = {}
        """By allreduce, numbers of the legs in the order of `plan.up`, then `plan.down`."""

    def begin(
        self,
        members: Sequence[str],
        size_bytes: int,
        now_s: float,
        helpers: Sequence[str],
        value_bytes: int,
    ) -> AllreduceGrant:
        """Plan an allreduce and reserve it. Raises what `plan_allreduce` does."""
        plan = plan_allreduce(
            self._open.residual, members, size_bytes, now_s, helpers, value_bytes=value_bytes
        )
        number = next(self._numbers)
        self._legs[number] = []
        for leg in (*plan.up, *plan.down):
            leg_number = next(self._leg_numbers)
            self._legs[number].append(leg_number)
            # A leg waits for others, so only what is reserved for it is known.
            name = Carried.CHUNK, leg_number
            self._open.hold(name, leg.links, leg.spans, may_be_late=False)
        return AllreduceGrant(number=number, plan=plan)

    def end(self, number: int, now_s: float) -> None:
        """Give back what is left of an allreduce that has ended, or was given up."""
        legs = self._legs.pop(number, None)
        if legs is None:
            raise UnknownTransferError(
                f"allreduce {number} is not under way: it is unknown, or has ended"
            )
        for leg_number in legs:
            self._open.release((Carried.CHUNK, leg_number), now_s)
