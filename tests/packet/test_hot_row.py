# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Hot rows: pushes that are added up for a server, and values that the switch answers with."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from packet_frames import Datagram, change
from packet_target import Target, check_exchange
from packet_tree import Child, HotRow, Node, Parent, switch, worker
from switchfold.hostlib.slots.wire import Flag, Operation, Outcome

OpenNode = Callable[..., Node]
WORKERS = tuple(
    Child(child_id=w, port=w + 1, station=worker(w), contributor_mask=1 << w) for w in range(3)
)
SERVER = Child(child_id=32, port=4, station=worker(9), contributor_mask=0, max_contributors=0)
BELOW = Child(child_id=3, port=3, station=switch(3), contributor_mask=0b11000, max_contributors=2)
PARENT = Parent(port=4, station=switch(9), child_id=5)
ROW = HotRow(row=70, slot=900, value_copy=1900, epoch=6)
OTHER_ROW = HotRow(row=71, slot=901, value_copy=1901, epoch=2)
HOT = {"children": WORKERS, "servers": (SERVER,), "keepers": (32,), "hot_rows": (ROW, OTHER_ROW)}
COLD = Flag.TO_SERVER | Flag.COLD


@pytest.fixture
def root(open_node: OpenNode) -> Node:
    """The only switch of a job with two hot rows."""
    return open_node(station=switch(1), **HOT)


def about(
    node: Node, child_id: int, values: int = 0, *, row: HotRow = ROW, **fields: int
) -> Datagram:
    """Return a child's push to a hot row, or what the fields make of it."""
    at = row.row * node.values_per_packet
    defaults = {
        "flags": Flag.TO_SERVER,
        "slot_index": row.row,
        "tensor_id": row.epoch,
        "chunk_index": row.row,
        "range_start": at,
        "range_end": at + node.values_per_packet,
    }
    return node.packet(child_id, values, **(defaults | fields))


def send(
    target: Target,
    node: Node,
    datagram: Datagram,
    outcome: Outcome,
    expected: list[tuple[int, bytes]] | None = None,
) -> None:
    port, frame = node.from_child(int(datagram["header"]["worker_id"]), datagram)
    check_exchange(target, port, frame, outcome, expected or [])


def summed(push: Datagram, values: int, bitmap: int, flags: int = 0) -> Datagram:
    """Return the sum that a push closed."""
    return change(
        push,
        values,
        operation=Operation.RESULT,
        flags=Flag.TO_SERVER | flags,
        worker_bitmap=bitmap,
        num_contributors=bitmap.bit_count(),
        exponent=ROW.exponent,
    )


def cold(asked: Datagram, *, exponent: int = ROW.exponent) -> Datagram:
    return change(
        asked,
        operation=Operation.NOTICE,
        flags=COLD,
        round=0,
        worker_bitmap=0,
        num_contributors=0,
        exponent=exponent,
    )


def test_hot_row_sum_of_all_goes_to_the_server_alone(target: Target, root: Node) -> None:
    send(target, root, about(root, 2, 5), Outcome.ABSORBED)
    send(target, root, about(root, 0, 6), Outcome.ABSORBED)
    last = about(root, 1, 7)
    send(target, root, last, Outcome.COMPLETED, root.to_child(32, summed(last, 18, 0b111)))


def test_hot_row_closes_after_as_many_as_expected(target: Target, root: Node) -> None:
    send(target, root, about(root, 2, 5, expected=2), Outcome.ABSORBED)
    second = about(root, 0, 6, expected=2)
    answer = summed(second, 11, 0b101, Flag.PARTIAL)
    send(target, root, second, Outcome.COMPLETED, root.to_child(32, answer))
    late = about(root, 1, 7, expected=2)
    replayed = change(answer, worker_id=1, flags=Flag.TO_SERVER | Flag.PARTIAL | Flag.REPLAY)
    send(target, root, late, Outcome.REPLAYED, root.to_child(1, replayed))
    send(target, root, about(root, 1, 7, expected=2, round=2), Outcome.ABSORBED)


def test_hot_row_push_that_came_twice_counts_once_and_gets_a_receipt(
    target: Target, root: Node
) -> None:
    push = about(root, 1, 40)
    send(target, root, push, Outcome.ABSORBED)
    receipt = change(
        push,
        operation=Operation.NOTICE,
        worker_bitmap=0b010,
        num_contributors=1,
        exponent=ROW.exponent,
    )
    for _ in range(2):
        send(target, root, push, Outcome.NOTIFIED, root.to_child(1, receipt))
    flush = about(root, 32, operation=Operation.FLUSH)
    answer = summed(flush, 40, 0b010, Flag.PARTIAL | Flag.FLUSHED)
    send(target, root, flush, Outcome.FLUSHED, root.to_child(32, answer))


def test_hot_row_flush_waits_for_as_many_as_it_expects(target: Target, root: Node) -> None:
    send(target, root, about(root, 0, 1), Outcome.ABSORBED)
    flush = about(root, 32, operation=Operation.FLUSH, expected=2)
    send(target, root, flush, Outcome.FLUSH_IGNORED)
    send(target, root, about(root, 1, 2), Outcome.ABSORBED)
    answer = summed(flush, 3, 0b011, Flag.PARTIAL | Flag.FLUSHED)
    send(target, root, flush, Outcome.FLUSHED, root.to_child(32, answer))


def test_hot_row_server_gets_a_lost_sum_again(target: Target, root: Node) -> None:
    push = about(root, 0, 9, expected=1)
    answer = summed(push, 9, 0b001, Flag.PARTIAL)
    send(target, root, push, Outcome.COMPLETED, root.to_child(32, answer))
    flush = about(root, 32, operation=Operation.FLUSH)
    again = summed(flush, 9, 0b001, Flag.PARTIAL | Flag.REPLAY)
    send(target, root, flush, Outcome.REPLAYED, root.to_child(32, again))


def test_hot_row_without_an_entry_is_cold(target: Target, root: Node) -> None:
    send(target, root, about(root, 0, 9), Outcome.ABSORBED)
    target.delete(root.place(ROW))
    try:
        for datagram in (
            about(root, 0, 9),
            about(root, 1, 9),
            about(root, 32, operation=Operation.FLUSH),
            about(root, 2, operation=Operation.PROBE),
            about(root, 2, operation=Operation.READ),
            about(root, 32, operation=Operation.WRITE),
        ):
            child_id = int(datagram["header"]["worker_id"])
            answer = root.to_child(child_id, cold(datagram, exponent=0))
            send(target, root, datagram, Outcome.COLD, answer)
    finally:
        target.insert(root.place(ROW))
    last = about(root, 1, 9, expected=2)
    answer = summed(last, 18, 0b011, Flag.PARTIAL)
    send(target, root, last, Outcome.COMPLETED, root.to_child(32, answer))


def test_hot_row_of_another_epoch_is_cold(target: Target, root: Node) -> None:
    for datagram in (
        about(root, 0, 9, tensor_id=ROW.epoch - 1),
        about(root, 32, operation=Operation.WRITE, tensor_id=ROW.epoch + 1),
    ):
        child_id = int(datagram["header"]["worker_id"])
        send(target, root, datagram, Outcome.COLD, root.to_child(child_id, cold(datagram)))


def test_hot_row_rows_do_not_share_sums(target: Target, root: Node) -> None:
    send(target, root, about(root, 0, 1), Outcome.ABSORBED)
    other = about(root, 1, 2, row=OTHER_ROW, expected=1)
    answer = summed(other, 2, 0b010, Flag.PARTIAL)
    send(target, root, other, Outcome.COMPLETED, root.to_child(32, answer))
    last = about(root, 1, 4, expected=2)
    answer = summed(last, 5, 0b011, Flag.PARTIAL)
    send(target, root, last, Outcome.COMPLETED, root.to_child(32, answer))


def written(write: Datagram, values: int) -> Datagram:
    return change(write, values, flags=Flag.TO_SERVER, exponent=ROW.exponent)


def test_hot_row_values_are_read_as_they_were_written(target: Target, root: Node) -> None:
    early = about(root, 0, operation=Operation.READ, round=0)
    send(target, root, early, Outcome.COLD, root.to_child(0, cold(early)))
    write = about(root, 32, 123, operation=Operation.WRITE, round=4)
    receipt = root.to_child(32, written(write, 123))
    send(target, root, write, Outcome.VALUES_WRITTEN, receipt)
    send(target, root, write, Outcome.VALUES_KEPT, receipt)
    for worker_id, least in ((0, 0), (1, 4), (2, 3)):
        read = about(root, worker_id, 999, operation=Operation.READ, round=least)
        answer = change(written(read, 123), round=4)
        send(target, root, read, Outcome.VALUES_READ, root.to_child(worker_id, answer))
    newer = about(root, 1, operation=Operation.READ, round=5)
    send(target, root, newer, Outcome.COLD, root.to_child(1, cold(newer)))
    other = about(root, 1, operation=Operation.READ, row=OTHER_ROW, round=0)
    send(target, root, other, Outcome.COLD, root.to_child(1, cold(other)))


def test_hot_row_older_values_never_replace_newer_ones(target: Target, root: Node) -> None:
    write = about(root, 32, 50, operation=Operation.WRITE, round=8)
    receipt = root.to_child(32, written(write, 50))
    send(target, root, write, Outcome.VALUES_WRITTEN, receipt)
    older = about(root, 32, 60, operation=Operation.WRITE, round=7)
    notice = change(
        older,
        operation=Operation.NOTICE,
        flags=Flag.TO_SERVER,
        round=8,
        worker_bitmap=0,
        num_contributors=0,
        exponent=ROW.exponent,
    )
    send(target, root, older, Outcome.NOTIFIED, root.to_child(32, notice))
    same = about(root, 32, 70, operation=Operation.WRITE, round=8)
    send(target, root, same, Outcome.VALUES_KEPT, root.to_child(32, written(same, 50)))


def test_hot_row_only_a_server_writes_and_it_never_pushes(target: Target, root: Node) -> None:
    for worker_id in range(3):
        write = about(root, worker_id, 1, operation=Operation.WRITE)
        send(target, root, write, Outcome.WRITE_REFUSED)
    for bitmap in (0, 1):
        push = about(root, 32, 1, worker_bitmap=bitmap, num_contributors=1)
        send(target, root, push, Outcome.BAD_CONTRIBUTION)


def test_hot_row_reads_of_a_new_epoch_miss_the_old_values(target: Target, root: Node) -> None:
    write = about(root, 32, 50, operation=Operation.WRITE, round=8)
    receipt = root.to_child(32, written(write, 50))
    send(target, root, write, Outcome.VALUES_WRITTEN, receipt)
    old, new = root.place(ROW), root.place(HotRow(**{**vars(ROW), "epoch": 7}))
    target.delete(old)
    target.insert(new)
    try:
        read = about(root, 0, operation=Operation.READ, tensor_id=7, round=0)
        send(target, root, read, Outcome.COLD, root.to_child(0, cold(read)))
        write = about(root, 32, 51, operation=Operation.WRITE, tensor_id=7, round=9)
        receipt = root.to_child(32, written(write, 51))
        send(target, root, write, Outcome.VALUES_WRITTEN, receipt)
        answer = change(written(read, 51), round=9)
        send(target, root, read, Outcome.VALUES_READ, root.to_child(0, answer))
    finally:
        target.delete(new)
        target.insert(old)


def test_hot_row_values_go_on_to_switches_below(target: Target, open_node: OpenNode) -> None:
    root = open_node(
        station=switch(1),
        children=(*WORKERS[:2], BELOW),
        servers=(SERVER,),
        keepers=(32, 3),
        hot_rows=(ROW,),
        level=1,
    )
    write = about(root, 32, 123, operation=Operation.WRITE, round=4)
    stored = written(write, 123)
    everywhere = [*root.to_child(32, stored), *root.to_child(3, stored)]
    send(target, root, write, Outcome.VALUES_WRITTEN, everywhere)
    send(target, root, write, Outcome.VALUES_KEPT, everywhere)


def from_parent(
    target: Target,
    node: Node,
    datagram: Datagram,
    outcome: Outcome,
    expected: list[tuple[int, bytes]],
) -> None:
    check_exchange(target, PARENT.port, node.from_parent(datagram, tos=0), outcome, expected)


def test_hot_row_inner_switch_keeps_what_its_parent_wrote(
    target: Target, open_node: OpenNode
) -> None:
    leaf = open_node(station=switch(2), children=WORKERS, parent=PARENT, hot_rows=(ROW,))
    for datagram in (about(leaf, w, 1, operation=Operation.WRITE) for w in range(3)):
        send(target, leaf, datagram, Outcome.FOREIGN_RESULT)
    write = about(leaf, 0, 123, operation=Operation.WRITE, round=4)
    from_parent(target, leaf, write, Outcome.VALUES_WRITTEN, [])
    from_parent(target, leaf, write, Outcome.VALUES_KEPT, [])
    from_parent(target, leaf, change(write, 1, round=3), Outcome.STALE, [])
    read = about(leaf, 2, operation=Operation.READ, round=2)
    answer = change(written(read, 123), round=4)
    send(target, leaf, read, Outcome.VALUES_READ, leaf.to_child(2, answer))
    from_parent(target, leaf, change(write, tensor_id=9), Outcome.COLD, [])


def test_hot_row_inner_switch_adds_up_and_hears_the_result(
    target: Target, open_node: OpenNode
) -> None:
    leaf = open_node(station=switch(2), children=WORKERS, parent=PARENT, hot_rows=(ROW,))
    for worker_id in range(2):
        send(target, leaf, about(leaf, worker_id, 1, expected=3), Outcome.ABSORBED)
    last = about(leaf, 2, 5, expected=3)
    going_up = change(
        last,
        7,
        worker_id=PARENT.child_id,
        worker_bitmap=0b111,
        num_contributors=3,
        exponent=ROW.exponent,
    )
    send(target, leaf, last, Outcome.SENT_UP, leaf.to_parent(going_up))
    result = summed(going_up, 9, 0b11111, Flag.REPLAY)
    kept = change(result, flags=Flag.TO_SERVER)
    from_parent(target, leaf, result, Outcome.RESULT_STORED, leaf.to_children(kept))


def test_hot_row_cold_notice_of_the_parent_reaches_the_workers(
    target: Target, open_node: OpenNode
) -> None:
    leaf = open_node(station=switch(2), children=WORKERS, parent=PARENT, hot_rows=(ROW,))
    notice = cold(about(leaf, 0))
    from_parent(target, leaf, notice, Outcome.RELAYED, leaf.to_children(notice))
    result = change(notice, operation=Operation.RESULT, slot_index=99)
    from_parent(target, leaf, result, Outcome.COLD, [])


@pytest.mark.parametrize("allow_partial", [False, True])
def test_expected_workers_of_an_ordinary_round(
    target: Target, open_node: OpenNode, allow_partial: bool
) -> None:
    root = open_node(station=switch(1), children=WORKERS, quorum=3, allow_partial=allow_partial)
    first, second = root.packet(0, 1, expected=2), root.packet(1, 2, expected=2)
    if not allow_partial:
        send(target, root, first, Outcome.BAD_CONTRIBUTION)
        return
    send(target, root, first, Outcome.ABSORBED)
    answer = change(summed(second, 3, 0b011), exponent=0, flags=Flag.PARTIAL)
    send(target, root, second, Outcome.COMPLETED, root.to_children(answer))
