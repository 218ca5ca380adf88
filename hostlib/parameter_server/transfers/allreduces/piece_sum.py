# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The sum of one piece at its root, in the order of the members' ids."""

from __future__ import annotations

from typing import final

import numpy as np

from ....control.stations.allreduce_terms import VectorPiece
from ...rules import Values
from .member_message import MemberMessage


@final
class PieceSum:
    """Adds the members' values strictly by id, whatever comes first: float sums depend on it."""

    def __init__(self, piece: VectorPiece, own: Values, own_id: int, num_members: int) -> None:
        """`own`: the root's values of the piece, which stay as they are."""
        self.piece = piece
        self.total: Values | None = None
        """The sum of the members below `next_id`; it belongs to nobody else."""
        self.next_id = 0
        """The member whose values are added next."""
        self._own = own
        self._own_id = own_id
        self._num_members = num_members
        self._early: dict[int, MemberMessage] = {}
        self._add_own()

    @property
    def is_complete(self) -> bool:
        """Whether all members' values are in it."""
        return self.next_id == self._num_members

    @property
    def missing(self) -> set[int]:
        """Members whose values have not come."""
        later = range(self.next_id, self._num_members)
        return {each for each in later if each != self._own_id and each not in self._early}

    def take(self, message: MemberMessage) -> list[MemberMessage]:
        """Take a member's values; return the messages whose memory is not needed any more."""
        if message.sender not in self.missing:
            return [message]  # it has come before
        self._early[message.sender] = message
        used: list[MemberMessage] = []
        while self.next_id in self._early:
            used.append(self._early.pop(self.next_id))
            self._add(used[-1].values())
            self._add_own()
        return used

    def drop(self) -> list[MemberMessage]:
        """Give it up; return the messages whose memory is not needed any more."""
        early, self._early = self._early, {}
        return [*early.values()]

    def _add_own(self) -> None:
        if self.next_id == self._own_id:
            self._add(self._own)

    def _add(self, values: Values) -> None:
        if self.total is None:
            self.total = values.copy()
        else:
            with np.errstate(over="ignore", invalid="ignore"):  # as IEEE 754 has it, on all members
                np.add(self.total, values, out=self.total)
        self.next_id += 1
