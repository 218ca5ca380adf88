# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sparse updates: how large their sums are, and where they are added up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from switchfold.controller.scheduler.divergence import DivergenceBound
from switchfold.controller.scheduler.grouping import AggregationPlaces, BatchPlan, plan_groups
from switchfold.controller.scheduler.network import ResidualNetwork
from switchfold.controller.scheduler.planning.sum_size import SumSize
from switchfold.controller.scheduler.replication import LackedUpdate, plan_replica
from switchfold.controller.scheduler.scheduler import SchedulerOptions, TransferScheduler
from switchfold.controller.scheduler.state.server_replica import ReplicaOptions
from switchfold.controller.scheduler.training.commit_order import CommitOrder
from switchfold.controller.scheduler.transfers import TransferRequest
from transfer_cases import SERVER, UPDATE_BYTES, grants_of, make, push, star

BELOW = frozenset(f"h{n}" for n in range(1, 7))


def sparse(number: int, whole_bytes: int) -> TransferRequest:
    return replace(push(number), whole_bytes=whole_bytes)


def plan(
    requests: list[TransferRequest], num_direct: int | None = None, **places: object
) -> BatchPlan:
    network = star(6, others={"a1": 100})
    where = AggregationPlaces(**places)  # type: ignore[arg-type]
    return plan_groups(ResidualNetwork(network), requests, 0.0, where, num_direct=num_direct)


@pytest.mark.parametrize(
    ("whole", "sizes"),
    [(1, [1, 1, 1]), (2, [1, 1.5, 1.75]), (4, [1, 1.75, 2.3125])],
    ids=["dense", "half", "quarter"],
)
def test_a_sum_grows_as_if_values_were_drawn_independently(whole: int, sizes: list[float]) -> None:
    size = SumSize()
    found = [size.add(sparse(n, whole * UPDATE_BYTES)) for n in range(1, 4)]
    assert found == [8 * UPDATE_BYTES * each for each in sizes]


def test_a_sum_is_never_larger_than_all_values_nor_smaller_than_its_largest_member() -> None:
    size = SumSize()
    whole = UPDATE_BYTES + 5
    assert size.add(replace(push(1, size_bytes=9), whole_bytes=whole)) == 72
    for number in range(2, 40):
        assert 8 * UPDATE_BYTES <= size.add(sparse(number, whole)) <= 8 * whole


def test_the_server_link_is_kept_free_for_the_union() -> None:
    """Each update takes 1 s. The sum of three with half of all values takes 1.75 s."""
    found = plan([sparse(n, 2 * UPDATE_BYTES) for n in range(1, 7)], 3, hosts=["a1"])
    (group,) = found.groups
    assert len(group.members) == 3
    assert group.end_s == pytest.approx(3 + 1.75)
    (dense,) = plan([push(n) for n in range(1, 7)], 3, hosts=["a1"]).groups
    assert dense.end_s == pytest.approx(3 + 1)


def test_a_sum_that_saves_nothing_is_not_made() -> None:
    """Updates that hardly share a value: their union takes as long as they do."""
    found = plan([sparse(n, 1_000_000 * UPDATE_BYTES) for n in range(1, 7)], hosts=["a1"])
    assert found.commits_s[6] == pytest.approx(6, rel=1e-3)
    assert plan([push(n) for n in range(1, 7)], hosts=["a1"]).commits_s[6] == pytest.approx(4)


def test_switches_do_not_add_sparse_updates() -> None:
    requests = [sparse(n, 2 * UPDATE_BYTES) for n in range(1, 7)]
    assert not plan(requests, switches={"s1": BELOW}).groups
    (group,) = plan([push(n) for n in range(1, 7)], switches={"s1": BELOW}).groups
    assert (group.aggregator, group.server) == ("s1", SERVER)


def test_a_late_sum_is_planned_again_with_its_size() -> None:
    """All of its updates are at the host 0.3 s after their time."""
    scheduler = make(6, places=AggregationPlaces(hosts=["a1"]), commit_order=CommitOrder.SEQUENCE)
    for number in range(1, 7):
        scheduler.submit(sparse(number, 2 * UPDATE_BYTES), 0.0)
    grants = [grant for grant in grants_of(scheduler.decide(0.0)) if grant.group]
    assert grants
    group = grants[0].group
    assert group is not None
    late_s = group.gathered_s + 0.3
    sums = [scheduler.gathered(grant.request.transfer_id, late_s) for grant in grants]
    sent = sums[-1]
    assert sent is not None
    assert sent.gathered_s == pytest.approx(late_s)
    sizes = SumSize()
    bits = [sizes.add(grant.request) for grant in grants][-1]
    assert bits > grants[0].request.bits
    planned = sum((end_s - start_s) * rate for start_s, end_s, rate in sent.spans)
    assert planned == pytest.approx(bits, rel=1e-6)


def test_velocity_of_rows_that_a_push_leaves_out_is_in_the_bound() -> None:
    """Rows keep their velocities, as those of the server do; some updates are of all rows."""
    generator = np.random.default_rng(7)
    momentum, num_rows, count = 0.9, 6, 200
    requests, true_steps = [], []
    velocity = np.zeros((num_rows, 3))
    for number in range(1, count + 1):
        is_sparse = bool(number % 7)
        rows = generator.permutation(num_rows)[: 2 if is_sparse else num_rows]
        update = generator.normal(size=(rows.size, 3)) * generator.choice([1e-3, 1.0, 10.0])
        velocity[rows] = momentum * velocity[rows] + update
        true_steps.append(float(np.linalg.norm(velocity[rows])))
        norm = float(np.linalg.norm(update))
        whole_bytes = 3 * UPDATE_BYTES if is_sparse else 0
        requests.append(replace(push(number, worker="h1"), norm=norm, whole_bytes=whole_bytes))
    lacked = [LackedUpdate(request=each, commit_s=0.0) for each in requests]
    bound = DivergenceBound(div_max=float("inf"), momentum=momentum)
    residual = ResidualNetwork(star(1, others={"r1": 100}))
    steps = plan_replica(residual, lacked, "r1", 0.0, bound).steps
    assert all(step >= true - 1e-9 for step, true in zip(steps, true_steps, strict=True))


def test_a_commit_waits_for_what_an_old_velocity_may_move() -> None:
    """After one of norm 5, and a small one that may be of other rows."""
    bound = DivergenceBound(div_max=9.5, momentum=0.9)
    scheduler = TransferScheduler(
        star(3, others={"r1": 100}),
        {SERVER: 0},
        SchedulerOptions(
            commit_order=CommitOrder.SEQUENCE,
            replicas={SERVER: ReplicaOptions(host="r1", bound=bound)},
        ),
    )
    for number, norm in enumerate((5.0, 0.001, 0.001), 1):
        request = replace(sparse(number, 2 * UPDATE_BYTES), norm=norm)
        scheduler.submit(request, 0.0)
    for grant in grants_of(scheduler.decide(0.0)):
        scheduler.delivered([grant.request.transfer_id], 3.0)
    # With the second one, 5 + (0.9 x 5 + 0.001) is above 9.5.
    assert scheduler.replica_distance(SERVER) == pytest.approx(5.0)
    scheduler.replica_received([1], 4.0)
    # All velocities may still be 5.001 together. Of dense updates, they would be 4.501.
    assert scheduler.replica_distance(SERVER) == pytest.approx(4.501 + 4.5019)
