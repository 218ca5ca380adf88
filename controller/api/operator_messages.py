# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs, layouts and counters as messages of the operator API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...hostlib.slots.wire import Outcome
from ..jobs.job import Job, Layout, TreeNode, Worker, WorkerId, WorkerState
from ..tables.outcome import Count, OrdinaryOutcome, add_counts
from .operator_api import operator_pb2 as pb


def job_message(
    job: Job, workers: Iterable[Worker], detached: set[WorkerId], missing: Iterable[WorkerId]
) -> pb.Job:
    """Return a job without counters; `detached` workers have no stream."""
    layout = job.layout
    return pb.Job(
        name=job.name,
        job_number=job.job_number,
        state=str(job.state),
        reason=job.reason,
        num_workers=job.num_workers,
        min_workers=job.min_workers,
        weight=job.weight,
        path_wanted=str(job.path),
        slots_wanted=job.slots_wanted,
        quorum=job.straggler.quorum or 0,
        deadline_s=job.straggler.deadline_s or 0.0,
        created_s=job.created_s,
        ended_s=job.ended_s or 0.0,
        generation=job.generation,
        path=_path(layout) if layout else "",
        slot_count=layout.slot_count if layout else 0,
        switches=layout.switches if layout else (),
        workers=[_worker(worker, detached) for worker in workers],
        missing_workers=missing,
        layouts=[_layout(layout) for layout in job.layouts],
    )


def put_counts(message: pb.Job, counts: Mapping[str, Mapping[Outcome, Count]]) -> None:
    """Enter a job's counters by switch, and their sums."""
    total: dict[Outcome, Count] = {}
    for switch, of_switch in counts.items():
        message.switch_counts.add(switch=switch, counts=outcome_counts(of_switch))
        add_counts(total, of_switch)
    message.counts.extend(outcome_counts(total))


def outcome_counts(
    counts: Mapping[Outcome, Count] | Mapping[OrdinaryOutcome, Count],
) -> list[pb.OutcomeCount]:
    """Return counters by the names of their outcomes."""
    return [
        pb.OutcomeCount(outcome=outcome.name.lower(), packets=count.packets, bytes=count.num_bytes)
        for outcome, count in counts.items()
    ]


def lease_messages(
    switch: str, layouts: Iterable[Layout], jobs: Mapping[int, Job]
) -> list[pb.Lease]:
    """Return what layouts hold of a switch's slots, by slot."""
    leases: list[pb.Lease] = []
    for layout in layouts:
        job = jobs.get(layout.job_number)
        for placement in layout.placements(switch):
            leases.append(
                pb.Lease(
                    job=job.name if job else f"job number {layout.job_number}",
                    generation=layout.generation,
                    tree_id=placement.tree.tree_id,
                    slot_base=placement.node.slot_base,
                    slot_count=placement.tree.slot_count,
                    weight=job.weight if job else 1.0,
                    state=str(layout.state),
                    parent=placement.node.parent.switch if placement.node.parent else "",
                )
            )
    return sorted(leases, key=lambda lease: lease.slot_base)


def _path(layout: Layout) -> str:
    return "switch" if layout.is_on_switch else "host"


def _layout(layout: Layout) -> pb.JobLayout:
    return pb.JobLayout(
        generation=layout.generation,
        state=str(layout.state),
        path=_path(layout),
        reason=layout.reason,
        members=[member.worker_id for member in layout.members],
        trees=[
            pb.JobTree(
                tree_id=tree.tree_id,
                slot_count=tree.slot_count,
                nodes=[_node(node) for node in tree.nodes],
            )
            for tree in layout.trees
        ],
    )


def _node(node: TreeNode) -> pb.JobTreeNode:
    return pb.JobTreeNode(
        switch=node.switch,
        slot_base=node.slot_base,
        parent=node.parent.switch if node.parent else "",
        workers=[child.worker_id for child in node.children if child.worker_id is not None],
    )


def _worker(worker: Worker, detached: set[WorkerId]) -> pb.Worker:
    is_detached = worker.state is WorkerState.JOINED and worker.worker_id in detached
    return pb.Worker(
        worker_id=worker.worker_id,
        address=worker.address,
        mac=worker.mac,
        udp_port=worker.udp_port,
        port=worker.port,
        state="detached" if is_detached else str(worker.state),
        switch=worker.switch,
    )
