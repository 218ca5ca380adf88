# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Only the parent may send results, and a child contributes only for the workers behind it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from packet_frames import change
from packet_target import Target, check_exchange
from packet_tree import ECN_CAPABLE, Child, Node, Parent, make_frame, switch, worker
from switchfold.hostlib.slots.wire import Operation, Outcome

OpenNode = Callable[..., Node]
WORKERS = tuple(
    Child(child_id=w, port=w + 1, station=worker(w), contributor_mask=1 << w) for w in (0, 1)
)
SWITCHES = (
    Child(child_id=0, port=1, station=switch(1), contributor_mask=0b0111, max_contributors=3),
    Child(child_id=1, port=2, station=switch(2), contributor_mask=0b1000, max_contributors=1),
)
PARENT = Parent(port=4, station=switch(9), child_id=3)
FROM_ABOVE = (Operation.RESULT, Operation.NOTICE)


def check_sum_is_untouched(target: Target, node: Node) -> None:
    """Complete the round that worker 0 has begun with 5; the sum must be that of the two."""
    second = node.packet(1, 6)
    up = change(second, 11, worker_id=PARENT.child_id, worker_bitmap=3, num_contributors=2)
    port, frame = node.from_child(1, second)
    check_exchange(target, port, frame, Outcome.SENT_UP, node.to_parent(up))


@pytest.mark.parametrize("operation", FROM_ABOVE)
@pytest.mark.parametrize("allow_partial", [False, True])
def test_tree_isolation_spoofed_result(
    target: Target, open_node: OpenNode, operation: int, allow_partial: bool
) -> None:
    leaf = open_node(
        station=switch(1), children=WORKERS, parent=PARENT, allow_partial=allow_partial
    )
    check_exchange(target, *leaf.from_child(0, leaf.packet(0, 5)), Outcome.ABSORBED)
    for round_ in (1, 3):
        spoofed = leaf.packet(0, 666, operation=operation, round=round_, worker_bitmap=0xF)
        # With worker 1's address from its port, with the parent's address from that port, and with
        # worker 1's address from the parent's port.
        own = leaf.from_parent(spoofed, sender=worker(1))
        check_exchange(target, 2, own, Outcome.FOREIGN_RESULT)
        check_exchange(target, 2, leaf.from_parent(spoofed), Outcome.FOREIGN_RESULT)
        check_exchange(target, PARENT.port, own, Outcome.FOREIGN_RESULT)
    check_sum_is_untouched(target, leaf)


@pytest.mark.parametrize("operation", FROM_ABOVE)
def test_tree_isolation_root_takes_no_results(
    target: Target, open_node: OpenNode, operation: int
) -> None:
    root = open_node(station=switch(9), children=SWITCHES)
    spoofed = root.packet(0, 666, operation=operation)
    check_exchange(target, *root.from_child(0, spoofed), Outcome.FOREIGN_RESULT)
    port, frame = root.from_child(0, spoofed, port=4)
    check_exchange(target, port, frame, Outcome.FOREIGN_RESULT)


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"generation": 1}, Outcome.BAD_GENERATION),
        ({"slot_index": 4}, Outcome.BAD_SLOT),
        ({"job_id": 0xFFFE}, Outcome.FOREIGN_JOB),
        ({"range_end": 0}, Outcome.BAD_RANGE),
    ],
)
@pytest.mark.parametrize("operation", FROM_ABOVE)
def test_tree_isolation_parents_packets_are_checked_too(
    target: Target, open_node: OpenNode, operation: int, fields: dict[str, int], outcome: Outcome
) -> None:
    leaf = open_node(station=switch(1), children=WORKERS, parent=PARENT)
    check_exchange(target, *leaf.from_child(0, leaf.packet(0, 5)), Outcome.ABSORBED)
    packet = leaf.packet(0, 666, **{"operation": operation, **fields})
    check_exchange(target, PARENT.port, leaf.from_parent(packet), outcome)
    check_sum_is_untouched(target, leaf)


@pytest.mark.parametrize(
    "fields",
    [
        {"worker_bitmap": 0},
        {"worker_bitmap": 0b1000},
        {"worker_bitmap": 0b1111},
        {"num_contributors": 0},
        {"num_contributors": 4},
        {"num_contributors": 0xFFFF},
    ],
)
@pytest.mark.parametrize("operation", [Operation.AGGREGATE_ADD, Operation.AGGREGATE_MAX])
def test_tree_isolation_contribution_beyond_the_child(
    target: Target, open_node: OpenNode, operation: int, fields: dict[str, int]
) -> None:
    root = open_node(station=switch(9), children=SWITCHES)
    packet = root.packet(0, **{"operation": operation, **fields})
    check_exchange(target, *root.from_child(0, packet), Outcome.BAD_CONTRIBUTION)


@pytest.mark.parametrize("bitmap", [0b001, 0b110, 0b111])
def test_tree_isolation_part_of_the_child_is_enough(
    target: Target, open_node: OpenNode, bitmap: int
) -> None:
    root = open_node(station=switch(9), children=SWITCHES)
    packet = root.packet(0, 5, worker_bitmap=bitmap, num_contributors=bitmap.bit_count())
    check_exchange(target, *root.from_child(0, packet), Outcome.ABSORBED)
    last = root.packet(1, 6)
    result = change(
        last,
        11,
        operation=Operation.RESULT,
        flags=0 if bitmap == 0b111 else 1,
        worker_bitmap=bitmap | 0b1000,
        num_contributors=bitmap.bit_count() + 1,
    )
    check_exchange(target, *root.from_child(1, last), Outcome.COMPLETED, root.to_children(result))


def test_tree_isolation_worker_is_no_child_of_the_parent(
    target: Target, open_node: OpenNode
) -> None:
    root = open_node(station=switch(9), children=SWITCHES)
    # A worker behind child 0 knows all of the child's fields, but has another address or port.
    packet = root.packet(0, 666)
    own = make_frame(worker(2), root.station, packet)
    check_exchange(target, 1, own, Outcome.FOREIGN_WORKER)
    check_exchange(target, *root.from_child(0, packet, port=3), Outcome.FOREIGN_WORKER)


def test_tree_isolation_forged_destination_stays_with_the_sender(
    target: Target, open_node: OpenNode
) -> None:
    """A switch sends from the address that it was sent to: no other switch takes such a packet,
    and it reaches only the sender's own tree."""
    somebody = switch(7)
    leaf = open_node(station=switch(1), children=WORKERS, parent=PARENT)
    check_exchange(target, *leaf.from_child(0, leaf.packet(0, 5)), Outcome.ABSORBED)
    second = leaf.packet(1, 6)
    up = change(second, 11, worker_id=PARENT.child_id, worker_bitmap=3, num_contributors=2)
    forged = make_frame(somebody, PARENT.station, up, tos=ECN_CAPABLE)
    frame = make_frame(worker(1), somebody, second)
    check_exchange(target, 2, frame, Outcome.SENT_UP, [(PARENT.port, forged)])

    root = open_node(station=PARENT.station, children=SWITCHES)
    child = SWITCHES[0]
    own = make_frame(somebody, root.station, root.packet(child.child_id, 5))
    check_exchange(target, child.port, own, Outcome.FOREIGN_WORKER)
    # A proper retransmission is answered as usual: the sum goes up again from the leaf's address.
    check_exchange(
        target, *leaf.from_child(0, leaf.packet(0, 5)), Outcome.RESENT, leaf.to_parent(up)
    )
