# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Layouts as the controller sends them, and what a worker keeps of them."""

from __future__ import annotations

from ..straggler import StragglerPolicy
from .session_api import session_pb2 as api
from .view import UNKNOWN_MAC, Endpoint, JobView, Member, TreeView


def decode_layout(
    layout: api.Layout, *, job: int, worker_id: int, values_per_packet: int
) -> JobView:
    """Return the view of a layout; ConfigurationError when its numbers make no sense."""
    return JobView(
        job=job,
        generation=layout.generation,
        worker_id=worker_id,
        members=tuple(
            Member(
                worker_id=member.worker_id,
                address=member.address,
                peer_address=member.peer_address,
                peer_port=member.peer_port,
            )
            for member in layout.members
        ),
        trees=tuple(
            TreeView(tree_id=tree.tree_id, slot_count=tree.slot_count) for tree in layout.trees
        ),
        child_id=layout.child_id,
        worker_bitmap=layout.worker_bitmap,
        values_per_packet=values_per_packet,
        switch=Endpoint(
            address=layout.switch_address,
            udp_port=layout.switch_udp_port,
            mac=layout.switch_mac or UNKNOWN_MAC,
        ),
        straggler=StragglerPolicy(
            quorum=layout.quorum or None, deadline_s=layout.deadline_s or None
        ),
        neighbours=tuple(layout.neighbours) or None,
    )
