# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs, views and counters as messages of the operator API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ...hostlib.slots.wire import Outcome
from ..jobs.job import Job, RowServer, ServerId, TreeNode, View, Worker, WorkerId, WorkerState
from ..tables.outcome import Count, OrdinaryOutcome, add_counts
from .callers.source_calls import SourceCalls
from .operator_api import operator_pb2 as pb

_MAX_SOURCES: Final = 16
"""Sources that an answer lists."""


def source_messages(sources: SourceCalls) -> list[pb.SourceCalls]:
    """Return the sources that were refused most, then the busiest."""
    return [
        pb.SourceCalls(source=each.source, calls=each.calls, refused=each.refused)
        for each in sources.counts(_MAX_SOURCES)
    ]


def job_message(
    job: Job, workers: Iterable[Worker], detached: set[WorkerId], missing: Iterable[WorkerId]
) -> pb.Job:
    """Return a job without counters; `detached` workers have no stream."""
    view = job.view
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
        max_priority_wanted=job.max_priority,
        max_priority=view.max_priority if view else 0,
        quorum=job.straggler.quorum or 0,
        deadline_s=job.straggler.deadline_s or 0.0,
        tolerance=_tolerance(job),
        created_s=job.created_s,
        ended_s=job.ended_s or 0.0,
        generation=job.generation,
        path=_path(view) if view else "",
        slot_count=view.slot_count if view else 0,
        switches=view.switches if view else (),
        workers=[_worker(worker, detached) for worker in workers],
        missing_workers=missing,
        views=[_view(view) for view in job.views],
    )


def _tolerance(job: Job) -> pb.Tolerance | None:
    tolerance = job.straggler.tolerance
    if tolerance is None:
        return None
    return pb.Tolerance(
        loss=tolerance.loss, worker_floor=tolerance.least_of_worker, stale=tolerance.stale
    )


def put_counts(message: pb.Job, counts: Mapping[str, Mapping[Outcome, Count]]) -> None:
    """Add a job's counters by switch, and their sums."""
    total: dict[Outcome, Count] = {}
    for switch, of_switch in counts.items():
        message.switch_counts.add(switch=switch, counts=outcome_counts(of_switch))
        add_counts(total, of_switch)
    message.counts.extend(outcome_counts(total))


def put_server_states(message: pb.Job, states: Mapping[ServerId, str]) -> None:
    """Add what is known of the row servers in the view that a job uses."""
    for view in message.views:
        for server in view.row_servers if view.generation == message.generation else ():
            server.state = states.get(server.server_id, "")


def outcome_counts(
    counts: Mapping[Outcome, Count] | Mapping[OrdinaryOutcome, Count],
) -> list[pb.OutcomeCount]:
    """Return counters by the names of their outcomes."""
    return [
        pb.OutcomeCount(outcome=outcome.name.lower(), packets=count.packets, bytes=count.num_bytes)
        for outcome, count in counts.items()
    ]


def lease_messages(switch: str, views: Iterable[View], jobs: Mapping[int, Job]) -> list[pb.Lease]:
    """Return the slots of a switch that views hold, in order."""
    leases: list[pb.Lease] = []
    for view in views:
        job = jobs.get(view.job_number)
        for placement in view.placements(switch):
            leases.append(
                pb.Lease(
                    job=job.name if job else f"job number {view.job_number}",
                    generation=view.generation,
                    tree_id=placement.tree.tree_id,
                    slot_base=placement.node.slot_base,
                    slot_count=placement.tree.slot_count,
                    weight=job.weight if job else 1.0,
                    state=str(view.state),
                    parent=placement.node.parent.switch if placement.node.parent else "",
                    row_base=placement.node.row_base,
                    row_slots=placement.tree.row_slots,
                )
            )
    return sorted(leases, key=lambda lease: lease.slot_base)


def _path(view: View) -> str:
    return "switch" if view.is_on_switch else "host"


def _view(view: View) -> pb.JobView:
    return pb.JobView(
        generation=view.generation,
        state=str(view.state),
        path=_path(view),
        reason=view.reason,
        members=[member.worker_id for member in view.members],
        trees=[
            pb.JobTree(
                tree_id=tree.tree_id,
                slot_count=tree.slot_count,
                nodes=[_node(node) for node in tree.nodes],
            )
            for tree in view.trees
        ],
        row_servers=[_row_server(view, server) for server in view.row_servers],
    )


def _row_server(view: View, server: RowServer) -> pb.JobRowServer:
    tree = view.tree_of(server.server_id)
    return pb.JobRowServer(
        server_id=server.server_id,
        address=server.address,
        udp_port=server.udp_port,
        switch=server.switch,
        port=server.port,
        tree_id=tree.tree_id if tree else 0,
        first_row=server.first_row,
        num_rows=server.num_rows,
        rows_wanted=server.rows_wanted,
        reason=server.reason,
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
