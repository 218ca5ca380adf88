# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One batch of a server's updates: order, bound, groups, and places in the commit sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..delay_bound import DeadlinePositions
from ..grouping import (
    AggregationPlaces,
    BatchPlan,
    PlanAim,
    PlanGoal,
    plan_groups,
    usable_places,
)
from ..network import ResidualNetwork
from ..ordering import order_transfers
from ..planning.leaf_order import LeafOrders
from ..server_queue import ServerQueue
from ..training.commit_order import CommitOrder
from ..training.options import SchedulerOptions
from ..training.training_modes import (
    StaleSynchronousTraining,
    SynchronousTraining,
    order_by_clock,
    order_for_makespan,
)
from ..transfers import (
    PlannedTransfer,
    TransferDrop,
    TransferGrant,
    TransferGroup,
    TransferRequest,
)


@dataclass(frozen=True, kw_only=True)
class PlannedBatch:
    """Decisions on a batch, and the network with their reservations."""

    grants: Sequence[TransferGrant]
    """In the order of commits; groups have no numbers of the job yet."""
    drops: Sequence[TransferDrop]
    residual: ResidualNetwork


def plan_batch(
    residual: ResidualNetwork,
    queue: ServerQueue,
    options: SchedulerOptions,
    now_s: float,
    places: AggregationPlaces | None,
) -> PlannedBatch:
    """Return the decisions on all that waits for a server; nothing changes.

    `places` are those of the moment, whatever the options say.
    """
    trial = residual.fork()
    ordered, drops = _order(trial, queue, options, now_s)
    messages: list[tuple[PlannedTransfer, TransferGroup | None]]
    messages = [(each, None) for each in ordered]
    if ordered and places and (places.hosts or places.switches):
        requests = [each.request for each in ordered]
        plan = _best_plan(residual, requests, queue, options, now_s, places)
        if plan.groups:  # else the order's own plan is as good, or better if its mode has one
            trial = plan.residual
            sent: dict[int, tuple[PlannedTransfer, TransferGroup | None]]
            sent = {each.request.transfer_id: (each, None) for each in plan.direct}
            for group in plan.groups:
                sent |= {each.request.transfer_id: (each, group) for each in group.members}
            messages = [sent[transfer_id] for transfer_id in plan.commits_s]
    return PlannedBatch(
        grants=_grants(messages, queue, options, now_s), drops=drops, residual=trial
    )


def _best_plan(  # noqa: PLR0917 - what a batch has
    residual: ResidualNetwork,
    ordered: Sequence[TransferRequest],
    queue: ServerQueue,
    options: SchedulerOptions,
    now_s: float,
    places: AggregationPlaces,
) -> BatchPlan:
    """Return the best plan with groups: in the batch's order, or in one by leaves."""
    is_sequence = options.commit_order is CommitOrder.SEQUENCE
    is_synchronous = isinstance(options.mode, SynchronousTraining)
    goal = PlanGoal(
        aim=PlanAim.LAST_COMMIT if is_synchronous else PlanAim.SUM_OF_COMMITS,
        earliest_commit_s=queue.last_commit_s if is_sequence else 0.0,
        join_ratio=options.join_ratio,
    )
    plan = plan_groups(residual, ordered, now_s, places, goal=goal)
    if not places.switches:
        return plan
    usable = usable_places(residual.network, ordered, places)
    by_leaf = LeafOrders(
        residual,
        now_s,
        usable.switches,
        most_members=usable.most_members,
        last_positions=_last_positions(ordered, queue, options),
        join_ratio=options.join_ratio,
    )
    others = [
        plan_groups(residual, order, now_s, places, goal=goal) for order in by_leaf.of(ordered)
    ]
    return min([plan, *others], key=lambda each: each.cost)


def _last_positions(
    ordered: Sequence[TransferRequest], queue: ServerQueue, options: SchedulerOptions
) -> dict[int, int] | None:
    """Return by transfer id the last place in the batch, from 1; None without a bound."""
    if options.bound is None or options.mode is not None:
        return None
    deadlines = DeadlinePositions(ordered, options.bound.tau_max, queue.next_commit)
    return {
        request.transfer_id: int(last)
        for request, last in zip(ordered, deadlines.last, strict=True)
    }


def _order(
    residual: ResidualNetwork, queue: ServerQueue, options: SchedulerOptions, now_s: float
) -> tuple[list[PlannedTransfer], list[TransferDrop]]:
    """Return the order that the mode of training wants, reserved in `residual`, and drops."""
    requests = list(queue.waiting.values())
    if isinstance(options.mode, SynchronousTraining):
        return order_for_makespan(residual, requests, now_s), []
    if isinstance(options.mode, StaleSynchronousTraining):
        return order_by_clock(residual, requests, now_s), []
    return order_transfers(residual, requests, now_s, queue.next_commit, options.bound)


def _grants(
    messages: Sequence[tuple[PlannedTransfer, TransferGroup | None]],
    queue: ServerQueue,
    options: SchedulerOptions,
    now_s: float,
) -> list[TransferGrant]:
    grants: list[TransferGrant] = []
    last_commit_s = queue.last_commit_s
    for position, (planned, group) in enumerate(messages):
        request: TransferRequest = planned.request
        commit_s = group.end_s if group else planned.end_s
        if options.commit_order is CommitOrder.SEQUENCE:
            last_commit_s = commit_s = max(last_commit_s, commit_s)
        commit = queue.next_commit + position
        delay = commit - request.version
        rule = options.learning_rate
        grants.append(
            TransferGrant(
                planned=planned,
                sequence=queue.next_sequence + position,
                delay=delay,
                commit_s=commit_s,
                group=group,
                learning_rate_factor=rule.factor(delay, commit) if rule else 1.0,
            )
        )
    return grants
