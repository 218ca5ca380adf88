# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Trees of a transposed job: one for each worker's host that a switch runs on.

Each is this switch alone, which has all workers at its ports. So every host sums a part of each
tensor, and no link between switches is needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, Protocol

from ...errors import NoTreeError
from ..fabric import Direction, Fabric
from ..reachability import NO_DEMAND, SlotDemand
from .frame_cost import Traffic
from .tree_plan import MAX_CHILDREN, PlannedChild, PlannedNode, PlannedTree, TreePlan, predict

MOST_TREES: Final = 32
"""A worker has a socket for each."""
_MOST_NAMED: Final = 8


class Station(Protocol):
    """A worker by its address; `controller.jobs.job.Worker` is one."""

    @property
    def worker_id(self) -> int:
        """Id in the job."""
        ...

    @property
    def address(self) -> str:
        """IPv4 address."""
        ...


def plan_transposed(
    fabric: Fabric,
    workers: Sequence[Station],
    traffic: Traffic,
    slots: SlotDemand = NO_DEMAND,
) -> TreePlan:
    """Return a tree for each switch that runs on a worker's host, if it can be a root.

    It must be up, aggregate, have a slot free and all workers among its hosts. Shares follow the
    rates of the switches' ports, and not their use at the moment: all trees share the hosts' links.
    NoTreeError says what each switch lacks.
    """
    problems = {name: _problem(fabric, name, workers, slots) for name in sorted(fabric.switches)}
    names = [name for name, problem in problems.items() if not problem]
    if not names:
        shown = [f"{name} {problem}" for name, problem in problems.items()]
        more = f" and {len(shown) - _MOST_NAMED} more" if len(shown) > _MOST_NAMED else ""
        raise NoTreeError(
            "no switch can be a root of a transposed job: it must run on a worker's host (on_host"
            " in the controller's file) and have all workers among its hosts:"
            f" {'; '.join(shown[:_MOST_NAMED])}{more}",
            workers=tuple(sorted(worker.worker_id for worker in workers)),
        )
    nodes = {name: _root(fabric, name, workers) for name in names}
    rates = {name: _rate(fabric, node) for name, node in nodes.items()}
    chosen = sorted(names, key=lambda name: -rates[name])[:MOST_TREES]
    total = sum(rates[name] for name in chosen)
    trees = tuple(PlannedTree(nodes=(nodes[name],), share=rates[name] / total) for name in chosen)
    prediction = predict(fabric, trees, traffic)
    return TreePlan(
        trees=trees,
        traffic=traffic,
        prediction=prediction,
        lower_bound_s=prediction.seconds - prediction.latency_s,
    )


def _problem(fabric: Fabric, name: str, workers: Sequence[Station], slots: SlotDemand) -> str:
    """Return why a switch cannot be a root; "" if it can."""
    switch = fabric.switches[name]
    hosts = [switch.host_at(worker.address) for worker in workers]
    problem = ""
    if not switch.aggregates:
        problem = "does not aggregate"
    elif not switch.on_host:
        problem = "runs on no host"
    elif None in hosts:
        worker = workers[hosts.index(None)]
        problem = f"does not have worker {worker.worker_id} ({worker.address})"
    elif all(host is None or host.name != switch.on_host for host in hosts):
        problem = f"runs on {switch.on_host}, which has no worker"
    elif name in fabric.down_switches:
        problem = "is down or to be avoided"
    elif len(workers) > MAX_CHILDREN:
        problem = f"takes at most {MAX_CHILDREN} workers, and there are {len(workers)}"
    elif slots.free.get(name, 1) < 1:
        problem = "has no slot free"
    return problem


def _root(fabric: Fabric, name: str, workers: Sequence[Station]) -> PlannedNode:
    children: list[PlannedChild] = []
    for worker in sorted(workers, key=lambda worker: worker.worker_id):
        host = fabric.switches[name].host_at(worker.address)
        assert host is not None, "the switch lists all workers"
        children.append(PlannedChild(port=host.port, num_workers=1, worker_id=worker.worker_id))
    return PlannedNode(switch=name, parent=None, children=tuple(children))


def _rate(fabric: Fabric, node: PlannedNode) -> float:
    """Return the rate of a switch for each of its workers, bits/s: they may share a port."""
    sharers = Counter(child.port for child in node.children)
    return min(fabric.rate(Direction(node.switch, port)) / count for port, count in sharers.items())
