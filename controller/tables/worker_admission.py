# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Twin of worker_admission.p4: tables `job` and `worker` decide whose packets reach a slot."""

from __future__ import annotations

import ipaddress

from finsy import Action, Match, P4TableEntry

from ...hostlib.slots.wire import MAX_PRIORITY
from ..jobs.job import Placement

TREE_TABLE = "job"
TABLES = ("worker", TREE_TABLE)
"""In the order of insertion: a tree is admitted after its children and row servers."""


def table_entries(placement: Placement, priority_limit: int = MAX_PRIORITY) -> list[P4TableEntry]:
    """Return the entries that admit an installed tree, in the order of insertion.

    `priority_limit` is the switch's, which may be less than it was when the view was planned.
    """
    tree, node = placement.tree, placement.node
    entries = [
        P4TableEntry(
            "worker",
            match=Match(
                job_id=tree.tree_id,
                worker_id=child.child_id,
                ingress_port=child.port,
                source_address=int(ipaddress.IPv4Address(child.address)),
            ),
            action=Action(
                "admit_worker",
                worker_bit=1 << child.child_id,
                contributor_mask=child.contributor_mask,
                max_contributors=child.num_workers,
            ),
        )
        for child in node.children
    ]
    entries.extend(
        P4TableEntry(
            "worker",
            match=Match(
                job_id=tree.tree_id,
                worker_id=server.child_id,
                ingress_port=server.port,
                source_address=int(ipaddress.IPv4Address(server.address)),
            ),
            action=Action("admit_server"),
        )
        for server in (tree.row_servers if node.parent is None else ())
    )
    entries.append(
        P4TableEntry(
            TREE_TABLE,
            match=Match(job_id=tree.tree_id),
            action=_admission(placement, priority_limit),
        )
    )
    return entries


def _admission(placement: Placement, priority_limit: int) -> Action:
    view, tree, node = placement.view, placement.tree, placement.node
    of_every_node = {
        "generation": view.generation,
        "slot_base": node.slot_base,
        "slot_count": tree.slot_count,
        "children_bitmap": node.children_bitmap,
        "multicast_group_id": tree.tree_id,
        "allow_partial": int(view.straggler.allow_partial),
        "level": tree.level(node),
        "max_priority": min(view.max_priority, priority_limit),
    }
    if node.parent is None:
        return Action(
            "admit_root",
            **of_every_node,
            quorum=min(view.straggler.quorum or view.num_workers, view.num_workers),
            num_workers=view.num_workers,
        )
    return Action(
        "admit_inner",
        **of_every_node,
        parent_port=node.parent.port,
        parent_address=int(ipaddress.IPv4Address(node.parent.address)),
        child_id=node.parent.child_id,
        child_bitmap=node.parent.child_bitmap,
    )
