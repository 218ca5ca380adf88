# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A switch below the root: it sends sums up, stores results, and answers with them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from packet_frames import CONGESTION_EXPERIENCED, Datagram, change
from packet_target import Target, check_exchange
from packet_tree import Child, Node, Parent, switch, worker
from switchfold.hostlib.slots.wire import Flag, Operation, Outcome

OpenNode = Callable[..., Node]
LEAF = switch(1)
CHILDREN = tuple(
    Child(child_id=w, port=w + 1, station=worker(w), contributor_mask=1 << w) for w in (0, 1, 2)
)
PARENT = Parent(port=4, station=switch(9), child_id=5)
PARTIAL = {"allow_partial": True}


@pytest.fixture
def leaf(open_node: OpenNode) -> Node:
    """A switch with two workers, which is child 5 of its parent."""
    return open_node(station=LEAF, children=CHILDREN[:2], parent=PARENT)


@pytest.fixture
def partial_leaf(open_node: OpenNode) -> Node:
    """The same in a job whose rounds can close without all workers."""
    return open_node(station=LEAF, children=CHILDREN[:2], parent=PARENT, **PARTIAL)


def send(
    target: Target,
    node: Node,
    datagram: Datagram,
    outcome: Outcome,
    expected: list[tuple[int, bytes]] | None = None,
    *,
    tos: int = 0,
) -> None:
    port, frame = node.from_child(int(datagram["header"]["worker_id"]), datagram, tos=tos)
    check_exchange(target, port, frame, outcome, expected or [])


def send_down(
    target: Target,
    node: Node,
    datagram: Datagram,
    outcome: Outcome,
    expected: list[tuple[int, bytes]] | None = None,
) -> None:
    check_exchange(target, PARENT.port, node.from_parent(datagram), outcome, expected or [])


def sum_up(datagram: Datagram, values: int, bitmap: int = 3, flags: int = 0) -> Datagram:
    """Return the contribution that a packet makes the leaf send."""
    return change(
        datagram,
        values,
        operation=Operation.AGGREGATE_ADD,
        flags=flags,
        worker_id=PARENT.child_id,
        worker_bitmap=bitmap,
        num_contributors=bitmap.bit_count(),
    )


def result_of(datagram: Datagram, values: int, bitmap: int = 0xF, flags: int = 0) -> Datagram:
    """Return the parent's result for a sum that went up."""
    return change(
        datagram,
        values,
        operation=Operation.RESULT,
        flags=flags,
        worker_bitmap=bitmap,
        num_contributors=bitmap.bit_count(),
    )


def fill(target: Target, node: Node, **fields: int) -> Datagram:
    """Let both workers contribute 5 and 6; return what went up."""
    first, second = node.packet(0, 5, **fields), node.packet(1, 6, **fields)
    send(target, node, first, Outcome.ABSORBED)
    up = sum_up(second, 11)
    send(target, node, second, Outcome.SENT_UP, node.to_parent(up))
    return up


def test_tree_inner_sends_the_sum_to_its_parent(target: Target, leaf: Node) -> None:
    first = leaf.packet(0, 5, exponent=200)
    second = leaf.packet(1, 6, flags=Flag.LAST, exponent=100)
    send(target, leaf, first, Outcome.ABSORBED)
    up = sum_up(second, 11, flags=Flag.LAST)
    assert up["header"]["exponent"] == 100
    send(target, leaf, second, Outcome.SENT_UP, leaf.to_parent(up))


def test_tree_inner_of_one_child_sends_up_at_once(target: Target, open_node: OpenNode) -> None:
    leaf = open_node(station=LEAF, children=CHILDREN[:1], parent=PARENT)
    datagram = leaf.packet(0, -7)
    send(target, leaf, datagram, Outcome.SENT_UP, leaf.to_parent(sum_up(datagram, -7, 1)))


def test_tree_inner_maximum_goes_up_as_one(target: Target, leaf: Node) -> None:
    operation = Operation.AGGREGATE_MAX
    first = leaf.packet(0, 5, operation=operation)
    second = leaf.packet(1, -6, operation=operation)
    send(target, leaf, first, Outcome.ABSORBED)
    up = change(sum_up(second, 5), operation=operation)
    send(target, leaf, second, Outcome.SENT_UP, leaf.to_parent(up))
    up = change(up, worker_id=PARENT.child_id)
    send(target, leaf, first, Outcome.RESENT, leaf.to_parent(up))


def test_tree_inner_retransmission_resends_the_sum(target: Target, leaf: Node) -> None:
    up = fill(target, leaf)
    for values, child_id in ((5, 0), (6, 1), (5, 0)):
        send(target, leaf, leaf.packet(child_id, values), Outcome.RESENT, leaf.to_parent(up))


def test_tree_inner_duplicate_before_the_sum_is_complete(target: Target, leaf: Node) -> None:
    first = leaf.packet(0, 5)
    send(target, leaf, first, Outcome.ABSORBED)
    send(target, leaf, first, Outcome.DUPLICATE)


def test_tree_inner_flags_of_contributions_go_up(target: Target, leaf: Node) -> None:
    first, second = leaf.packet(0, 5, flags=Flag.OVERFLOW), leaf.packet(1, 6)
    send(target, leaf, first, Outcome.ABSORBED)
    up = sum_up(second, 11, flags=Flag.OVERFLOW | Flag.ECN_ECHO)
    tos = CONGESTION_EXPERIENCED
    send(target, leaf, second, Outcome.SENT_UP, leaf.to_parent(up), tos=tos)


def test_tree_inner_own_overflow_goes_up(target: Target, leaf: Node) -> None:
    first, second = leaf.packet(0, 2**31 - 1), leaf.packet(1, 1)
    send(target, leaf, first, Outcome.ABSORBED)
    up = sum_up(second, 2**31 - 1, flags=Flag.OVERFLOW)
    send(target, leaf, second, Outcome.SENT_UP, leaf.to_parent(up))


def test_tree_inner_stores_the_result_and_hands_it_down(target: Target, leaf: Node) -> None:
    up = fill(target, leaf)
    flags = Flag.OVERFLOW | Flag.ECN_ECHO
    result = change(result_of(up, 1000, flags=flags), exponent=77)
    expected = leaf.to_children(result, tos=2)
    send_down(target, leaf, result, Outcome.RESULT_STORED, expected)
    for child_id in (0, 1):
        again = leaf.packet(child_id, 5)
        echoed = int(again["header"]["exponent"])
        answer = change(result, worker_id=child_id, exponent=echoed, flags=flags | Flag.REPLAY)
        send(target, leaf, again, Outcome.REPLAYED, leaf.to_child(child_id, answer))
    send_down(target, leaf, result, Outcome.RESULT_IGNORED)


def test_tree_inner_clears_the_parents_replay_flag(target: Target, leaf: Node) -> None:
    up = fill(target, leaf)
    result = result_of(up, 9, flags=Flag.REPLAY | Flag.LAST)
    handed_down = leaf.to_children(change(result, flags=Flag.LAST), tos=2)
    send_down(target, leaf, result, Outcome.RESULT_STORED, handed_down)


def test_tree_inner_marked_result_echoes_congestion(target: Target, leaf: Node) -> None:
    result = result_of(fill(target, leaf), 9)
    expected = leaf.to_children(change(result, flags=Flag.ECN_ECHO), tos=2)
    frame = leaf.from_parent(result, tos=CONGESTION_EXPERIENCED)
    check_exchange(target, PARENT.port, frame, Outcome.RESULT_STORED, expected)


def test_tree_inner_next_round_starts_after_a_result(target: Target, leaf: Node) -> None:
    up = fill(target, leaf)
    result = result_of(up, 1000, flags=Flag.OVERFLOW | Flag.PARTIAL)
    expected = leaf.to_children(result, tos=2)
    send_down(target, leaf, result, Outcome.RESULT_STORED, expected)
    fill(target, leaf, round=3)
    send(target, leaf, leaf.packet(0, 5), Outcome.STALE)
    send_down(target, leaf, result, Outcome.STALE)


@pytest.mark.parametrize("fields", [{"tensor_id": 1}, {"range_end": 7}])
def test_tree_inner_result_of_another_chunk(
    target: Target, leaf: Node, fields: dict[str, int]
) -> None:
    result = result_of(fill(target, leaf), 9)
    send_down(target, leaf, change(result, **fields), Outcome.MISMATCH)
    send_down(target, leaf, result, Outcome.RESULT_STORED, leaf.to_children(result, tos=2))


def test_tree_inner_ignores_results_that_nobody_asked_for(target: Target, leaf: Node) -> None:
    first = leaf.packet(0, 5)
    result = result_of(first, 1000)
    send_down(target, leaf, result, Outcome.RESULT_IGNORED)
    send(target, leaf, first, Outcome.ABSORBED)
    send_down(target, leaf, result, Outcome.RESULT_IGNORED)
    send_down(target, leaf, change(result, round=3), Outcome.RESULT_IGNORED)
    second = leaf.packet(1, 6)
    send(target, leaf, second, Outcome.SENT_UP, leaf.to_parent(sum_up(second, 11)))


@pytest.mark.parametrize("has_started", [False, True])
def test_tree_inner_partial_result_replaces_what_was_collected(
    target: Target, partial_leaf: Node, has_started: bool
) -> None:
    leaf, first = partial_leaf, partial_leaf.packet(0, 5)
    if has_started:
        send(target, leaf, first, Outcome.ABSORBED)
    flags = Flag.PARTIAL | Flag.FLUSHED
    result = result_of(first, 1000, 0xC, flags)
    send_down(target, leaf, result, Outcome.RESULT_STORED, leaf.to_children(result, tos=2))
    for operation in (Operation.AGGREGATE_ADD, Operation.AGGREGATE_MAX, Operation.FLUSH):
        if has_started and operation == Operation.AGGREGATE_MAX:
            continue
        late = leaf.packet(1, 6, operation=operation)
        answer = change(result, worker_id=1, flags=flags | Flag.REPLAY)
        send(target, leaf, late, Outcome.REPLAYED, leaf.to_child(1, answer))
    newer = result_of(leaf.packet(0, round=3), 2000)
    send_down(target, leaf, newer, Outcome.RESULT_STORED, leaf.to_children(newer, tos=2))
    send_down(target, leaf, result, Outcome.STALE)


def test_tree_inner_flush_sends_a_partial_sum_up(target: Target, open_node: OpenNode) -> None:
    leaf = open_node(station=LEAF, children=CHILDREN, parent=PARENT, **PARTIAL)
    send(target, leaf, leaf.packet(0, 5), Outcome.ABSORBED)
    send(target, leaf, leaf.packet(2, 7), Outcome.ABSORBED)
    flush = leaf.packet(1, 1000, operation=Operation.FLUSH)
    up = sum_up(flush, 12, 0b101)
    send(target, leaf, flush, Outcome.FLUSHED, leaf.to_parent(up))
    # A late contribution is not added; a later flush of a higher level goes to the parent.
    send(target, leaf, leaf.packet(1, 6), Outcome.RESENT, leaf.to_parent(up))
    send(target, leaf, change(flush, num_contributors=0), Outcome.FLUSH_IGNORED)
    passed_on = change(flush, worker_id=PARENT.child_id)
    send(target, leaf, flush, Outcome.RELAYED, leaf.to_parent(passed_on))
    result = result_of(up, 50, 0b1101, Flag.PARTIAL)
    send_down(target, leaf, result, Outcome.RESULT_STORED, leaf.to_children(result, tos=2))
    answer = change(result, worker_id=1, flags=Flag.PARTIAL | Flag.REPLAY)
    send(target, leaf, flush, Outcome.REPLAYED, leaf.to_child(1, answer))


def test_tree_inner_flush_of_a_maximum_goes_up_as_a_maximum(
    target: Target, partial_leaf: Node
) -> None:
    leaf = partial_leaf
    first = leaf.packet(0, 5, operation=Operation.AGGREGATE_MAX)
    send(target, leaf, first, Outcome.ABSORBED)
    flush = leaf.packet(1, operation=Operation.FLUSH)
    up = change(sum_up(flush, 5, 1), operation=Operation.AGGREGATE_MAX)
    send(target, leaf, flush, Outcome.FLUSHED, leaf.to_parent(up))


def test_tree_inner_flush_for_lower_levels_leaves_the_round_open(
    target: Target, open_node: OpenNode
) -> None:
    middle = open_node(station=LEAF, children=CHILDREN, parent=PARENT, level=2, **PARTIAL)
    send(target, middle, middle.packet(0, 5), Outcome.ABSORBED)
    for level in (0, 1):
        flush = middle.packet(1, operation=Operation.FLUSH, num_contributors=level)
        send(target, middle, flush, Outcome.FLUSH_IGNORED)
    flush = change(flush, num_contributors=2)
    up = middle.to_parent(sum_up(flush, 5, 1))
    send(target, middle, flush, Outcome.FLUSHED, up)
    send(target, middle, flush, Outcome.FLUSH_IGNORED)
    flush = change(flush, num_contributors=3)
    passed_on = middle.to_parent(change(flush, worker_id=PARENT.child_id))
    send(target, middle, flush, Outcome.RELAYED, passed_on)


def test_tree_inner_flush_of_an_unknown_round(target: Target, partial_leaf: Node) -> None:
    flush = partial_leaf.packet(0, operation=Operation.FLUSH)
    send(target, partial_leaf, flush, Outcome.FLUSH_IGNORED)


def test_tree_inner_probe_goes_up_while_the_parent_has_the_sum(target: Target, leaf: Node) -> None:
    probe = leaf.packet(0, operation=Operation.PROBE)
    send(target, leaf, leaf.packet(0, 5), Outcome.ABSORBED)
    notice = change(probe, operation=Operation.NOTICE, worker_bitmap=1, num_contributors=1)
    send(target, leaf, probe, Outcome.NOTIFIED, leaf.to_child(0, notice))
    second = leaf.packet(1, 6)
    up = sum_up(second, 11)
    send(target, leaf, second, Outcome.SENT_UP, leaf.to_parent(up))
    passed_on = change(probe, worker_id=PARENT.child_id)
    send(target, leaf, probe, Outcome.RELAYED, leaf.to_parent(passed_on))
    result = result_of(up, 9)
    send_down(target, leaf, result, Outcome.RESULT_STORED, leaf.to_children(result, tos=2))
    notice = change(notice, worker_bitmap=0xF, num_contributors=4)
    send(target, leaf, probe, Outcome.NOTIFIED, leaf.to_child(0, notice))
    other = change(probe, round=3)
    send(target, leaf, other, Outcome.NOTIFIED, leaf.to_child(0, change(notice, round=1)))


@pytest.mark.parametrize("round_", [0, 1, 2, 7])
def test_tree_inner_notice_goes_down_unchanged(target: Target, leaf: Node, round_: int) -> None:
    fill(target, leaf)
    notice = leaf.packet(0, 33, operation=Operation.NOTICE, round=round_, tensor_id=9)
    notice = change(notice, worker_id=PARENT.child_id, worker_bitmap=0xC, num_contributors=2)
    send_down(target, leaf, notice, Outcome.RELAYED, leaf.to_children(notice, tos=2))
