# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Hot rows in the compiled program and in the plain reference, over random packets of any order."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from packet_frames import Datagram, change, describe
from packet_target import Target
from packet_tree import Child, HotRow, Node, Parent, switch, worker
from reference_job import (
    ReferenceChild,
    ReferenceJob,
    ReferenceParent,
    ReferenceRow,
)
from slot_reference import (
    Destination,
    ReferenceSwitch,
    Reply,
)
from switchfold.hostlib.slots.wire import Flag, Operation, Outcome

OpenNode = Callable[..., Node]
NUM_PACKETS = int(os.environ.get("SWITCHFOLD_HOT_PACKETS", "2500"))
NUM_PACKETS_SLOW_TARGET = 1500
SEED = 20261123
SERVER = Child(child_id=40, port=4, station=worker(9), contributor_mask=0, max_contributors=0)
PARENT = Parent(port=4, station=switch(9), child_id=5, child_bitmap=1 << 5)
WORKERS = tuple(
    Child(child_id=w, port=w + 1, station=worker(w), contributor_mask=1 << w) for w in range(2)
)
BELOW = Child(child_id=3, port=3, station=switch(3), contributor_mask=0b11000, max_contributors=2)
ROWS = (HotRow(row=5, slot=800, value_copy=1700), HotRow(row=9, slot=801, value_copy=1701))
OPERATIONS = (
    *(Operation.AGGREGATE_ADD,) * 6,
    Operation.AGGREGATE_MAX,
    *(Operation.FLUSH,) * 2,
    Operation.PROBE,
    *(Operation.READ,) * 3,
    *(Operation.WRITE,) * 2,
)
FROM_ABOVE = (Operation.RESULT, Operation.NOTICE, Operation.WRITE, Operation.PROBE)
NEW_ROUND_EVERY = 12
"""Packets, on average."""


class _Twins:
    """A switch and its reference, with the same packets and the same changes of `hot_row`."""

    def __init__(self, target: Target, node: Node) -> None:
        self.target, self.node = target, node
        self.reference = ReferenceSwitch(node.values_per_packet)
        self.rows: dict[int, HotRow] = {row.row: row for row in node.hot_rows}
        self._counted = target.counters("outcomes")
        self._install()

    def _install(self) -> None:
        node = self.node
        num_workers = sum(child.max_contributors for child in node.children)
        parent = None
        if node.parent is not None:
            parent = ReferenceParent(
                port=node.parent.port,
                address=node.parent.station.address,
                child_id=node.parent.child_id,
                child_bitmap=node.parent.child_bitmap,
            )
        self.reference.jobs[node.job_id] = ReferenceJob(
            job_id=node.job_id,
            generation=node.generation,
            slot_base=node.slot_base,
            slot_count=node.slot_count,
            num_workers=num_workers,
            quorum=num_workers,
            allow_partial=node.allow_partial,
            level=node.level,
            parent=parent,
            children={
                child.child_id: ReferenceChild(
                    port=child.port,
                    address=child.station.address,
                    bit=1 << child.child_id if child.max_contributors else 0,
                    contributor_mask=child.contributor_mask,
                    max_contributors=child.max_contributors,
                )
                for child in (*node.children, *node.servers)
            },
            hot_rows={
                number: ReferenceRow(
                    slot=row.slot,
                    value_copy=row.value_copy,
                    epoch=row.epoch,
                    exponent=row.exponent,
                    has_copies=bool(node.keepers),
                )
                for number, row in self.rows.items()
            },
        )

    def place(self, number: int, row: HotRow | None) -> None:
        """Replace or remove the entry of a row."""
        held = self.rows.pop(number, None)
        if held is not None:
            self.target.delete(self.node.place(held))
        if row is not None:
            self.rows[number] = row
            self.target.insert(self.node.place(row))
        self._install()

    def deliver(self, sender: Child | Parent, datagram: Datagram) -> Outcome:
        """Send a datagram into both; fail if the frames that leave differ."""
        node = self.node
        if isinstance(sender, Parent):
            port, frame = sender.port, node.from_parent(datagram, tos=0)
        else:
            port, frame = node.from_child(sender.child_id, datagram)
        received = self.target.exchange(port, frame)
        before, self._counted = self._counted, self.target.counters("outcomes")
        outcome, reply = self.reference.receive(port, sender.station.address, datagram)
        expected = [] if reply is None else self._frames(sender, reply)
        counted = [Outcome(i) for i, count in enumerate(self._counted) if count != before[i]]
        assert (sorted(received), counted) == (sorted(expected), [outcome]), "\n".join(
            [f"{counted}, by the reference {outcome!r}", f"sent to port {port}:", describe(frame)]
            + [f"expected {where}: {describe(sent)}" for where, sent in expected]
            + [f"received {where}: {describe(sent)}" for where, sent in received]
        )
        return outcome

    def _frames(self, sender: Child | Parent, reply: Reply) -> list[tuple[int, bytes]]:
        node = self.node
        if reply.to is Destination.PARENT:
            return node.to_parent(reply.datagram)
        if reply.to is Destination.SENDER:
            assert isinstance(sender, Child), "the parent is never answered"
            return node.to_child(sender.child_id, reply.datagram)
        receivers = {
            Destination.CHILDREN: [child.child_id for child in node.children],
            Destination.SERVER: [server.child_id for server in node.servers],
            Destination.COPIES: list(node.keepers),
        }[reply.to]
        return [
            frame for child_id in receivers for frame in node.to_child(child_id, reply.datagram)
        ]


class _Packets:
    """Packets about hot rows: mostly of the present round and epoch, from everybody."""

    def __init__(self, twins: _Twins, generator: np.random.Generator) -> None:
        self._twins = twins
        self._generator = generator
        self._rounds = {row.row: 0xFFFF_FFF0 for row in ROWS}
        self._sent: list[tuple[Child | Parent, Datagram]] = []

    def next(self) -> tuple[Child | Parent, Datagram]:
        """Return a packet and its sender: a new one, or one that was sent before."""
        generator, node = self._generator, self._twins.node
        if self._sent and generator.random() < 0.2:
            return self._sent[generator.integers(len(self._sent))]
        number = int(generator.choice([row.row for row in ROWS]))
        if not generator.integers(NEW_ROUND_EVERY):
            self._rounds[number] = (self._rounds[number] + 1) & 0xFFFFFFFF
        senders: list[Child | Parent] = [*node.children, *node.servers]
        if node.parent is not None:
            senders.append(node.parent)
        sender = senders[generator.integers(len(senders))]
        packet = (sender, self._make(sender, number))
        self._sent.append(packet)
        return packet

    def _make(self, sender: Child | Parent, number: int) -> Datagram:
        generator, node = self._generator, self._twins.node
        is_parent = isinstance(sender, Parent)
        operations = FROM_ABOVE if is_parent else OPERATIONS
        operation = operations[generator.integers(len(operations))]
        lag = int(generator.choice([0, 0, 0, 0, 1, 2]))
        row = self._twins.rows.get(number)
        at = number * node.values_per_packet
        high = int(generator.choice([1000, 2**31]))
        is_whole = generator.random() < 0.9
        fields: dict[str, int] = {
            "operation": operation,
            "flags": Flag.TO_SERVER | int(generator.choice([0, 0, Flag.LAST, Flag.OVERFLOW])),
            "slot_index": number,
            "tensor_id": row.epoch if row is not None and generator.random() < 0.97 else 0,
            "round": (self._rounds[number] - lag) & 0xFFFFFFFF,
            "chunk_index": number,
            "range_start": at,
            "range_end": at + (node.values_per_packet if is_whole else 7),
            "expected": int(generator.choice([0, 0, 1, 2, 3])),
            "exponent": int(generator.integers(256)),
            "priority": int(generator.integers(256)),
        }
        values = generator.integers(-high, high, node.values_per_packet)
        if not isinstance(sender, Parent):
            if operation == Operation.FLUSH:
                fields["num_contributors"] = int(generator.integers(3))
            return node.packet(sender.child_id, values, **fields)
        names = {"worker_bitmap": int(generator.integers(256)), "num_contributors": 5}
        return change(node.packet(0, values), values, **fields, **names)


@pytest.mark.parametrize("role", ["root", "root of a tree", "inner switch"])
def test_random_packets_about_hot_rows_match_reference(
    target: Target, open_node: OpenNode, role: str
) -> None:
    children = WORKERS if role == "root" else (*WORKERS, BELOW)
    node = open_node(
        station=switch(1),
        children=children,
        parent=PARENT if role == "inner switch" else None,
        servers=() if role == "inner switch" else (SERVER,),
        keepers={"root": (40,), "root of a tree": (40, 3), "inner switch": (3,)}[role],
        level=int(role != "root"),
    )
    generator = np.random.default_rng(SEED)
    twins = _Twins(target, node)
    for row in ROWS:
        twins.place(row.row, row)
    packets = _Packets(twins, generator)
    counted = dict.fromkeys(Outcome, 0)
    num_packets = NUM_PACKETS if target.is_fast else NUM_PACKETS_SLOW_TARGET
    try:
        for _ in range(num_packets):
            if not generator.integers(100):
                row = ROWS[generator.integers(len(ROWS))]
                is_gone = not generator.integers(3)
                epoch = int(generator.integers(1, 5))
                twins.place(row.row, None if is_gone else replace(row, epoch=epoch))
            counted[twins.deliver(*packets.next())] += 1
    finally:
        for row in ROWS:
            twins.place(row.row, None)
    everywhere = {
        *(Outcome.ABSORBED, Outcome.REPLAYED, Outcome.FLUSHED, Outcome.FLUSH_IGNORED),
        *(Outcome.NOTIFIED, Outcome.MISMATCH, Outcome.COLD, Outcome.VALUES_READ),
        *(Outcome.VALUES_WRITTEN, Outcome.VALUES_KEPT),
    }
    of_a_root = {Outcome.COMPLETED, Outcome.WRITE_REFUSED, Outcome.BAD_CONTRIBUTION}
    of_others = {Outcome.SENT_UP, Outcome.RESENT, Outcome.RESULT_STORED, Outcome.RELAYED}
    due = everywhere | (of_others if role == "inner switch" else of_a_root)
    assert {outcome for outcome, count in counted.items() if count} >= due
