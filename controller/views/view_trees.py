# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The trees of an installed view as planned trees, so that their cost can be predicted again."""

from __future__ import annotations

from ..fabric.fabric import Hop
from ..fabric.trees.tree_plan import PlannedChild, PlannedNode, PlannedTree
from ..jobs.job import Child, Tree, View


def planned_trees(view: View) -> tuple[PlannedTree, ...]:
    """Return the view's trees, with the shares that their slots give."""
    total = view.slot_count
    return tuple(_planned_tree(tree, tree.slot_count / total) for tree in view.trees)


def slot_bases(tree: Tree) -> dict[str, int]:
    """Return the first slot of a tree by switch."""
    return {node.switch: node.slot_base for node in tree.nodes}


def _planned_tree(tree: Tree, share: float) -> PlannedTree:
    port_at_parent = {
        child.switch: child.port for node in tree.nodes for child in node.children if child.switch
    }
    return PlannedTree(
        share=share,
        nodes=tuple(
            PlannedNode(
                switch=node.switch,
                parent=None
                if node.parent is None
                else Hop(node.parent.port, node.parent.switch, port_at_parent[node.switch]),
                children=tuple(_planned_child(child) for child in node.children),
            )
            for node in tree.nodes
        ),
    )


def _planned_child(child: Child) -> PlannedChild:
    return PlannedChild(
        port=child.port,
        num_workers=child.num_workers,
        worker_id=child.worker_id,
        switch=child.switch or None,
    )
