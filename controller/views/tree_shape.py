# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Trees before they have slots: who is whose child at which switch, under which id and bitmap.

Contributor bitmaps name workers by their ids where all ids fit, on every level; in larger views
each switch names its children instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...hostlib.slots import wire
from ..config import SwitchConfig
from ..fabric.fabric import Hop
from ..fabric.trees.tree_plan import PlannedChild, PlannedNode, PlannedTree
from ..jobs.job import Child, ChildId, Parent, Tree, TreeNode, Worker


def tree_shape(
    planned: PlannedTree, members: Sequence[Worker], switches: Mapping[str, SwitchConfig]
) -> Tree:
    """Return a planned tree with what its switches must know of each other and of the members."""
    return _Shaping(planned, members, switches).tree()


def planned_tree(tree: Tree) -> PlannedTree:
    """Return a tree as the planner knows it, to predict its cost."""
    ports = {
        (node.switch, child.switch): child.port for node in tree.nodes for child in node.children
    }
    return PlannedTree(
        nodes=tuple(
            PlannedNode(
                switch=node.switch,
                parent=Hop(
                    node.parent.port, node.parent.switch, ports[node.parent.switch, node.switch]
                )
                if node.parent
                else None,
                children=tuple(
                    PlannedChild(
                        port=child.port,
                        num_workers=child.num_workers,
                        worker_id=child.worker_id,
                        switch=child.switch or None,
                    )
                    for child in node.children
                ),
            )
            for node in tree.nodes
        ),
        share=tree.share,
    )


class _Shaping:
    """Builds one tree from the leaves up."""

    def __init__(
        self,
        planned: PlannedTree,
        members: Sequence[Worker],
        switches: Mapping[str, SwitchConfig],
    ) -> None:
        self._planned = planned
        self._switches = switches
        self._workers = {member.worker_id: member for member in members}
        self._is_small = max(self._workers) < wire.MAX_WORKERS
        self._ids = {node.switch: self._child_ids(node) for node in planned.nodes}
        self._id_at_parent = {
            child.switch: child_id
            for node in planned.nodes
            for child, child_id in zip(node.children, self._ids[node.switch], strict=True)
            if child.switch is not None
        }

    def tree(self) -> Tree:
        """Return the tree, without slots."""
        nodes: dict[str, TreeNode] = {}
        for node in reversed(self._planned.nodes):
            nodes[node.switch] = self._node(node, nodes)
        return Tree(
            nodes=tuple(nodes[node.switch] for node in self._planned.nodes),
            share=self._planned.share,
        )

    def _child_ids(self, node: PlannedNode) -> tuple[ChildId, ...]:
        """Return the ids of a node's children: a worker keeps its own id where ids fit."""
        if not self._is_small:
            return tuple(range(len(node.children)))
        taken = {child.worker_id for child in node.children}
        spare = (child_id for child_id in range(wire.MAX_WORKERS) if child_id not in taken)
        return tuple(
            next(spare) if child.worker_id is None else child.worker_id for child in node.children
        )

    def _node(self, planned: PlannedNode, below: Mapping[str, TreeNode]) -> TreeNode:
        children: list[Child] = []
        for child, child_id in zip(planned.children, self._ids[planned.switch], strict=True):
            if child.worker_id is not None:
                worker = self._workers[child.worker_id]
                mac = self._mac_at(planned.switch, worker)
                children.append(self._worker(worker, child.port, mac, child_id))
            elif child.switch is not None:
                children.append(self._switch(below[child.switch], child.port, child_id))
        return TreeNode(
            switch=planned.switch,
            children=tuple(sorted(children, key=lambda child: child.child_id)),
            parent=self._parent(planned),
        )

    def _mac_at(self, switch: str, worker: Worker) -> str:
        """Return a worker's MAC address at a switch: its own, or that of a router towards it."""
        if switch == worker.switch:
            return worker.mac
        host = self._switches[switch].host_at(worker.address)
        assert host is not None, "other switches than a worker's own are planned if they list it"
        return host.mac

    def _worker(self, worker: Worker, port: int, mac: str, child_id: ChildId) -> Child:
        return Child(
            child_id=child_id,
            port=port,
            address=worker.address,
            mac=mac,
            udp_port=worker.udp_port,
            num_workers=1,
            contributor_mask=1 << child_id,
            worker_id=worker.worker_id,
        )

    def _switch(self, node: TreeNode, port: int, child_id: ChildId) -> Child:
        config = self._switches[node.switch]
        workers = sum(child.contributor_mask for child in node.children)
        return Child(
            child_id=child_id,
            port=port,
            address=config.service_address,
            mac=config.service_mac,
            udp_port=wire.UDP_PORT,
            num_workers=node.num_workers,
            contributor_mask=workers if self._is_small else 1 << child_id,
            switch=node.switch,
        )

    def _parent(self, planned: PlannedNode) -> Parent | None:
        hop = planned.parent
        if hop is None:
            return None
        config = self._switches[hop.switch]
        child_id = self._id_at_parent[planned.switch]
        return Parent(
            switch=hop.switch,
            port=hop.port,
            address=config.service_address,
            mac=config.service_mac,
            child_id=child_id,
            child_bitmap=0 if self._is_small else 1 << child_id,
        )
