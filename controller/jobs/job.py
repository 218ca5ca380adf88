# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Values that describe jobs: what the database stores and what tables are made of.

A job lives from its first worker's JoinRequest to its end. It passes through views: arrangements of
named members, aggregation trees and slots, each under its own generation. A view without trees
runs between the hosts.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ...hostlib.slots.wire import MAX_WORKERS
from ...hostlib.straggler import WAIT_FOR_ALL, StragglerPolicy

JobNumber = int
"""Names a job for good; from 1, strictly increasing."""
TreeId = int
"""1..32767: `job_id` in headers and tables; also the tree's multicast group on each switch."""
Generation = int
"""32 bit, strictly increasing over all views of a controller."""
WorkerId = int
"""From 0; the job's, for its life."""
ChildId = int
"""0..31: `worker_id` in headers that reach a switch; each switch counts for itself.

Row servers have 32 + their server id.
"""
ServerId = int
"""0..31: a row server in its job."""


class JobState(enum.StrEnum):
    """Life of a job."""

    WAITING = "waiting"
    """Workers are still missing."""
    RUNNING = "running"
    """All workers arrived; a view is installed."""
    ENDED = "ended"


class PathChoice(enum.StrEnum):
    """Where a job wants to run."""

    AUTO = "auto"
    """On switches when they have room, else between the hosts."""
    SWITCH = "switch"
    """Refused rather than run between the hosts."""
    HOST = "host"
    TRANSPOSED = "transposed"
    """On every switch that runs on a worker's host, with a tree each; refused without one."""


class WorkerState(enum.StrEnum):
    """Life of a worker in its job."""

    JOINED = "joined"
    LEFT = "left"
    LOST = "lost"


class ViewState(enum.StrEnum):
    """Life of a view."""

    PLANNED = "planned"
    """Slots are leased; no switch knows of it."""
    INSTALLED = "installed"
    """Its switches hold its entries, or get them as soon as they can be reached."""
    REMOVED = "removed"


@dataclass(frozen=True, kw_only=True)
class Worker:
    """One worker and where it is attached."""

    worker_id: WorkerId
    address: str
    mac: str
    udp_port: int
    port: int
    """P4 port number of the switch."""
    switch: str = ""
    peer_address: str = ""
    """Where other workers reach its peer server."""
    peer_port: int = 0
    """TCP; 0: no peer server, hence no host allreduce."""
    state: WorkerState = WorkerState.JOINED


@dataclass(frozen=True, kw_only=True)
class RowServer:
    """A parameter server with hot rows: where it is attached, and its rows in a tree."""

    server_id: ServerId
    identity: str
    """Tells one server from another in this place; hexadecimal."""
    address: str
    mac: str
    udp_port: int
    """Where sums and receipts go."""
    port: int
    """P4 port number of the switch."""
    switch: str
    rows_wanted: int
    first_row: int = 0
    num_rows: int = 0
    """0: no place in the view."""
    sums_group_id: int = 0
    """Multicast group at the root that carries sums to the server."""
    copies_group_id: int = 0
    """Multicast group on each switch that carries stored values on: to the server from the root,
    and to the switches below."""
    reason: str = ""
    """Why it has no place, or fewer rows than it wants."""

    @property
    def child_id(self) -> ChildId:
        """The `worker_id` of its packets."""
        return MAX_WORKERS + self.server_id

    @property
    def without_rows(self) -> RowServer:
        """What it told when it attached: all but its rows."""
        return replace(self, first_row=0, num_rows=0, sums_group_id=0, copies_group_id=0, reason="")


def wanted_roots(servers: Iterable[RowServer]) -> list[str]:
    """Return the switches of row servers, those with the most servers first."""
    counts = Counter(server.switch for server in servers)
    return sorted(counts, key=lambda switch: (-counts[switch], switch))


@dataclass(frozen=True, kw_only=True)
class Child:
    """What a switch must know of one of its children in a tree: a worker or a switch below."""

    child_id: ChildId
    port: int
    address: str
    mac: str
    udp_port: int
    num_workers: int
    """Workers below: the most that its contributions may count."""
    contributor_mask: int
    """Bits that its contributions may set."""
    worker_id: WorkerId | None = None
    switch: str = ""
    """Name of the switch below; empty for a worker."""


@dataclass(frozen=True, kw_only=True)
class Parent:
    """The switch above, as its child sees it."""

    switch: str
    port: int
    """Port towards the parent."""
    address: str
    mac: str
    child_id: ChildId
    """The child's own id at the parent."""
    child_bitmap: int = 0
    """Bitmap of what goes up; 0: the contributors collected here."""


@dataclass(frozen=True, kw_only=True)
class TreeNode:
    """One switch of a tree."""

    switch: str
    slot_base: int = 0
    row_base: int = 0
    """First slot of the tree's hot rows."""
    children: tuple[Child, ...]
    """By child id."""
    parent: Parent | None = None
    """None: the root."""

    @property
    def children_bitmap(self) -> int:
        """Child ids that make a round complete."""
        return sum(1 << child.child_id for child in self.children)

    @property
    def num_workers(self) -> int:
        """Workers below this switch."""
        return sum(child.num_workers for child in self.children)


def slots_of_rows(num_rows: int) -> int:
    """Return how many slots rows take: one for each row's pushes, half a one for its values."""
    return num_rows + (num_rows + 1) // 2


def rows_in(num_slots: int) -> int:
    """Return the most hot rows that fit into so many slots."""
    return 2 * num_slots // 3


@dataclass(frozen=True, kw_only=True)
class Tree:
    """One aggregation tree of a view: the same number of slots on each of its switches."""

    tree_id: TreeId = 0
    """0: not allocated yet."""
    slot_count: int = 0
    share: float = 1.0
    """Of the view's slots."""
    nodes: tuple[TreeNode, ...]
    """Root first."""
    row_servers: tuple[RowServer, ...] = ()
    """Servers at the root that have hot rows in this tree, by first row."""

    @property
    def root(self) -> TreeNode:
        """The node without a parent."""
        return self.nodes[0]

    @property
    def num_rows(self) -> int:
        """Hot rows of all servers."""
        return sum(server.num_rows for server in self.row_servers)

    @property
    def row_slots(self) -> int:
        """Slots of each switch that the hot rows take, beside `slot_count`."""
        return slots_of_rows(self.num_rows)

    def node(self, switch: str) -> TreeNode | None:
        """Return the tree's node at a switch."""
        return next((node for node in self.nodes if node.switch == switch), None)

    def level(self, node: TreeNode) -> int:
        """Return how many switches lie below a node, on the longest path down to a worker."""
        below = [self.node(child.switch) for child in node.children if child.switch]
        return max((1 + self.level(one) for one in below if one is not None), default=0)


@dataclass(frozen=True, kw_only=True)
class TreeAttachment:
    """How one worker takes part in a view's trees."""

    switch: str
    child_id: ChildId
    worker_bitmap: int


@dataclass(frozen=True, kw_only=True)
class View:
    """One arrangement of a job."""

    generation: Generation
    job_number: JobNumber
    members: tuple[Worker, ...]
    """Sorted by worker id."""
    trees: tuple[Tree, ...] = ()
    """Empty: between the hosts."""
    straggler: StragglerPolicy = WAIT_FOR_ALL
    state: ViewState = ViewState.PLANNED
    reason: str = ""
    """Why it runs between the hosts, or has fewer slots than it asked for."""
    unplaced_servers: tuple[RowServer, ...] = ()
    """Row servers that have no rows in this view, each with the reason."""
    max_priority: int = 0
    """Highest priority of its packets: the most that all switches of its trees let through."""
    is_transposed: bool = False
    """Each tree is one switch, and all members are its children."""

    @property
    def row_servers(self) -> tuple[RowServer, ...]:
        """All row servers that were attached when the view was planned, by id."""
        placed = (server for tree in self.trees for server in tree.row_servers)
        return tuple(sorted((*placed, *self.unplaced_servers), key=lambda server: server.server_id))

    def tree_of(self, server_id: ServerId) -> Tree | None:
        """Return the tree that holds a server's rows, None without a place."""
        for tree in self.trees:
            if any(server.server_id == server_id for server in tree.row_servers):
                return tree
        return None

    @property
    def num_workers(self) -> int:
        """Number of members."""
        return len(self.members)

    @property
    def quorum(self) -> int:
        """Contributions that complete a round."""
        return min(self.straggler.quorum or self.num_workers, self.num_workers)

    @property
    def slot_count(self) -> int:
        """Slots over all trees."""
        return sum(tree.slot_count for tree in self.trees)

    @property
    def is_on_switch(self) -> bool:
        """Whether switches aggregate."""
        return bool(self.trees)

    @property
    def switches(self) -> tuple[str, ...]:
        """Names of all switches, each once, in the order of the trees."""
        return tuple(dict.fromkeys(node.switch for tree in self.trees for node in tree.nodes))

    def slots_on(self, switch: str) -> int:
        """Return the slots that the view holds on a switch, those of hot rows too."""
        return sum(p.tree.slot_count + p.tree.row_slots for p in self.placements(switch))

    def placements(self, switch: str) -> Iterator[Placement]:
        """Yield what of this view lies on a switch."""
        for tree in self.trees:
            node = tree.node(switch)
            if node is not None:
                yield Placement(self, tree, node)

    def attachment(self, worker_id: WorkerId) -> TreeAttachment:
        """Return where a member hangs in the trees; KeyError when it is in none."""
        for tree in self.trees:
            for node in tree.nodes:
                for child in node.children:
                    if child.worker_id == worker_id:
                        return TreeAttachment(
                            switch=node.switch,
                            child_id=child.child_id,
                            worker_bitmap=child.contributor_mask,
                        )
        raise KeyError(worker_id)


@dataclass(frozen=True)
class Placement:
    """One tree of a view at one switch: what the switch's entries are made of."""

    view: View
    tree: Tree
    node: TreeNode

    @property
    def slots(self) -> range:
        """Slots of the switch that the tree holds."""
        return range(self.node.slot_base, self.node.slot_base + self.tree.slot_count)


@dataclass(frozen=True, kw_only=True)
class Job:
    """What users name."""

    job_number: JobNumber
    name: str
    num_workers: int
    """Workers that it starts with."""
    state: JobState
    straggler: StragglerPolicy = WAIT_FOR_ALL
    weight: float = 1.0
    """Share of the slots against other jobs that did not ask for a number."""
    path: PathChoice = PathChoice.AUTO
    min_workers: int = 1
    """The job ends when fewer are left."""
    slots_wanted: int = 0
    """0: the controller decides."""
    max_priority: int = 0
    """Highest priority that it asks for; its views have what is granted."""
    created_s: float
    """Unix time."""
    ended_s: float | None = None
    reason: str = ""
    """Why the job ended."""
    views: tuple[View, ...] = ()
    """Oldest first: those that lease slots, and the last few that were removed."""

    @property
    def live_views(self) -> tuple[View, ...]:
        """Views that lease slots."""
        return tuple(x for x in self.views if x.state is not ViewState.REMOVED)

    @property
    def view(self) -> View | None:
        """The view that workers use or go over to; of an ended job the last one."""
        used = [x for x in self.views if x.state is ViewState.INSTALLED] or self.live_views
        return next(reversed(used or self.views), None)

    @property
    def workers(self) -> tuple[Worker, ...]:
        """Members of the current view."""
        return self.view.members if self.view else ()

    @property
    def generation(self) -> Generation:
        """Generation of the current view, 0 before the first."""
        return self.view.generation if self.view else 0
