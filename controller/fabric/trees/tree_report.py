# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A plan as the operator API's message, from which text, picture and JSON are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...api.operator_api import fabric_pb2 as pb
from ..fabric import Direction, Fabric
from .tree_plan import (
    LinkLoad,
    PlannedNode,
    PlannedTree,
    PredictedCost,
    TreePlan,
    describe_trees,
)


def report_plan(fabric: Fabric, plan: TreePlan, slots: int = 0) -> pb.TreeReport:
    """Return the message for a plan; `slots` are split among its trees."""
    counts = plan.slot_counts(slots) if slots else (0,) * len(plan.trees)
    if slots:
        plan = plan.with_slots(fabric, counts)
    report = pb.TreeReport(
        path="switch",
        num_workers=plan.trees[0].root.num_workers,
        tensor_bytes=plan.traffic.tensor_bytes,
        values_per_packet=plan.traffic.values_per_packet,
        label=describe_trees(plan.trees),
        lower_bound_s=plan.lower_bound_s,
        trees=[
            report_tree(fabric, tree, slot_count=count)
            for tree, count in zip(plan.trees, counts, strict=True)
        ],
        alternatives=[
            pb.ReportedAlternative(label=each.label, seconds=each.seconds)
            for each in plan.alternatives
        ],
    )
    add_prediction(report, plan.prediction)
    return report


def report_tree(
    fabric: Fabric,
    tree: PlannedTree,
    *,
    slot_count: int = 0,
    tree_id: int = 0,
    slot_bases: Mapping[str, int] | None = None,
) -> pb.ReportedTree:
    """Return the message for one tree; `slot_bases` are by switch."""
    bases = slot_bases or {}
    return pb.ReportedTree(
        tree_id=tree_id,
        slot_count=slot_count,
        share=tree.share,
        nodes=[_node(fabric, node, bases.get(node.switch, 0)) for node in tree.nodes],
    )


def add_prediction(report: pb.TreeReport, prediction: PredictedCost) -> None:
    """Enter time and loads."""
    report.seconds = prediction.seconds
    report.latency_s = prediction.latency_s
    report.loads.extend(_load(load) for load in prediction.loads)


def add_measurement(
    report: pb.TreeReport,
    expected_bytes: Mapping[Direction, float],
    measured_bytes: Mapping[Direction, float],
) -> None:
    """Add the bytes that should have crossed each direction since the view began, and that did."""
    report.is_measured = True
    for load in report.loads:
        direction = Direction(load.switch, load.port, load.is_inward)
        load.expected_bytes = expected_bytes.get(direction, 0.0)
        load.measured_bytes = measured_bytes.get(direction, 0.0)


def _node(fabric: Fabric, node: PlannedNode, slot_base: int) -> pb.ReportedNode:
    message = pb.ReportedNode(switch=node.switch, slot_base=slot_base)
    if node.parent is not None:
        message.parent = node.parent.switch
        message.port = node.parent.port
        message.parent_port = node.parent.peer_port
    for child in node.children:
        if child.worker_id is not None:
            host, _ = fabric.ends(Direction(node.switch, child.port, is_inward=True))
            message.workers.add(worker_id=child.worker_id, host=host, port=child.port)
    return message


def _load(load: LinkLoad) -> pb.ReportedLoad:
    return pb.ReportedLoad(
        sender=load.sender,
        receiver=load.receiver,
        switch=load.direction.switch,
        port=load.direction.port,
        is_inward=load.direction.is_inward,
        rate_bits_per_s=load.rate_bits_per_s,
        residual_bits_per_s=load.residual_bits_per_s,
        predicted_bytes=load.num_bytes,
        seconds=load.seconds,
    )


def is_between_switches(report: pb.TreeReport, load: pb.ReportedLoad) -> bool:
    """Return whether a load crosses a link between switches of the trees."""
    switches = tree_switches(report.trees)
    return load.sender in switches and load.receiver in switches


def tree_switches(trees: Sequence[pb.ReportedTree]) -> list[str]:
    """Return the names of all switches, each once."""
    return list(dict.fromkeys(node.switch for tree in trees for node in tree.nodes))
