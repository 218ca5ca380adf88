# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whole trees, frame by frame: what one switch sends is what the next one receives.

One target plays all switches in turn: its tables become those of the switch that a frame reaches,
and each switch has slots of its own.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from packet_frames import Datagram, change, describe
from packet_target import Target
from packet_tree import Child, Node, Parent, switch, worker
from switchfold.hostlib.slots.wire import Flag, Operation, Outcome

UPLINK = 4
LEVELS = {"left": 0, "right": 0, "middle": 1, "root": 2}
MakeTree = Callable[..., "Tree"]
_serial = itertools.count(20_000)


@dataclass
class Tree:
    """A leaf-spine tree: two leaves of two workers, below one root or below a middle switch."""

    target: Target
    nodes: dict[str, Node]
    cables: dict[tuple[str, int], tuple[str, int]]
    hosts: dict[tuple[str, int], int]
    """(switch, port) -> worker."""
    lose: Callable[[str, int], bool] = lambda _name, _port: False
    """Whether a frame that leaves a switch by a port is lost."""
    outcomes: list[tuple[str, Outcome]] = field(default_factory=list[tuple[str, Outcome]])
    _name: str = ""
    """Name of the switch that the target plays now."""
    _installed: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def deliver(self, worker_id: int, datagram: Datagram) -> list[tuple[int, bytes]]:
        """Send a worker's packet and all that follow from it; return (worker, frame) pairs."""
        leaf, port = next(place for place, who in self.hosts.items() if who == worker_id)
        _, frame = self.nodes[leaf].from_child(int(datagram["header"]["worker_id"]), datagram)
        under_way = [(leaf, port, frame)]
        arrived: list[tuple[int, bytes]] = []
        self.outcomes.clear()
        while under_way:
            name, port, frame = under_way.pop(0)
            for out_port, answer in self._process(name, port, frame):
                if self.lose(name, out_port):
                    continue
                if (name, out_port) in self.hosts:
                    arrived.append((self.hosts[name, out_port], answer))
                else:
                    under_way.append((*self.cables[name, out_port], answer))
        return sorted(arrived)

    def _process(self, name: str, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        before = self.target.counters("outcomes")
        if name != self._name:
            self.leave()
            self._installed.enter_context(self.nodes[name].installed(self.target))
            self._name = name
        answers = self.target.exchange(port, frame)
        after = self.target.counters("outcomes")
        (outcome,) = [each for each in Outcome if after[each] != before[each]]
        self.outcomes.append((name, outcome))
        return answers

    def leave(self) -> None:
        """Remove the entries of this tree from the target."""
        self._installed.close()
        self._name = ""

    def packet(self, worker_id: int, values: int = 0, **fields: int) -> Datagram:
        """Return a worker's contribution: its child id is its place at its leaf."""
        leaf, port = next(place for place, who in self.hosts.items() if who == worker_id)
        return self.nodes[leaf].packet(port - 1, values, **fields)

    def results(self, datagram: Datagram) -> list[tuple[int, bytes]]:
        """Return (worker, frame) of a result or notice that reaches all workers."""
        frames: list[tuple[int, bytes]] = []
        for (leaf, port), who in self.hosts.items():
            (_, frame), *_ = self.nodes[leaf].to_child(port - 1, datagram, tos=2)
            frames.append((who, frame))
        return sorted(frames)


@pytest.fixture
def make_tree(target: Target) -> Iterator[MakeTree]:
    """Make trees of 2 or 3 levels; `is_big` makes bitmaps hop-local."""
    made: list[Tree] = []

    def make(num_levels: int, *, is_big: bool = False, allow_partial: bool = False) -> Tree:
        made.append(build_tree(target, num_levels, is_big, allow_partial))
        return made[-1]

    yield make
    for tree in made:
        tree.leave()


def build_tree(target: Target, num_levels: int, is_big: bool, allow_partial: bool) -> Tree:
    """Return a tree with a new job id and generation."""
    serial = next(_serial)
    top = {2: "root", 3: "middle"}[num_levels]
    stations = {name: switch(n) for n, name in enumerate(("root", "middle", "left", "right"), 1)}
    nodes: dict[str, Node] = {}
    cables: dict[tuple[str, int], tuple[str, int]] = {}

    def add(name: str, children: tuple[Child, ...], parent: Parent | None) -> None:
        nodes[name] = Node(
            job_id=serial,
            generation=serial,
            values_per_packet=target.values_per_packet,
            station=stations[name],
            children=children,
            parent=parent,
            slot_base=128 + 8 * len(nodes),
            num_workers=4,
            allow_partial=allow_partial,
            level=min(LEVELS[name], num_levels - 1),
        )

    def child(child_id: int, name: str, mask: int) -> Child:
        return Child(
            child_id=child_id,
            port=child_id + 1,
            station=stations[name],
            contributor_mask=1 << child_id if is_big else mask,
            max_contributors=mask.bit_count(),
        )

    def parent(name: str, child_id: int) -> Parent:
        bitmap = 1 << child_id if is_big else 0
        return Parent(port=UPLINK, station=stations[name], child_id=child_id, child_bitmap=bitmap)

    def join(upper: str, child_id: int, lower: str) -> None:
        cables[upper, child_id + 1] = (lower, UPLINK)
        cables[lower, UPLINK] = (upper, child_id + 1)

    if num_levels == 3:
        add("root", (child(2, "middle", 0b1111),), None)
        join("root", 2, "middle")
    above = parent("root", 2) if num_levels == 3 else None
    add(top, (child(0, "left", 0b0011), child(1, "right", 0b1100)), above)
    hosts: dict[tuple[str, int], int] = {}
    for number, leaf in enumerate(("left", "right")):
        members = [2 * number, 2 * number + 1]
        children = tuple(
            Child(
                child_id=place,
                port=place + 1,
                station=worker(who),
                contributor_mask=1 << (place if is_big else who),
            )
            for place, who in enumerate(members)
        )
        add(leaf, children, parent(top, number))
        join(top, number, leaf)
        hosts |= {(leaf, place + 1): who for place, who in enumerate(members)}
    return Tree(target, nodes, cables, hosts)


def check(arrived: list[tuple[int, bytes]], expected: list[tuple[int, bytes]]) -> None:
    shown = [f"  expected {who}: {describe(frame)}" for who, frame in expected]
    shown += [f"  arrived {who}: {describe(frame)}" for who, frame in arrived]
    assert arrived == expected, "\n".join(["frames differ", *shown])


def contribute(tree: Tree, *workers: int, **fields: int) -> None:
    """Let workers contribute 10 ** their id; nothing must come back."""
    for worker_id in workers:
        check(tree.deliver(worker_id, tree.packet(worker_id, 10**worker_id, **fields)), [])


def total(last: Datagram, bitmap: int = 0xF, *, values: int = 1111, flags: int = 0) -> Datagram:
    """Return the result that a packet of the last child at the top causes."""
    return change(
        last,
        values,
        operation=Operation.RESULT,
        flags=flags,
        worker_bitmap=bitmap,
        num_contributors=4,
    )


@pytest.mark.parametrize(("num_levels", "closing_child"), [(2, 1), (3, 2)])
@pytest.mark.parametrize("is_big", [False, True])
def test_tree_levels_sum_of_all_reaches_all(
    make_tree: MakeTree, num_levels: int, closing_child: int, is_big: bool
) -> None:
    tree = make_tree(num_levels, is_big=is_big)
    for round_ in (1, 2, 3):
        contribute(tree, 0, 2, 1, round=round_)
        last = tree.packet(3, 1000, round=round_)
        bitmap = (0b11 if num_levels == 2 else 0b100) if is_big else 0xF
        result = total(change(last, worker_id=closing_child), bitmap)
        check(tree.deliver(3, last), tree.results(result))


def test_tree_levels_outcomes_on_the_way(make_tree: MakeTree) -> None:
    tree = make_tree(3)
    contribute(tree, 0)
    assert tree.outcomes == [("left", Outcome.ABSORBED)]
    contribute(tree, 1)
    assert tree.outcomes == [("left", Outcome.SENT_UP), ("middle", Outcome.ABSORBED)]
    contribute(tree, 2)
    tree.deliver(3, tree.packet(3, 1000))
    assert tree.outcomes == [
        ("right", Outcome.SENT_UP),
        ("middle", Outcome.SENT_UP),
        ("root", Outcome.COMPLETED),
        ("middle", Outcome.RESULT_STORED),
        ("left", Outcome.RESULT_STORED),
        ("right", Outcome.RESULT_STORED),
    ]
    # From now on, the switch that gets a retransmission answers it.
    tree.deliver(0, tree.packet(0, 1))
    assert tree.outcomes == [("left", Outcome.REPLAYED)]


@pytest.mark.parametrize(("name", "who"), [("left", 1), ("right", 3), ("middle", 3), ("middle", 0)])
def test_tree_levels_sum_lost_on_its_way_up(make_tree: MakeTree, name: str, who: int) -> None:
    tree = make_tree(3)
    tree.lose = lambda sender, port: (sender, port) == (name, UPLINK)
    contribute(tree, 0, 1, 2, 3)
    tree.lose = lambda _name, _port: False
    again = tree.packet(who, 10**who)
    check(tree.deliver(who, again), tree.results(total(change(again, worker_id=2))))


@pytest.mark.parametrize(
    ("name", "port", "lacking"),
    [("root", 3, [0, 1, 2, 3]), ("middle", 1, [0, 1]), ("middle", 2, [2, 3]), ("left", 2, [1])],
)
def test_tree_levels_result_lost_on_its_way_down(
    make_tree: MakeTree, name: str, port: int, lacking: list[int]
) -> None:
    tree = make_tree(3)
    contribute(tree, 0, 1, 2)
    tree.lose = lambda sender, out_port: (sender, out_port) == (name, port)
    arrived = tree.deliver(3, tree.packet(3, 1000))
    assert {0, 1, 2, 3} - {who for who, _ in arrived} == set(lacking)
    tree.lose = lambda _name, _port: False
    who = lacking[0]
    again = tree.packet(who, 10**who)
    if name == "left":
        answer = total(again, flags=Flag.REPLAY)
        (_, frame), *_ = tree.nodes[name].to_child(1, answer)
        check(tree.deliver(who, again), [(who, frame)])
        return
    # The nearest switch that holds the result answers the one below, which stores it and sends it
    # to all of its children as a new result.
    echo = change(again, worker_id=2 if name == "root" else who // 2)
    frames = [(each, frame) for each, frame in tree.results(total(echo)) if each in lacking]
    check(tree.deliver(who, again), frames)


def test_tree_levels_flush_completes_what_is_above(make_tree: MakeTree) -> None:
    tree = make_tree(3, allow_partial=True)
    contribute(tree, 0, 2, 3)
    flush = tree.packet(0, operation=Operation.FLUSH)
    partial = total(change(flush, worker_id=2), 0b1101, values=1101, flags=Flag.PARTIAL)
    check(tree.deliver(0, flush), tree.results(change(partial, num_contributors=3)))
    tree.deliver(1, tree.packet(1, 10))
    assert tree.outcomes == [("left", Outcome.REPLAYED)]


def test_tree_levels_second_flush_goes_one_level_further(make_tree: MakeTree) -> None:
    tree = make_tree(3, allow_partial=True)
    contribute(tree, 0)
    flush = tree.packet(0, operation=Operation.FLUSH, num_contributors=0)
    check(tree.deliver(0, flush), [])
    assert tree.outcomes == [("left", Outcome.FLUSHED), ("middle", Outcome.ABSORBED)]
    check(tree.deliver(0, flush), [])
    assert tree.outcomes == [("left", Outcome.FLUSH_IGNORED)]
    flush = change(flush, num_contributors=1)
    partial = total(change(flush, worker_id=2), 0b0001, values=1, flags=Flag.PARTIAL)
    # The right leaf has no packet of this round yet, but takes the result.
    check(tree.deliver(0, flush), tree.results(change(partial, num_contributors=1)))
    assert tree.outcomes[:3] == [
        ("left", Outcome.RELAYED),
        ("middle", Outcome.FLUSHED),
        ("root", Outcome.COMPLETED),
    ]
    tree.deliver(3, tree.packet(3, 1000))
    assert tree.outcomes == [("right", Outcome.REPLAYED)]


def test_tree_levels_flush_waits_for_leaves_that_lack_somebody(make_tree: MakeTree) -> None:
    tree = make_tree(2, allow_partial=True)
    contribute(tree, 0, 1, 2)
    flush = tree.packet(0, operation=Operation.FLUSH, num_contributors=0)
    check(tree.deliver(0, flush), [])
    assert tree.outcomes == [("left", Outcome.FLUSH_IGNORED)]
    flush = tree.packet(2, operation=Operation.FLUSH, num_contributors=0)
    partial = total(change(flush, worker_id=1), 0b0111, values=111, flags=Flag.PARTIAL)
    check(tree.deliver(2, flush), tree.results(change(partial, num_contributors=3)))
    assert tree.outcomes[:2] == [("right", Outcome.FLUSHED), ("root", Outcome.COMPLETED)]


@pytest.mark.parametrize("level", [1, 2, 9])
def test_tree_levels_flush_passes_a_leaf_that_waits_for_nobody(
    make_tree: MakeTree, level: int
) -> None:
    tree = make_tree(3, allow_partial=True)
    contribute(tree, 0, 1)
    flush = tree.packet(0, operation=Operation.FLUSH, num_contributors=level)
    tree.deliver(0, flush)
    # The middle switch is all that the root waits for.
    assert tree.outcomes[:3] == [
        ("left", Outcome.RELAYED),
        ("middle", Outcome.FLUSHED),
        ("root", Outcome.COMPLETED),
    ]


def test_tree_levels_probe_is_answered_from_above(make_tree: MakeTree) -> None:
    tree = make_tree(2)
    contribute(tree, 0, 1)
    probe = tree.packet(0, operation=Operation.PROBE)
    notice = change(
        probe, operation=Operation.NOTICE, worker_id=0, worker_bitmap=0b11, num_contributors=2
    )
    arrived = tree.deliver(0, probe)
    check(arrived, [each for each in tree.results(notice) if each[0] in (0, 1)])
    assert tree.outcomes == [
        ("left", Outcome.RELAYED),
        ("root", Outcome.NOTIFIED),
        ("left", Outcome.RELAYED),
    ]
