# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Twin of result_delivery.p4: multicast group of a tree and table `worker_address`."""

from __future__ import annotations

import ipaddress

from finsy import Action, Match, P4MulticastGroupEntry, P4TableEntry

from ...hostlib.slots.wire import UDP_PORT
from ..jobs.job import ChildId, Placement

TABLES = ("worker_address",)
PARENT_REPLICA_ID = 0
"""Replica id of packets to the parent: they are unicast, so there is no replica."""


def replica_id(child_id: ChildId) -> int:
    """Return the instance of the multicast replica of a child or a row server."""
    return child_id + 1


def multicast_group(placement: Placement) -> P4MulticastGroupEntry:
    """Return the group that carries a tree's results at a switch: one replica per child."""
    return P4MulticastGroupEntry(
        placement.tree.tree_id,
        replicas=[(child.port, replica_id(child.child_id)) for child in placement.node.children],
    )


def table_entries(placement: Placement) -> list[P4TableEntry]:
    """Return the entries that address each replica to its child or row server, and the parent."""
    children, parent = placement.node.children, placement.node.parent
    stations = [
        (replica_id(child.child_id), child.mac, child.address, child.udp_port) for child in children
    ]
    if parent is not None:
        stations.append((PARENT_REPLICA_ID, parent.mac, parent.address, UDP_PORT))
    else:
        stations.extend(
            (replica_id(server.child_id), server.mac, server.address, server.udp_port)
            for server in placement.tree.row_servers
        )
    return [
        P4TableEntry(
            "worker_address",
            match=Match(job_id=placement.tree.tree_id, replica_id=replica),
            action=Action(
                "set_worker_address",
                mac=mac,
                address=int(ipaddress.IPv4Address(address)),
                udp_port=udp_port,
            ),
        )
        for replica, mac, address, udp_port in stations
    ]
