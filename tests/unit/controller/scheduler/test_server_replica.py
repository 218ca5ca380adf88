# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Replicas while the scheduler runs: receipts, commits that wait, true distances, fail-over."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from test_model_transfers import model

from switchfold.controller.scheduler.divergence import DivergenceBound
from switchfold.controller.scheduler.errors import (
    InvalidTransferError,
    UnknownStationError,
    UnknownTransferError,
)
from switchfold.controller.scheduler.scheduler import SchedulerOptions, TransferScheduler
from switchfold.controller.scheduler.state.server_replica import ReplicaOptions
from switchfold.controller.scheduler.training.commit_order import CommitOrder
from switchfold.controller.scheduler.training.learning_rate import InverseRate
from switchfold.controller.scheduler.transfers import TransferGrant, TransferRequest
from transfer_cases import MBIT, SERVER, grants_of, push, star

REPLICA = "r1"


def replicated(
    div_max: float,
    *,
    mbits_per_s: int = 100,
    momentum: float = 0.0,
    num_workers: int = 5,
    **options: object,
) -> TransferScheduler:
    """A scheduler whose server has a replica behind a link of that rate."""
    bound = DivergenceBound(div_max=div_max, momentum=momentum)
    network = star(num_workers, others={REPLICA: mbits_per_s})
    return TransferScheduler(
        network,
        {SERVER: 0},
        SchedulerOptions(
            commit_order=CommitOrder.SEQUENCE,
            replicas={SERVER: ReplicaOptions(host=REPLICA, bound=bound)},
            **options,  # type: ignore[arg-type]
        ),
    )


def five(scheduler: TransferScheduler) -> list[TransferGrant]:
    """Grants of equal updates with norm 1, granted at 0."""
    for number in range(1, 6):
        scheduler.submit(replace(push(number), norm=1.0), 0.0)
    return grants_of(scheduler.decide(0.0))


def ids(grants: list[TransferGrant]) -> list[int]:
    return [grant.request.transfer_id for grant in grants]


def test_commits_are_as_planned_while_the_bound_is_slack_and_the_server_sends_nothing() -> None:
    scheduler = replicated(5.0, mbits_per_s=10)
    grants = five(scheduler)
    assert [grant.commit_s for grant in grants] == pytest.approx([1.0, 2.0, 3.0, 4.0, 5.0])
    for grant in grants:
        assert grant.replica_transfer
        assert grant.replica_transfer.request == grant.request
        assert grant.replica_transfer.links == (f"{grant.request.worker}>s1", f"s1>{REPLICA}")
    assert scheduler.residual.rate(f"{SERVER}>s1").rates == (100 * MBIT,)
    for second in range(1, 6):
        assert ids(scheduler.delivered([second], float(second))) == [second]


def test_commits_wait_for_a_replica_behind_a_narrow_link() -> None:
    scheduler = replicated(2.0, mbits_per_s=10)
    grants = five(scheduler)
    held_s = [g.replica_transfer.end_s for g in grants if g.replica_transfer]
    assert [g.commit_s for g in grants] == pytest.approx([1.0, 2.0, *held_s[:3]])
    applied = [ids(scheduler.delivered([number], float(number))) for number in range(1, 6)]
    assert applied == [[1], [2], [], [], []]
    assert scheduler.version(SERVER) == 2
    assert ids(scheduler.replica_received([2], 9.0)) == []  # the first one is still lacking
    assert scheduler.replica_version(SERVER) == 0
    assert ids(scheduler.replica_received([1], 10.0)) == [3, 4]
    assert scheduler.replica_version(SERVER) == 2
    assert ids(scheduler.replica_received([5], 20.0)) == []
    assert ids(scheduler.replica_received([3], 30.0)) == [5]
    assert scheduler.replica_received([4], 40.0) == []
    assert scheduler.replica_version(SERVER) == scheduler.version(SERVER) == 5
    assert scheduler.residual.rate(f"s1>{REPLICA}").rate_at(41.0) == 10 * MBIT


def test_bound_of_0_waits_for_each_receipt_and_infinity_for_none() -> None:
    scheduler = replicated(0.0)
    five(scheduler)
    assert scheduler.delivered([1], 1.0) == []
    assert ids(scheduler.replica_received([1], 1.5)) == [1]
    assert scheduler.replica_received([2], 2.0) == []
    assert ids(scheduler.delivered([2], 2.0)) == [2]
    scheduler = replicated(math.inf)
    five(scheduler)
    assert [ids(scheduler.delivered([n], float(n))) for n in range(1, 6)] == [
        [1],
        [2],
        [3],
        [4],
        [5],
    ]


def test_norms_count_after_the_factor_of_the_grant() -> None:
    scheduler = replicated(1.5, learning_rate=InverseRate())
    five(scheduler)
    # Delays 0, 1, 2: steps 1, 1/2, 1/3.
    applied = [ids(scheduler.delivered([number], float(number))) for number in (1, 2, 3)]
    assert applied == [[1], [2], []]


def test_withdrawn_update_is_not_awaited_by_the_replica() -> None:
    scheduler = replicated(1.0)
    five(scheduler)
    assert scheduler.delivered([2], 2.0) == []
    assert ids(list(scheduler.withdraw(1, 2.0))) == [2]
    with pytest.raises(UnknownTransferError, match="transfer 1 is not on its path to a replica"):
        scheduler.replica_received([1], 2.0)
    assert scheduler.delivered([3], 3.0) == []
    assert ids(scheduler.replica_received([2], 3.0)) == [3]
    assert scheduler.replica_version(SERVER) == 1


def test_server_goes_on_without_a_replica_that_is_removed() -> None:
    scheduler = replicated(1.0)
    five(scheduler)
    assert ids(scheduler.delivered([1], 1.0)) == [1]
    assert scheduler.delivered([2], 2.0) == []
    assert ids(scheduler.remove_replica(SERVER, 2.5)) == [2]
    assert scheduler.residual.rate(f"s1>{REPLICA}").rate_at(2.5) == 100 * MBIT
    with pytest.raises(UnknownStationError, match="h0 has no replica"):
        scheduler.replica_version(SERVER)
    with pytest.raises(UnknownTransferError, match="the replica has been removed"):
        scheduler.replica_received([2], 3.0)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_true_distance_never_exceeds_the_bound_and_a_drained_replica_is_equal(
    momentum: float,
) -> None:
    """500 commits with receipts of both in random order; both apply in the order of commits."""
    chance = random.Random(4)
    generator = np.random.default_rng(4)
    div_max = 30.0
    scheduler = replicated(div_max, momentum=momentum, num_workers=8)
    vectors: dict[int, NDArray[np.float64]] = {}
    committed: list[int] = []
    to_server: list[int] = []
    to_replica: list[int] = []
    models = [np.zeros(6)]
    """After each commit."""
    step = np.zeros(6)
    now_s, number, num_waited = 0.0, 0, 0

    def commit(grants: list[TransferGrant]) -> None:
        nonlocal step
        for grant in grants:
            committed.append(grant.request.transfer_id)
            step = momentum * step + vectors[grant.request.transfer_id]
            models.append(models[-1] + step)
        server, replica = scheduler.version(SERVER), scheduler.replica_version(SERVER)
        assert server == len(committed)
        assert float(np.linalg.norm(models[server] - models[replica])) <= div_max + 1e-9

    while len(committed) < 500:
        now_s += 0.5
        for worker in range(1, 9):
            number += 1
            vectors[number] = generator.normal(size=6) * generator.uniform(0.1, 1.0)
            norm = float(np.linalg.norm(vectors[number]))
            scheduler.submit(replace(push(number, worker=f"h{worker}"), norm=norm), now_s)
        granted = grants_of(scheduler.decide(now_s + 0.1))
        now_s += 0.1
        to_server += ids(granted)
        to_replica += ids(granted)
        for _ in range(12):
            where = chance.choice([to_server, to_replica])
            if where:
                chosen = where.pop(chance.randrange(min(len(where), 4)))
                if where is to_server:
                    ready = scheduler.delivered([chosen], now_s)
                    num_waited += not ready
                else:
                    ready = scheduler.replica_received([chosen], now_s)
                commit(ready)
    assert num_waited > 0
    for chosen in to_server:
        commit(scheduler.delivered([chosen], now_s))
    for chosen in to_replica:
        commit(scheduler.replica_received([chosen], now_s))
    assert scheduler.replica_version(SERVER) == scheduler.version(SERVER) == number


def waiting(number: int, version: int) -> TransferRequest:
    return push(number, worker=f"h{number % 5 + 1}", version=version)


def test_promoted_replica_takes_over_with_its_own_version() -> None:
    scheduler = replicated(3.0, mbits_per_s=10)
    five(scheduler)
    for second in (1, 2, 3):
        scheduler.delivered([second], float(second))
    scheduler.replica_received([1], 3.0)
    scheduler.submit(waiting(11, version=1), 3.0)
    scheduler.submit(waiting(12, version=3), 3.0)
    scheduler.request_model(model(1), 3.0)
    promotion = scheduler.promote_replica(SERVER, 3.5)
    assert (promotion.server, promotion.version) == (REPLICA, 1)
    assert (list(promotion.lost), promotion.distance) == ([2, 3], 2.0)
    assert ids(list(promotion.withdrawn)) == [4, 5]
    assert [request.transfer_id for request in promotion.refused] == [12]
    assert scheduler.tallies["h4"].withdrawn == 1
    # All links are free, and what waits goes to the new server.
    (grant,) = grants_of(scheduler.decide(3.5))
    assert (grant.request.transfer_id, grant.request.server) == (11, REPLICA)
    assert (grant.sequence, grant.delay) == (0, 0)
    assert grant.commit_s == pytest.approx(13.5)
    assert grant.replica_transfer is None
    assert ids(scheduler.delivered([11], 13.5)) == [11]
    assert scheduler.version(REPLICA) == 2
    with pytest.raises(UnknownStationError, match="'h0' is no server of the job"):
        scheduler.submit(push(21, worker="h1"), 14.0)
    assert scheduler.grant_models(14.0) == []
    scheduler.request_model(replace(model(2), server=REPLICA), 14.0)
    assert len(scheduler.grant_models(14.0)) == 1
    scheduler.replace_network(star(5, others={REPLICA: 100}), 14.0)


def test_network_needs_the_replica() -> None:
    scheduler = replicated(1.0)
    with pytest.raises(UnknownStationError, match="replica 'r1' is no host"):
        scheduler.replace_network(star(5), 0.0)


def test_bad_options_are_refused() -> None:
    replicas = {SERVER: ReplicaOptions(host=REPLICA, bound=DivergenceBound(div_max=1))}
    with pytest.raises(InvalidTransferError, match=r"give CommitOrder\.SEQUENCE"):
        SchedulerOptions(replicas=replicas)
    options = SchedulerOptions(commit_order=CommitOrder.SEQUENCE, replicas=replicas)
    with pytest.raises(UnknownStationError, match="replica 'r1' is no host"):
        TransferScheduler(star(1), {SERVER: 0}, options)
    with pytest.raises(UnknownStationError, match="'h0' is no server of the job"):
        TransferScheduler(star(1), {"h1": 0}, options)


def test_a_replica_joins_while_nothing_is_granted() -> None:
    network = star(5, others={REPLICA: 100})
    options = ReplicaOptions(host=REPLICA, bound=DivergenceBound(div_max=1.0))
    sequence = SchedulerOptions(commit_order=CommitOrder.SEQUENCE)
    scheduler = TransferScheduler(network, {SERVER: 3}, sequence)
    assert not any(grant.replica_transfer for grant in five(scheduler))
    with pytest.raises(InvalidTransferError, match="h0 has open grants"):
        scheduler.add_replica(SERVER, options, 0.0)
    scheduler.delivered(range(1, 6), 5.0)
    scheduler.add_replica(SERVER, options, 5.0)
    assert scheduler.replica_version(SERVER) == scheduler.version(SERVER) == 8
    with pytest.raises(InvalidTransferError, match="h0 has a replica"):
        scheduler.add_replica(SERVER, options, 5.0)
    scheduler.submit(replace(push(6, worker="h1"), norm=0.75), 5.0)
    (grant,) = grants_of(scheduler.decide(5.1))
    assert grant.replica_transfer is not None
    assert scheduler.is_expected_at_replica(SERVER, 6)
    assert ids(scheduler.delivered([6], 6.2)) == [6]
    assert scheduler.replica_distance(SERVER) == 0.75
    assert scheduler.replica_received([6], 6.3) == []
    assert scheduler.replica_distance(SERVER) == 0.0
    assert not scheduler.is_expected_at_replica(SERVER, 6)
    arrival = TransferScheduler(network, {SERVER: 0})
    with pytest.raises(InvalidTransferError, match=r"give CommitOrder\.SEQUENCE"):
        arrival.add_replica(SERVER, options, 0.0)
