# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Decoding the views that the controller sends."""

from __future__ import annotations

from ..loss_tolerance import LossTolerance
from ..straggler import StragglerPolicy
from .session_api import session_pb2 as api
from .view import UNKNOWN_MAC, Endpoint, JobView, Member, TreeView


def decode_tolerance(message: api.View | api.Straggler) -> LossTolerance:
    """Return the tolerance of a message that has one; ConfigurationError if it makes no sense."""
    tolerance = message.tolerance
    return LossTolerance(
        loss=tolerance.loss, worker_floor=tolerance.worker_floor, stale=tolerance.stale
    )


def decode_view(view: api.View, *, job: int, worker_id: int, values_per_packet: int) -> JobView:
    """Return the view of a message; ConfigurationError when its numbers make no sense."""
    return JobView(
        job=job,
        generation=view.generation,
        worker_id=worker_id,
        members=tuple(
            Member(
                worker_id=member.worker_id,
                address=member.address,
                peer_address=member.peer_address,
                peer_port=member.peer_port,
            )
            for member in view.members
        ),
        trees=tuple(
            TreeView(
                tree_id=tree.tree_id,
                slot_count=tree.slot_count,
                members=tree.members,
                level=tree.level,
                root=_root(tree),
            )
            for tree in view.trees
        ),
        child_id=view.child_id,
        worker_bitmap=view.worker_bitmap,
        values_per_packet=values_per_packet,
        switch=Endpoint(
            address=view.switch_address,
            udp_port=view.switch_udp_port,
            mac=view.switch_mac or UNKNOWN_MAC,
        ),
        straggler=StragglerPolicy(
            quorum=view.quorum or None,
            deadline_s=view.deadline_s or None,
            tolerance=decode_tolerance(view) if view.HasField("tolerance") else None,
        ),
        neighbours=tuple(view.neighbours) or None,
        max_priority=view.max_priority,
        is_on_host=view.is_on_host,
    )


def _root(tree: api.Tree) -> Endpoint | None:
    if not tree.switch_address:
        return None
    return Endpoint(address=tree.switch_address, udp_port=tree.switch_udp_port)
