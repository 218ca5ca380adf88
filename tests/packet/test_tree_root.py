# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The root of a tree: quorums, partial results, and children with several workers behind them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from packet_frames import Datagram, change
from packet_target import Target, check_exchange
from packet_tree import Child, Node, Parent, switch, worker
from switchfold.hostlib.slots.wire import Flag, Operation, Outcome

OpenNode = Callable[..., Node]
WORKERS = tuple(
    Child(child_id=w, port=w + 1, station=worker(w), contributor_mask=1 << w) for w in range(4)
)
SWITCHES = (
    Child(child_id=0, port=1, station=switch(1), contributor_mask=0b00111, max_contributors=3),
    Child(child_id=1, port=2, station=switch(2), contributor_mask=0b11000, max_contributors=2),
)


def send(
    target: Target,
    node: Node,
    datagram: Datagram,
    outcome: Outcome,
    expected: list[tuple[int, bytes]] | None = None,
) -> None:
    port, frame = node.from_child(int(datagram["header"]["worker_id"]), datagram)
    check_exchange(target, port, frame, outcome, expected or [])


def result(
    datagram: Datagram, values: int, bitmap: int, *, count: int | None = None, flags: int = 0
) -> Datagram:
    return change(
        datagram,
        values,
        operation=Operation.RESULT,
        flags=flags,
        worker_bitmap=bitmap,
        num_contributors=bitmap.bit_count() if count is None else count,
    )


def test_tree_root_closes_at_its_quorum(target: Target, open_node: OpenNode) -> None:
    root = open_node(station=switch(9), children=WORKERS, quorum=3, allow_partial=True)
    send(target, root, root.packet(3, 1), Outcome.ABSORBED)
    send(target, root, root.packet(0, 2), Outcome.ABSORBED)
    third = root.packet(1, 4)
    partial = result(third, 7, 0b1011, flags=Flag.PARTIAL)
    send(target, root, third, Outcome.COMPLETED, root.to_children(partial))
    for late in (root.packet(2, 8), root.packet(0, 2), root.packet(1, operation=Operation.FLUSH)):
        child_id = int(late["header"]["worker_id"])
        answer = change(partial, worker_id=child_id, flags=Flag.PARTIAL | Flag.REPLAY)
        send(target, root, late, Outcome.REPLAYED, root.to_child(child_id, answer))


def test_tree_root_quorum_counts_workers_not_children(target: Target, open_node: OpenNode) -> None:
    root = open_node(station=switch(9), children=SWITCHES, quorum=3, allow_partial=True)
    some = root.packet(1, 1)
    send(target, root, some, Outcome.ABSORBED)
    more = root.packet(0, 2, worker_bitmap=0b010, num_contributors=1)
    partial = result(more, 3, 0b11010, flags=Flag.PARTIAL)
    send(target, root, more, Outcome.COMPLETED, root.to_children(partial))


def test_tree_root_of_two_switches_adds_counts(target: Target, open_node: OpenNode) -> None:
    root = open_node(station=switch(9), children=SWITCHES)
    send(target, root, root.packet(0, 100), Outcome.ABSORBED)
    last = root.packet(1, 11)
    answer = result(last, 111, 0b11111)
    send(target, root, last, Outcome.COMPLETED, root.to_children(answer))
    answer = change(answer, worker_id=0, flags=Flag.REPLAY)
    send(target, root, root.packet(0, 100), Outcome.REPLAYED, root.to_child(0, answer))


def test_tree_root_is_partial_as_long_as_anybody_lacks(target: Target, open_node: OpenNode) -> None:
    # All children have contributed, but not all workers behind them.
    root = open_node(station=switch(9), children=SWITCHES, allow_partial=True)
    some = root.packet(0, 1, worker_bitmap=0b100, num_contributors=1)
    send(target, root, some, Outcome.ABSORBED)
    last = root.packet(1, 2)
    answer = result(last, 3, 0b11100, flags=Flag.PARTIAL)
    send(target, root, last, Outcome.COMPLETED, root.to_children(answer))


def test_tree_root_flush_says_so(target: Target, open_node: OpenNode) -> None:
    root = open_node(station=switch(9), children=SWITCHES, allow_partial=True, level=2)
    send(target, root, root.packet(0, 1), Outcome.ABSORBED)
    for level in (0, 1):
        flush = root.packet(1, operation=Operation.FLUSH, num_contributors=level)
        send(target, root, flush, Outcome.FLUSH_IGNORED)
    flush = root.packet(1, operation=Operation.FLUSH, num_contributors=2)
    answer = result(flush, 1, 0b111, flags=Flag.PARTIAL | Flag.FLUSHED)
    send(target, root, flush, Outcome.FLUSHED, root.to_children(answer))


@pytest.mark.parametrize("flag", [Flag.OVERFLOW, Flag.ECN_ECHO])
@pytest.mark.parametrize("child_id", [0, 1])
def test_tree_root_gathers_flags_from_below(
    target: Target, open_node: OpenNode, flag: Flag, child_id: int
) -> None:
    root = open_node(station=switch(9), children=SWITCHES)
    first, last = (root.packet(c, 1, flags=flag if c == child_id else 0) for c in (0, 1))
    send(target, root, first, Outcome.ABSORBED)
    answer = result(last, 2, 0b11111, flags=flag)
    send(target, root, last, Outcome.COMPLETED, root.to_children(answer))
    first, last = root.packet(0, 1, round=3), root.packet(1, 1, round=3)
    send(target, root, first, Outcome.ABSORBED)
    answer = result(last, 2, 0b11111)
    send(target, root, last, Outcome.COMPLETED, root.to_children(answer))


def test_tree_root_other_flags_from_below_mean_nothing(target: Target, open_node: OpenNode) -> None:
    root = open_node(station=switch(9), children=SWITCHES)
    wrong = 0xFFFF & ~(Flag.OVERFLOW | Flag.ECN_ECHO | Flag.LAST | Flag.TO_SERVER)
    send(target, root, root.packet(0, 1, flags=wrong), Outcome.ABSORBED)
    last = root.packet(1, 1, flags=wrong)
    answer = result(last, 2, 0b11111)
    send(target, root, last, Outcome.COMPLETED, root.to_children(answer))


def test_tree_root_bits_of_big_views_are_children(target: Target, open_node: OpenNode) -> None:
    # 1000 workers behind child 31, 40 behind child 2: their bits are those of the children.
    children = (
        Child(child_id=2, port=1, station=switch(1), contributor_mask=1 << 2, max_contributors=40),
        Child(
            child_id=31, port=2, station=switch(2), contributor_mask=1 << 31, max_contributors=1000
        ),
    )
    root = open_node(station=switch(9), children=children)
    send(target, root, root.packet(31, 5), Outcome.ABSORBED)
    send(target, root, root.packet(31, 5), Outcome.DUPLICATE)
    last = root.packet(2, 6)
    answer = result(last, 11, 1 << 31 | 1 << 2, count=1040)
    send(target, root, last, Outcome.COMPLETED, root.to_children(answer))


def test_tree_inner_of_a_big_view_contributes_with_its_own_bit(
    target: Target, open_node: OpenNode
) -> None:
    parent = Parent(port=4, station=switch(9), child_id=31, child_bitmap=1 << 31)
    leaf = open_node(station=switch(1), children=WORKERS[:2], parent=parent)
    send(target, leaf, leaf.packet(0, 5), Outcome.ABSORBED)
    last = leaf.packet(1, 6)
    up = change(last, 11, worker_id=31, worker_bitmap=1 << 31, num_contributors=2)
    send(target, leaf, last, Outcome.SENT_UP, leaf.to_parent(up))
    # Here, bits still stand for this switch's children.
    probe = leaf.packet(0, operation=Operation.PROBE, round=3)
    notice = change(probe, operation=Operation.NOTICE, round=1, worker_bitmap=3, num_contributors=2)
    send(target, leaf, probe, Outcome.NOTIFIED, leaf.to_child(0, notice))
