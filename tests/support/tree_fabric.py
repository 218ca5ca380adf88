# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Trees of switches for tests: attachments of workers, and each switch's tables and reference.

Ports, child ids and worker ids are all different numbers, so that a test that mixes them up fails.
"""

from __future__ import annotations

from dataclasses import dataclass

from reference_job import (
    ReferenceChild,
    ReferenceJob,
    ReferenceParent,
)
from switchfold.hostlib.slots.wire import UDP_PORT

Shape = tuple["int | Shape", ...]
"""A switch's children: worker ids, and switches with theirs."""
PARENT_PORT = 4
"""Port towards the root on every switch; children are at ports 1 to 3."""
FIRST_CHILD_ID = 5


@dataclass(frozen=True, kw_only=True)
class Address:
    """The address of a worker or a switch."""

    mac: int
    ipv4: int
    udp_port: int = UDP_PORT


def worker_address(worker: int) -> Address:
    """Return where a worker receives."""
    return Address(mac=0x0200_0000_0001 + worker, ipv4=0x0A00_0001 + worker)


def switch_address(node: int) -> Address:
    """Return a switch's service address."""
    return Address(mac=0x0200_0000_0100 + node, ipv4=0x0A00_0101 + node)


@dataclass(frozen=True, kw_only=True)
class Child:
    """A worker or a switch at a port of its parent."""

    child_id: int
    port: int
    workers: tuple[int, ...]
    """All workers at or below."""
    node: int | None = None
    """Its number, if it is a switch."""

    @property
    def address(self) -> Address:
        """Where it receives."""
        if self.node is not None:
            return switch_address(self.node)
        return worker_address(self.workers[0])


@dataclass(frozen=True, kw_only=True)
class Node:
    """A switch of the tree."""

    number: int
    children: tuple[Child, ...]
    parent: int | None
    """Number of the switch above; None: this is the root."""
    own: Child | None
    """What this switch is for its parent."""


class Tree:
    """The switches of one shape, root first; the others are numbered 1, 2, ...

    Trees of one shape with different roots and parent ports share all switches but the root.
    """

    def __init__(self, shape: Shape, *, root: int = 0, parent_port: int = PARENT_PORT) -> None:
        self.shape = shape
        self.root = root
        self.parent_port = parent_port
        self.nodes: list[Node] = []
        self._add(shape, None, None, [0])
        self.nodes.sort(key=lambda node: (node.parent is not None, node.number))
        self.workers = _workers_of(shape)

    def node(self, number: int) -> Node:
        """Return a switch of this tree by its number."""
        return next(node for node in self.nodes if node.number == number)

    def _add(self, shape: Shape, parent: int | None, own: Child | None, taken: list[int]) -> None:
        number = own.node if own is not None and own.node is not None else self.root
        children: list[Child] = []
        for index, what in enumerate(shape):
            node = None
            if not isinstance(what, int):
                taken[0] += 1
                node = taken[0]
            workers = (what,) if isinstance(what, int) else _workers_of(what)
            child_id = FIRST_CHILD_ID + 2 * index
            children.append(Child(child_id=child_id, port=index + 1, workers=workers, node=node))
        self.nodes.append(Node(number=number, children=tuple(children), parent=parent, own=own))
        for child, what in zip(children, shape, strict=True):
            if not isinstance(what, int):
                self._add(what, number, child, taken)

    def level(self, node: Node) -> int:
        """Return how many switches lie below, on the longest path down to a worker."""
        below = [self.node(child.node) for child in node.children if child.node is not None]
        return max((1 + self.level(one) for one in below), default=0)

    def attachment(self, worker: int) -> tuple[Node, Child]:
        """Return a worker's switch, and the worker as its child."""
        for node in self.nodes:
            for child in node.children:
                if child.node is None and child.workers == (worker,):
                    return node, child
        raise ValueError(f"no worker {worker} in {self.shape}")


def _workers_of(shape: Shape) -> tuple[int, ...]:
    found: list[int] = []
    for what in shape:
        found += [what] if isinstance(what, int) else _workers_of(what)
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class TreeEntry:
    """A table entry by P4Info's short names, keys and parameters in the program's order."""

    table: str
    match: dict[str, int]
    action: str
    params: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class TreeJob:
    """One aggregation tree's entry in the tables of its switches."""

    tree: Tree
    job_id: int
    generation: int
    slot_base: int
    slot_count: int
    quorum: int
    allow_partial: bool = False
    names_children: bool = False
    """Bits in headers stand for children, as in trees with too many workers."""

    def worker_bitmap(self, worker: int) -> int:
        """Return the bitmap of a worker's contributions."""
        return 1 << (self.tree.attachment(worker)[1].child_id if self.names_children else worker)

    def _mask(self, child: Child) -> int:
        if self.names_children:
            return 1 << child.child_id
        return sum(1 << worker for worker in child.workers)

    def _child_bitmap(self, own: Child) -> int:
        return 1 << own.child_id if self.names_children else 0

    def reference(self, node: Node) -> ReferenceJob:
        """Return the job as the reference of a switch knows it."""
        parent = None
        if node.parent is not None and node.own is not None:
            parent = ReferenceParent(
                port=self.tree.parent_port,
                address=switch_address(node.parent).ipv4,
                child_id=node.own.child_id,
                child_bitmap=self._child_bitmap(node.own),
            )
        return ReferenceJob(
            job_id=self.job_id,
            generation=self.generation,
            slot_base=self.slot_base,
            slot_count=self.slot_count,
            children={
                child.child_id: ReferenceChild(
                    port=child.port,
                    address=child.address.ipv4,
                    bit=1 << child.child_id,
                    contributor_mask=self._mask(child),
                    max_contributors=len(child.workers),
                )
                for child in node.children
            },
            parent=parent,
            num_workers=len(self.tree.workers),
            quorum=self.quorum,
            allow_partial=self.allow_partial,
            level=self.tree.level(node),
        )

    def replicas(self, node: Node) -> list[tuple[int, int]]:
        """Return the members of a switch's multicast group: (port, replica id)."""
        return [(child.port, child.child_id + 1) for child in node.children]

    def entries(self, node: Node) -> list[TreeEntry]:
        """Return the entries of a switch; the multicast group has the job's id."""
        entries = [self._job_entry(node)]
        if node.parent is not None:
            entries.append(self._address_entry(0, switch_address(node.parent)))
        for child in node.children:
            entries.append(
                TreeEntry(
                    table="worker",
                    match={
                        "job_id": self.job_id,
                        "worker_id": child.child_id,
                        "ingress_port": child.port,
                        "source_address": child.address.ipv4,
                    },
                    action="admit_worker",
                    params={
                        "worker_bit": 1 << child.child_id,
                        "contributor_mask": self._mask(child),
                        "max_contributors": len(child.workers),
                    },
                )
            )
            entries.append(self._address_entry(child.child_id + 1, child.address))
        return entries

    def _address_entry(self, replica_id: int, to: Address) -> TreeEntry:
        return TreeEntry(
            table="worker_address",
            match={"job_id": self.job_id, "replica_id": replica_id},
            action="set_worker_address",
            params={"mac": to.mac, "address": to.ipv4, "udp_port": to.udp_port},
        )

    def _job_entry(self, node: Node) -> TreeEntry:
        params = {
            "generation": self.generation,
            "slot_base": self.slot_base,
            "slot_count": self.slot_count,
            "children_bitmap": sum(1 << child.child_id for child in node.children),
        }
        if node.parent is None or node.own is None:
            params |= {"quorum": self.quorum, "num_workers": len(self.tree.workers)}
        params |= {
            "multicast_group_id": self.job_id,
            "allow_partial": int(self.allow_partial),
            "level": self.tree.level(node),
            "max_priority": 0,
        }
        if node.parent is None or node.own is None:
            action = "admit_root"
        else:
            action = "admit_inner"
            params |= {
                "parent_port": self.tree.parent_port,
                "parent_address": switch_address(node.parent).ipv4,
                "child_id": node.own.child_id,
                "child_bitmap": self._child_bitmap(node.own),
            }
        return TreeEntry(table="job", match={"job_id": self.job_id}, action=action, params=params)
