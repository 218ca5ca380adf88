# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One allreduce at one member: which values it adds up, and which sums it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from ....control.stations.allreduce_terms import VectorPiece
from ....errors import PeerMismatchError
from ...rules import Values
from .member_message import MemberKind, MemberMessage
from .piece_sum import PieceSum
from .vector_pieces import values_of


@final
class RunningAllreduce:
    """Knows nothing of time and sockets. It begins when its pieces are known; it may begin again.

    Members get the sums of a piece from its root alone, so all have the same bytes.
    """

    def __init__(self, number: int, vector: Values, own_id: int, num_members: int) -> None:
        self.number = number
        self.vector = vector
        self.result = np.empty_like(vector)
        self.pieces: Sequence[VectorPiece] = ()
        """Empty until it begins."""
        self.is_direct = False
        """Whether it goes on without a grant."""
        self.held: list[MemberMessage] = []
        """Values that came before it began."""
        self._own_id = own_id
        self._num_members = num_members
        self._sums: dict[int, PieceSum] = {}
        """By first byte: the pieces whose root is this member."""
        self._awaited: dict[int, VectorPiece] = {}
        """By first byte: pieces of others whose sums have not come."""

    @property
    def is_begun(self) -> bool:
        """Whether its pieces are known."""
        return bool(self.pieces)

    @property
    def is_complete(self) -> bool:
        """Whether this member has made all its sums, and has all the others."""
        is_summed = all(each.is_complete for each in self._sums.values())
        return self.is_begun and is_summed and not self._awaited

    @property
    def missing(self) -> set[int]:
        """Members from which values or sums have not come."""
        found = {piece.root_id for piece in self._awaited.values()}
        return found.union(*(each.missing for each in self._sums.values()))

    def begin(self, pieces: Sequence[VectorPiece], *, is_direct: bool) -> list[MemberMessage]:
        """Learn the pieces; return the messages whose memory is not needed any more."""
        dropped = self._drop_sums()
        self.pieces, self.is_direct = pieces, is_direct
        own_id, count = self._own_id, self._num_members
        self._sums = {
            piece.start_byte: PieceSum(piece, values_of(self.vector, piece), own_id, count)
            for piece in pieces
            if piece.root_id == own_id
        }
        self._awaited = {each.start_byte: each for each in pieces if each.root_id != own_id}
        return dropped

    def is_due(self, message: MemberMessage) -> bool:
        """Return whether values or a sum are used as soon as they are there."""
        if message.kind not in (MemberKind.PART, MemberKind.DIRECT_PART):
            return True
        if message.kind.is_direct != self.is_direct:
            return self.is_direct  # those of the grant that was given up are thrown away
        found = self._sums.get(message.start_byte)
        return self.is_begun and (found is None or found.next_id == message.sender)

    def take_part(self, message: MemberMessage) -> tuple[PieceSum | None, list[MemberMessage]]:
        """Take a member's values; return the sum that they complete, and messages not needed now.

        Raises PeerMismatchError if they are no piece of this member.
        """
        found = self._sums.get(message.start_byte)
        if found is None or found.piece.num_bytes != message.num_bytes:
            raise self._mismatch(message)
        was_complete, used = found.is_complete, found.take(message)
        if was_complete or not found.is_complete:
            return None, used
        assert found.total is not None, "it is complete"
        values_of(self.result, found.piece)[:] = found.total
        return found, used

    def take_sum(self, message: MemberMessage) -> None:
        """Take the sum of a piece. Raises PeerMismatchError if its sender makes no such sum."""
        piece = self._awaited.get(message.start_byte)
        sent = message.sender, message.num_bytes
        if piece is None or (piece.root_id, piece.num_bytes) != sent:
            raise self._mismatch(message)
        del self._awaited[message.start_byte]
        values_of(self.result, piece)[:] = message.values()

    def drop(self) -> list[MemberMessage]:
        """Give it up; return the messages whose memory is not needed any more."""
        held, self.held = self.held, []
        return [*held, *self._drop_sums()]

    def _drop_sums(self) -> list[MemberMessage]:
        return [message for each in self._sums.values() for message in each.drop()]

    def _mismatch(self, message: MemberMessage) -> PeerMismatchError:
        start, stop = message.start_byte, message.start_byte + message.num_bytes
        return PeerMismatchError(
            f"allreduce {self.number}: worker {message.sender} sends bytes {start} to {stop}, which"
            f" worker {self._own_id} does not expect: its vector has {self.vector.nbytes} bytes."
            " Let all members make the same calls, with vectors of one length"
        )
