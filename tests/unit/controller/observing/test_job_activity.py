# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Activity of a job: which rounds wait for whom, which are stuck, and bytes of its links."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterable
from pathlib import Path

import pytest

from controller_fixtures import FakeWorker, running_controller
from switchfold.controller.api.operator_api.activity_pb2 import JobActivity
from switchfold.controller.api.operator_client import OperatorClient
from switchfold.controller.config import HostConfig, SwitchConfig
from switchfold.controller.errors import SwitchUpdateError
from switchfold.controller.fabric.fabric import Fabric
from switchfold.controller.jobs.job import (
    Child,
    Generation,
    Tree,
    TreeId,
    TreeNode,
    View,
    ViewState,
    Worker,
)
from switchfold.controller.observing.job_activity import open_rounds, read_activity, spread
from switchfold.controller.tables.outcome import Count
from switchfold.controller.tables.slot_state import CopyIndex, SlotCopy
from switchfold.hostlib.slots.wire import Outcome

GENERATION = 9
SLOT_BASE = 100


def child(number: int) -> Child:
    return Child(
        child_id=number,
        port=number + 1,
        address=f"10.0.0.{number + 1}",
        mac=f"02:00:00:00:00:{number + 1:02x}",
        udp_port=5000,
        num_workers=1,
        contributor_mask=1 << number,
        worker_id=number,
    )


NODE = TreeNode(switch="s1", slot_base=SLOT_BASE, children=(child(0), child(1), child(2)))
VIEW = View(
    generation=GENERATION,
    job_number=1,
    members=tuple(
        Worker(worker_id=n, address=c.address, mac=c.mac, udp_port=5000, port=c.port, switch="s1")
        for n, c in enumerate(NODE.children)
    ),
    trees=(Tree(tree_id=5, slot_count=8, nodes=(NODE,)),),
    state=ViewState.INSTALLED,
)
FABRIC = Fabric(
    switches={
        "s1": SwitchConfig(
            name="s1",
            address="127.0.0.1:1",
            hosts=tuple(
                HostConfig(
                    name=f"h{c.port}",
                    port=c.port,
                    address=c.address,
                    mac=c.mac,
                    rate_bits_per_s=8_000_000 if c.port == 1 else None,
                )
                for c in NODE.children
            ),
        )
    }
)


def copy(slot: int, arrived: int, **fields: int) -> SlotCopy:
    held = SlotCopy(
        index=2 * (SLOT_BASE + slot),
        generation=GENERATION,
        round_number=4,
        arrived=arrived,
        is_open=True,
    )
    return dataclasses.replace(held, **fields)


class ScriptedSwitch:
    """Holds copies of slots; each reading of ports counts 1000 bytes more."""

    def __init__(self, copies: Iterable[SlotCopy], error: str = "") -> None:
        self.copies = {each.index: each for each in copies}
        self.error = error
        self.num_reads = 0

    def _check(self) -> None:
        if self.error:
            raise SwitchUpdateError(self.error)

    async def find_open_copies(
        self, slots: Iterable[int], generation: Generation
    ) -> list[CopyIndex]:
        self._check()
        wanted = set(slots)
        found = [each for each in self.copies.values() if each.generation == generation]
        return [each.index for each in found if each.is_open and each.slot in wanted]

    async def read_slot_copies(self, copies: Iterable[CopyIndex]) -> list[SlotCopy]:
        return [self.copies[index] for index in copies]

    async def read_port_counts(self) -> dict[int, tuple[Count, Count]]:
        self._check()
        self.num_reads += 1
        num = 1000 * self.num_reads
        return {port: (Count(1, num), Count(1, 2 * num)) for port in (1, 2, 3)}

    async def read_tree_counts(self, tree_id: TreeId) -> dict[Outcome, Count]:
        assert tree_id == 5
        return {Outcome.COMPLETED: Count(30, 0), Outcome.FLUSHED: Count(4, 0)}


def test_open_rounds_name_the_missing_workers() -> None:
    first = [copy(0, 0b001), copy(1, 0b110), copy(2, 0b011)]
    again = [first[0], dataclasses.replace(first[1], round_number=6), copy(2, 0b111)]
    rounds = list(open_rounds(VIEW, NODE, first, again))
    assert [(r.slot_index, list(r.missing_workers), r.is_stuck) for r in rounds] == [
        (0, [1, 2], True),
        (1, [0], False),
        (2, [2], False),
    ]


@pytest.mark.parametrize(
    "other",
    [
        copy(0, 0b001, is_open=False),
        copy(0, 0b001, generation=GENERATION - 1),
        copy(0, 0),
        copy(0, 0b111),
    ],
    ids=["closed", "of an earlier view", "never used", "complete"],
)
def test_other_copies_wait_for_nobody(other: SlotCopy) -> None:
    assert not list(open_rounds(VIEW, NODE, [other], [other]))


def test_missing_switch_is_named() -> None:
    below = dataclasses.replace(child(1), worker_id=None, switch="s4")
    node = dataclasses.replace(NODE, children=(child(0), below))
    (found,) = open_rounds(VIEW, node, [copy(0, 0b01)], [])
    assert (list(found.missing_workers), list(found.missing_switches)) == ([], ["s4"])


def test_activity_has_rounds_slots_and_bytes() -> None:
    switch = ScriptedSwitch([copy(0, 0b001), copy(7, 0b011), copy(3, 0b1, generation=1)])
    found = asyncio.run(read_activity(VIEW, {"s1": switch}, FABRIC))
    (tree,) = found.trees
    assert (tree.tree_id, tree.slot_count, tree.rounds, tree.error) == (5, 8, 34, "")
    (node,) = tree.nodes
    assert (node.switch, node.read_slots, node.num_open, node.error) == ("s1", 8, 2, "")
    assert [r.slot_index for r in node.open_rounds] == [0, 7]
    assert all(r.is_stuck for r in node.open_rounds)
    links = {(link.sender, link.receiver): link for link in found.links}
    assert set(links) == {(f"h{n}", "s1") for n in (1, 2, 3)} | {("s1", f"h{n}") for n in (1, 2, 3)}
    up, down = links["h1", "s1"], links["s1", "h2"]
    assert (up.bytes, up.recent_bytes, list(up.workers)) == (2000, 1000, [0])
    assert (down.bytes, down.recent_bytes, list(down.workers)) == (4000, 2000, [])
    assert (up.rate_bits_per_s, down.rate_bits_per_s) == (8_000_000, 0)
    assert found.gap_s > 0


def test_switch_out_of_reach_is_said_and_nothing_is_invented() -> None:
    switch = ScriptedSwitch([], error="switch s1 is away")
    found = asyncio.run(read_activity(VIEW, {"s1": switch}, FABRIC))
    (node,) = found.trees[0].nodes
    assert (node.read_slots, node.num_open, node.error) == (0, 0, "switch s1 is away")
    assert {link.error for link in found.links} == {"switch s1 is away"}
    assert not any(link.bytes for link in found.links)


def test_rounds_beyond_those_read_are_estimated() -> None:
    copies = [copy(n // 2, 0b001, index=2 * SLOT_BASE + n) for n in range(200)]
    tree = dataclasses.replace(VIEW.trees[0], slot_count=100)
    view = dataclasses.replace(VIEW, trees=(tree,))
    found = asyncio.run(read_activity(view, {"s1": ScriptedSwitch(copies)}, FABRIC))
    (node,) = found.trees[0].nodes
    assert (node.read_slots, node.num_open, len(node.open_rounds)) == (100, 200, 64)


def test_spread_is_even_and_complete_where_it_can_be() -> None:
    assert spread(0, 4) == []
    assert spread(3, 4) == [0, 1, 2]
    assert spread(8, 4) == [0, 2, 4, 6]
    assert len(set(spread(1000, 64))) == 64


def test_program_without_the_registers_is_named(tmp_path: Path) -> None:
    async def scenario() -> JobActivity:
        async with running_controller(tmp_path) as (server, _):
            worker = await FakeWorker(server.address, 0, 1, job_name="calm").join()
            await worker.join_reply()
            client = OperatorClient(server.address)
            activity = await asyncio.to_thread(client.show_activity, "calm")
            await worker.close()
            return activity

    (tree,) = asyncio.run(scenario()).trees
    (node,) = tree.nodes
    assert "the program of switch s1 has no register slot_state" in node.error
    assert (node.read_slots, len(node.open_rounds)) == (0, 0)
