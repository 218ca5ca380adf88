# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Trees as the planner makes them, for tests that need one without a controller."""

from __future__ import annotations

from collections.abc import Sequence

from switchfold.controller.config import LinkConfig, SwitchConfig
from switchfold.controller.fabric.fabric import Fabric
from switchfold.controller.fabric.trees.frame_cost import Traffic
from switchfold.controller.fabric.trees.planner import plan_trees
from switchfold.controller.jobs.job import Tree, Worker
from switchfold.controller.views.tree_shape import tree_shape


def planned_trees(
    switches: Sequence[SwitchConfig], links: Sequence[LinkConfig], members: Sequence[Worker]
) -> tuple[Tree, ...]:
    """Return the best trees of these members, without ids and slots."""
    fabric = Fabric(switches={switch.name: switch for switch in switches}, links=tuple(links))
    plan = plan_trees(fabric, members, Traffic(tensor_bytes=1 << 20, values_per_packet=32))
    return tuple(tree_shape(tree, members, fabric.switches) for tree in plan.trees)


def leaf_spine(num_leaves: int, num_spines: int) -> tuple[list[SwitchConfig], list[LinkConfig]]:
    """Return leaves l1.. and spines p1.. with a link between every two; uplinks from port 100."""
    switches = [
        SwitchConfig(
            name=name,
            address="127.0.0.1:1",
            service_address=f"10.0.255.{number}",
            service_mac=f"02:53:46:00:00:{number:02x}",
        )
        for number, name in enumerate(
            [f"l{n + 1}" for n in range(num_leaves)] + [f"p{n + 1}" for n in range(num_spines)], 1
        )
    ]
    links = [
        LinkConfig(a=f"l{leaf + 1}", a_port=100 + spine, b=f"p{spine + 1}", b_port=leaf + 1)
        for leaf in range(num_leaves)
        for spine in range(num_spines)
    ]
    return switches, links


def worker_at(worker_id: int, switch: str, port: int, peer_port: int = 0) -> Worker:
    """Return a worker whose addresses follow from its id."""
    return Worker(
        worker_id=worker_id,
        address=f"10.0.{worker_id // 250}.{worker_id % 250 + 1}",
        mac=f"02:00:00:00:{worker_id // 250:02x}:{worker_id % 250 + 1:02x}",
        udp_port=5000 + worker_id,
        port=port,
        switch=switch,
        peer_address=f"10.0.{worker_id // 250}.{worker_id % 250 + 1}",
        peer_port=peer_port,
    )
