# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Replication plans: true distances, no bytes of the server, what a narrow link costs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from switchfold.controller.scheduler.divergence import DivergenceBound
from switchfold.controller.scheduler.errors import InvalidTransferError, UnknownStationError
from switchfold.controller.scheduler.network import ResidualNetwork, TransferNetwork
from switchfold.controller.scheduler.ordering import order_transfers
from switchfold.controller.scheduler.replication import LackedUpdate, ReplicaPlan, plan_replica
from transfer_cases import SERVER, push, star

REPLICA = "r1"


def plan_batch(
    network: TransferNetwork, norms: list[float], bound: DivergenceBound
) -> tuple[list[LackedUpdate], ReplicaPlan]:
    """One batch of equal updates with these norms, for a replica that lacks nothing else."""
    residual = ResidualNetwork(network)
    requests = [replace(push(n), norm=norm) for n, norm in enumerate(norms, 1)]
    ordered, _ = order_transfers(residual, requests, 0.0)
    updates = [LackedUpdate(request=each.request, commit_s=each.end_s) for each in ordered]
    return updates, plan_replica(residual, updates, REPLICA, 0.0, bound)


def lacking(plan: ReplicaPlan, time_s: float) -> list[int]:
    """Updates that the server has applied and the replica does not have at a time."""
    times = zip(plan.commits_s, plan.held_s, strict=True)
    return [n for n, (commit_s, held_s) in enumerate(times) if commit_s <= time_s < held_s]


def test_commits_are_as_planned_while_the_bound_is_slack() -> None:
    updates, plan = plan_batch(star(5, others={REPLICA: 10}), [1.0] * 5, DivergenceBound(div_max=5))
    assert plan.commits_s == tuple(update.commit_s for update in updates)
    assert plan.commits_s == pytest.approx((1.0, 2.0, 3.0, 4.0, 5.0))


def test_server_sends_nothing_to_its_replica() -> None:
    _, plan = plan_batch(star(5, others={REPLICA: 100}), [1.0] * 5, DivergenceBound(div_max=2))
    links = {link for planned in plan.transfers for link in planned.links}
    assert links == {f"s1>{REPLICA}", *(f"h{n}>s1" for n in range(1, 6))}
    assert f"{SERVER}>s1" not in links


def test_narrow_link_of_the_replica_holds_commits_back() -> None:
    _, plan = plan_batch(star(5, others={REPLICA: 10}), [1.0] * 5, DivergenceBound(div_max=2))
    # Two updates may be ahead of the replica, which gets one every 10 s.
    assert plan.held_s == pytest.approx((10.0, 20.0, 30.0, 40.0, 50.0), abs=3.0)
    assert plan.commits_s[:2] == pytest.approx((1.0, 2.0))
    assert plan.commits_s[2:] == plan.held_s[:3]


def test_bound_of_0_is_synchronous_replication_and_infinity_none() -> None:
    network = star(4, others={REPLICA: 25})
    _, plan = plan_batch(network, [0.5] * 4, DivergenceBound(div_max=0, momentum=0.9))
    assert plan.commits_s == plan.held_s
    _, plan = plan_batch(network, [0.5] * 4, DivergenceBound(div_max=math.inf, momentum=0.9))
    assert plan.commits_s == pytest.approx((1.0, 2.0, 3.0, 4.0))


@given(
    st.lists(st.floats(0.0, 10.0), min_size=1, max_size=8),
    st.floats(0.0, 40.0),
    st.sampled_from([0.0, 0.5, 0.9]),
    st.sampled_from([5, 20, 100]),
)
def test_steps_of_what_the_replica_lacks_are_within_the_bound(
    norms: list[float], div_max: float, momentum: float, mbits_per_s: int
) -> None:
    network = star(len(norms), others={REPLICA: mbits_per_s})
    updates, plan = plan_batch(network, norms, DivergenceBound(div_max=div_max, momentum=momentum))
    assert list(plan.commits_s) == sorted(plan.commits_s)
    for update, commit_s in zip(updates, plan.commits_s, strict=True):
        assert commit_s >= update.commit_s
        distance = sum(plan.steps[number] for number in lacking(plan, commit_s))
        assert distance <= div_max + 1e-9
    # A commit that waits does so for an update of the replica that it needs.
    for number, commit_s in enumerate(plan.commits_s):
        if commit_s > updates[number].commit_s and commit_s > ([0.0, *plan.commits_s][number]):
            before = math.nextafter(commit_s, 0.0)
            ahead = [n for n in range(number + 1) if plan.held_s[n] > before]
            assert sum(plan.steps[n] for n in ahead) > div_max - 1e-9


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_true_distance_is_below_the_bound_for_500_commits(momentum: float) -> None:
    """Batch after batch, with the link of the replica at a tenth of the server's."""
    network = star(10, others={REPLICA: 10})
    residual = ResidualNetwork(network)
    bound = DivergenceBound(div_max=40.0, momentum=momentum)
    generator = np.random.default_rng(3)
    vectors: list[NDArray[np.float64]] = []
    old: list[LackedUpdate] = []
    now_s = earlier_step = 0.0
    commits: list[float] = []
    held: list[float] = []
    steps: list[float] = []
    num_late = 0
    for _ in range(50):
        residual.forget(now_s)
        drawn = [generator.normal(size=8) * generator.uniform(0.1, 1.0) for _ in range(10)]
        requests = [replace(push(n), norm=float(np.linalg.norm(v))) for n, v in enumerate(drawn, 1)]
        ordered, _ = order_transfers(residual, requests, now_s)
        new = [LackedUpdate(request=each.request, commit_s=each.end_s) for each in ordered]
        vectors += [drawn[each.request.transfer_id - 1] for each in ordered]
        plan = plan_replica(
            residual, [*old, *new], REPLICA, now_s, bound, earlier_step=earlier_step
        )
        num_late += sum(
            a > b.commit_s for a, b in zip(plan.commits_s[len(old) :], new, strict=True)
        )
        commits += plan.commits_s[len(old) :]
        held += plan.held_s[len(old) :]
        steps += plan.steps[len(old) :]
        now_s = commits[-1]
        planned = [
            replace(update, planned=transfer, commit_s=commit_s)
            for update, transfer, commit_s in zip(
                [*old, *new], plan.transfers, plan.commits_s, strict=True
            )
        ]
        num_held = sum(held_s <= now_s for held_s in plan.held_s)
        old = planned[num_held:]
        earlier_step = ([earlier_step, *plan.steps])[num_held]
    assert len(commits) == 500
    assert commits == sorted(commits)
    assert num_late > 0
    history = np.zeros((501, 8))
    for number, vector in enumerate(vectors):
        history[number + 1] = momentum * history[number] + vector
    models = np.cumsum(history, axis=0)
    for number, commit_s in enumerate(commits):
        num_held = min(int(np.searchsorted(held, commit_s, "right")), number + 1)
        distance = float(np.linalg.norm(models[number + 1] - models[num_held]))
        most = sum(steps[num_held : number + 1])
        assert distance <= most + 1e-9
        assert most <= bound.div_max + 1e-9


def test_bad_bounds_and_orders_are_refused() -> None:
    for options in ({"div_max": math.nan}, {"div_max": -1.0}, {"div_max": 1.0, "momentum": 1.0}):
        with pytest.raises(InvalidTransferError, match="must be"):
            DivergenceBound(**options)
    residual = ResidualNetwork(star(2))
    updates = [
        LackedUpdate(request=push(1), commit_s=2.0),
        LackedUpdate(request=push(2), commit_s=1.0),
    ]
    with pytest.raises(InvalidTransferError, match="in the server's commit order"):
        plan_replica(residual, updates, "h2", 0.0, DivergenceBound(div_max=1))
    with pytest.raises(UnknownStationError, match="replica 'r9' is no host"):
        plan_replica(residual, updates[:1], "r9", 0.0, DivergenceBound(div_max=1))
