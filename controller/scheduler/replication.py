# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Replication of a batch: when its updates reach a replica, and which commits wait for that.

MLfabric takes replication off the server. That workers send all bytes, in what the server's plan
leaves of the network, and the rule that holds commits back are ours. No group is formed for a
replica, and no transfer to a replica is planned before one to a server.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .divergence import DivergenceBound
from .errors import InvalidTransferError
from .network import ResidualNetwork
from .transfers import PlannedTransfer, TransferRequest


@dataclass(frozen=True, kw_only=True)
class LackedUpdate:
    """An update in the server's commit order whose bytes the replica does not have."""

    request: TransferRequest
    commit_s: float
    """When the server could apply it, by plan; in the past if it has."""
    planned: PlannedTransfer | None = None
    """To the replica, if an earlier batch has planned it."""


@dataclass(frozen=True, kw_only=True)
class ReplicaPlan:
    """When a replica gets updates, and when its server may apply them."""

    transfers: tuple[PlannedTransfer, ...]
    """To the replica, one for each update, in commit order."""
    held_s: tuple[float, ...]
    """When the replica has each update and all before it."""
    commits_s: tuple[float, ...]
    """When the server may apply each update: as planned, or later for the bound's sake."""
    steps: tuple[float, ...]
    """By update, the most by which it moves the model."""


def plan_replica(
    residual: ResidualNetwork,
    updates: Sequence[LackedUpdate],
    replica: str,
    now_s: float,
    bound: DivergenceBound,
    *,
    earlier_step: float = 0.0,
) -> ReplicaPlan:
    """Plan and reserve what a replica lacks; `residual` has the server's plan already.

    `updates` are in commit order; `earlier_step` is what those before them have carried. Commits
    wait until the steps of what the server has applied and the replica lacks add up to at most
    div_max. Commits in the past are as they are. Cost: O(n) plans of a transfer.
    """
    times = [update.commit_s for update in updates]
    if times != sorted(times):
        raise InvalidTransferError("updates for a replica must be in the server's commit order")
    residual.network.check_host(replica, "replica")
    transfers: list[PlannedTransfer] = []
    held_s: list[float] = []
    commits_s: list[float] = []
    steps: list[float] = []
    lacked = 0  # the first update that the replica may lack when the server applies this one
    distance = 0.0
    for update in updates:
        planned = update.planned or _send(residual, update.request, replica, now_s)
        transfers.append(planned)
        held_s.append(max(planned.end_s, held_s[-1] if held_s else now_s))
        norm, is_sparse = update.request.norm, update.request.is_sparse
        steps.append(bound.step(earlier_step, norm))
        earlier_step = bound.carried(earlier_step, norm, is_sparse=is_sparse)
        distance += steps[-1]
        commit_s = update.commit_s
        if commit_s > now_s:
            commit_s = max(commit_s, commits_s[-1] if commits_s else now_s)
            while distance > bound.div_max and lacked < len(steps):
                distance -= steps[lacked]
                commit_s = max(commit_s, held_s[lacked])
                lacked += 1
                if lacked == len(steps):
                    distance = 0.0  # no rest of rounding
        commits_s.append(commit_s)
    return ReplicaPlan(
        transfers=tuple(transfers),
        held_s=tuple(held_s),
        commits_s=tuple(commits_s),
        steps=tuple(steps),
    )


def _send(
    residual: ResidualNetwork, request: TransferRequest, replica: str, now_s: float
) -> PlannedTransfer:
    links = residual.network.route(request.worker, replica)
    spans = residual.plan(links, request.bits, now_s)
    residual.reserve(links, spans)
    end_s = spans[-1].end_s if spans else now_s
    return PlannedTransfer(request=request, links=links, spans=spans, end_s=end_s)
