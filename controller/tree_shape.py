# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Trees before they have slots: who is whose child at which switch."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from controller.errors import NoRoomError
from controller.job import Child, Tree, TreeNode, Worker
from hostlib import wire


def worker_child(worker: Worker) -> Child:
    """Return a worker as the child of its switch, in a layout whose worker ids are below 32."""
    return Child(
        child_id=worker.worker_id,
        port=worker.port,
        address=worker.address,
        mac=worker.mac,
        udp_port=worker.udp_port,
        num_workers=1,
        contributor_mask=1 << worker.worker_id,
        worker_id=worker.worker_id,
    )


def one_switch_tree(members: Sequence[Worker], avoid: Collection[str]) -> tuple[Tree, ...]:
    """Return the tree of members that are all attached to one switch."""
    switches = {member.switch for member in members}
    if len(switches) != 1 or switches & set(avoid):
        raise NoRoomError(
            f"no tree over the switches {', '.join(sorted(switches))} can be had now; wait until "
            "they are ready, or let the job run between the hosts (path 'auto')"
        )
    if max(member.worker_id for member in members) >= wire.MAX_WORKERS:
        raise NoRoomError(
            f"worker ids must lie below {wire.MAX_WORKERS} on one switch; spread the workers over "
            "more switches, or let the job run between the hosts (path 'auto')"
        )
    node = TreeNode(
        switch=members[0].switch,
        children=tuple(worker_child(member) for member in members),
    )
    return (Tree(nodes=(node,)),)
