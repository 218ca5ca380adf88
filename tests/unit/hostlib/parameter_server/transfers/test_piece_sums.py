# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Pieces of vectors, their sums in the members' order, and what members tell each other."""

from __future__ import annotations

import itertools
import json
from typing import Any, cast

import numpy as np
import pytest

from member_scene import sum_in_order, vectors_of
from switchfold.hostlib.control.stations.allreduce_terms import VectorPiece
from switchfold.hostlib.errors import (
    ExchangeTimeoutError,
    HostlibError,
    MemberLostError,
    PeerMismatchError,
    PeerProtocolError,
    UpdateRefusedError,
)
from switchfold.hostlib.parameter_server.rules import Values
from switchfold.hostlib.parameter_server.transfers.allreduces.member_message import (
    MOST_TEXT,
    MemberKind,
    MemberMessage,
    _error_of,
    pack_error,
)
from switchfold.hostlib.parameter_server.transfers.allreduces.piece_sum import PieceSum
from switchfold.hostlib.parameter_server.transfers.allreduces.running_allreduce import (
    RunningAllreduce,
)
from switchfold.hostlib.parameter_server.transfers.allreduces.vector_pieces import (
    PIECES,
    equal_pieces,
    legs_of,
)


class FakeMessage:
    """Values that have come."""

    def __init__(
        self, sender: int, vector: Values, start_byte: int, kind: MemberKind = MemberKind.PART
    ) -> None:
        self.sender, self.start_byte, self.kind = sender, start_byte, kind
        self._vector = vector
        self.num_bytes = vector.nbytes

    def values(self) -> Values:
        return self._vector


def message(*args: Any) -> MemberMessage:
    return cast("MemberMessage", FakeMessage(*args))


@pytest.mark.parametrize("own_id", range(4))
def test_sums_do_not_depend_on_what_comes_first(own_id: int) -> None:
    vectors = vectors_of(4, 257)
    wanted = sum_in_order(vectors).tobytes()
    assert wanted != sum_in_order(vectors[::-1]).tobytes()  # the order matters
    others = [number for number in range(4) if number != own_id]
    for order in itertools.permutations(others):
        made = PieceSum(VectorPiece(own_id, 0, 4 * 257), vectors[own_id], own_id, 4)
        freed: list[MemberMessage] = []
        for place, sender in enumerate(order):
            assert not made.is_complete
            assert made.missing == set(order[place:])
            freed += made.take(message(sender, vectors[sender], 0))
        assert made.is_complete
        assert made.total is not None
        assert made.total.tobytes() == wanted
        assert sorted(each.sender for each in freed) == others
    assert [vector.tobytes() for vector in vectors] == [
        vector.tobytes() for vector in vectors_of(4, 257)
    ]


def test_values_that_come_twice_count_once() -> None:
    ones = np.ones(4, np.float32)
    made = PieceSum(VectorPiece(0, 0, 16), ones, 0, 3)
    for sender in (2, 2, 1, 1, 2):
        again = message(sender, ones, 0)
        freed = made.take(again)
        assert sender == 2 or again in freed
    assert made.total is not None
    assert made.total.tolist() == [3.0] * 4
    waiting = PieceSum(VectorPiece(0, 0, 16), ones, 0, 3)
    early = message(2, ones, 0)
    assert not waiting.take(early)
    assert waiting.drop() == [early]


@pytest.mark.parametrize("num_members", [2, 3, 7])
@pytest.mark.parametrize("num_values", [1, 2, 3, 5, 27, 28, 29, 1001])
def test_equal_pieces_cover_the_vector(num_values: int, num_members: int) -> None:
    pieces = equal_pieces(num_values, num_members)
    stop = 0
    for piece in pieces:
        assert piece.start_byte == stop < piece.stop_byte
        assert not piece.num_bytes % 4
        stop = piece.stop_byte
    assert stop == 4 * num_values
    assert [piece.root_id for piece in pieces] == sorted(piece.root_id for piece in pieces)
    sizes = [piece.num_bytes // 4 for piece in pieces]
    if num_values >= PIECES * num_members:
        assert len(pieces) == PIECES * num_members
        assert max(sizes) - min(sizes) <= 1
    for worker_id in range(num_members):
        for place, receiver in legs_of(pieces, worker_id, num_members):
            assert receiver != worker_id
            assert worker_id == pieces[place].root_id or receiver == pieces[place].root_id
    legs = sum(len(legs_of(pieces, each, num_members)) for each in range(num_members))
    assert legs == 2 * (num_members - 1) * len(pieces)


def test_members_need_values_and_sums_of_each_other() -> None:
    vectors = vectors_of(3, 60)
    running = RunningAllreduce(1, vectors[0], 0, 3)
    assert not running.is_begun
    assert not running.is_complete
    held = message(1, vectors[1][:20], 0)
    assert not running.is_due(held)
    running.begin([VectorPiece(0, 0, 80), VectorPiece(2, 80, 240)], is_direct=False)
    assert running.missing == {1, 2}
    assert running.is_due(held)
    assert not running.is_due(message(2, vectors[2][:20], 0))  # the first one is added before
    assert running.take_part(held) == (None, [held])
    last = message(2, vectors[2][:20], 0)
    total, freed = running.take_part(last)
    assert total is not None
    assert freed == [last]
    assert running.take_part(last) == (None, [last])  # it has come before
    assert running.missing == {2}
    for wrong in (message(1, vectors[1][20:], 80), message(2, vectors[2][20:], 0)):
        with pytest.raises(PeerMismatchError, match=f"worker {wrong.sender} sends bytes"):
            running.take_sum(wrong)
    with pytest.raises(PeerMismatchError, match="its vector has 240 bytes"):
        running.take_part(message(2, vectors[2][:30], 0))
    wanted = sum_in_order(vectors)
    running.take_sum(message(2, wanted[20:], 80))
    assert running.is_complete
    assert running.result.tobytes() == wanted.tobytes()


def test_what_a_grant_has_brought_is_dropped_without_it() -> None:
    vectors = vectors_of(3, 12)
    running = RunningAllreduce(1, vectors[0], 0, 3)
    running.begin([VectorPiece(0, 0, 48)], is_direct=False)
    early = message(2, vectors[2], 0)
    assert running.take_part(early) == (None, [])
    assert running.begin([VectorPiece(0, 0, 48)], is_direct=True) == [early]
    assert running.is_due(message(2, vectors[2], 0))  # it is thrown away
    assert not running.is_due(message(2, vectors[2], 0, MemberKind.DIRECT_PART))
    assert running.is_due(message(1, vectors[1], 0, MemberKind.DIRECT_PART))
    running.held.append(early)
    assert running.drop() == [early]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (MemberLostError("a text", 3), MemberLostError),
        (ExchangeTimeoutError("a text", [1, 3]), ExchangeTimeoutError),
        (PeerMismatchError("a text"), PeerMismatchError),
        (UpdateRefusedError("a text"), PeerProtocolError),
    ],
)
def test_errors_of_members_come_with_their_names(
    error: HostlibError, kind: type[HostlibError]
) -> None:
    found = _error_of(bytes(pack_error(error)), 5)
    assert type(found) is kind
    assert str(found) == "a text (as worker 5 says)"
    if isinstance(found, MemberLostError):
        assert found.worker_id == 3
    if isinstance(found, ExchangeTimeoutError):
        assert found.worker_ids == [1, 3]


@pytest.mark.parametrize("payload", [b"", b"\xff", b"[]", b"{}", b'{"kind": 1, "text": 2}'])
def test_failures_that_say_nothing_usable_are_failures(payload: bytes) -> None:
    assert isinstance(_error_of(payload, 1), PeerProtocolError)


def test_long_texts_of_failures_are_cut() -> None:
    described = json.loads(bytes(pack_error(PeerMismatchError("x" * 10_000))))
    assert len(described["text"]) == MOST_TEXT
