# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A replica that is added while updates are under way: what it is sent, and what counts when."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from switchfold.controller.scheduler.divergence import DivergenceBound
from switchfold.controller.scheduler.errors import InvalidTransferError
from switchfold.controller.scheduler.scheduler import SchedulerOptions, TransferScheduler
from switchfold.controller.scheduler.state.server_replica import ReplicaOptions
from switchfold.controller.scheduler.training.commit_order import CommitOrder
from switchfold.controller.scheduler.transfers import TransferGrant
from transfer_cases import SERVER, grants_of, push, star

REPLICA = "r1"


def late_replica(div_max: float, momentum: float = 0.0, *, num_open: int = 2) -> TransferScheduler:
    """A scheduler whose replica is added when updates 1 to `num_open` are granted."""
    scheduler = TransferScheduler(
        star(8, others={REPLICA: 100}),
        {SERVER: 0},
        SchedulerOptions(commit_order=CommitOrder.SEQUENCE, batch_wait_s=0.0),
    )
    grant(scheduler, *range(1, num_open + 1))
    bound = DivergenceBound(div_max=div_max, momentum=momentum)
    options = ReplicaOptions(host=REPLICA, bound=bound)
    scheduler.add_replica(SERVER, options, 0.0, catches_up=True)
    return scheduler


def grant(scheduler: TransferScheduler, *numbers: int, now_s: float = 0.0) -> list[TransferGrant]:
    for number in numbers:
        scheduler.submit(replace(push(number), norm=1.0), now_s)
    grants = grants_of(scheduler.decide(now_s))
    assert ids(grants) == [*numbers]
    return grants


def ids(grants: list[TransferGrant]) -> list[int]:
    return [each.request.transfer_id for each in grants]


def test_only_what_is_granted_later_is_sent_to_it() -> None:
    scheduler = late_replica(math.inf)
    assert all(each.replica_transfer for each in grant(scheduler, 3, 4))
    assert not scheduler.is_expected_at_replica(SERVER, 1)
    assert scheduler.is_expected_at_replica(SERVER, 3)
    assert scheduler.is_expected_at_replica(SERVER, 4)


def test_no_commit_waits_until_it_has_caught_up() -> None:
    scheduler = late_replica(0.0)
    grants = grant(scheduler, 3, 4, 5)
    assert [each.commit_s for each in grants] == pytest.approx([3.0, 4.0, 5.0])
    for number in range(1, 5):
        assert ids(scheduler.delivered([number], float(number))) == [number]
    assert scheduler.is_catching_up(SERVER)
    scheduler.replica_caught_up(SERVER, 0.0)
    assert not scheduler.is_catching_up(SERVER)
    assert scheduler.replica_version(SERVER) == 2
    assert scheduler.replica_distance(SERVER) == 2.0  # it lacks 3 and 4
    assert scheduler.delivered([5], 5.0) == []
    assert scheduler.replica_received([3], 6.0) == []
    assert scheduler.replica_received([4], 6.5) == []
    assert ids(scheduler.replica_received([5], 7.0)) == [5]
    assert scheduler.replica_version(SERVER) == scheduler.version(SERVER) == 5


def test_it_may_have_later_updates_before_it_has_caught_up() -> None:
    """The server had applied one of its updates before the scheduler's word came."""
    scheduler = late_replica(0.0)
    grant(scheduler, 3, 4)
    for number in range(1, 5):
        scheduler.delivered([number], float(number))
    assert scheduler.replica_received([3], 4.0) == []
    scheduler.replica_caught_up(SERVER, 0.0)
    assert scheduler.replica_version(SERVER) == 3
    assert scheduler.replica_distance(SERVER) == 1.0


def test_the_momentum_that_both_models_have_counts() -> None:
    scheduler = late_replica(10.0, momentum=0.5)
    grant(scheduler, 3, 4)
    for number in range(1, 5):
        scheduler.delivered([number], float(number))
    scheduler.replica_caught_up(SERVER, 8.0)
    # Steps 0.5 * 8 + 1 and 0.5 * 5 + 1.
    assert scheduler.replica_distance(SERVER) == 5.0 + 3.5
    grant(scheduler, 5, now_s=4.0)
    assert scheduler.delivered([5], 5.0) == []  # a step of 2.75 exceeds 10
    assert ids(scheduler.replica_received([3], 6.0)) == [5]
    assert scheduler.replica_distance(SERVER) == 3.5 + 2.75


def test_momentum_counts_of_a_replica_that_joins_at_rest() -> None:
    scheduler = late_replica(math.inf, num_open=0)
    scheduler.remove_replica(SERVER, 0.0)
    bound = DivergenceBound(div_max=5.0, momentum=0.5)
    options = ReplicaOptions(host=REPLICA, bound=bound, earlier_step=9.0)
    scheduler.add_replica(SERVER, options, 0.0)
    grant(scheduler, 1)
    assert scheduler.delivered([1], 1.0) == []  # a step of 5.5
    assert ids(scheduler.replica_received([1], 2.0)) == [1]


def test_an_update_under_way_that_is_withdrawn_does_not_count() -> None:
    scheduler = late_replica(0.0)
    grant(scheduler, 3)
    scheduler.withdraw(1, 1.0)
    assert ids(scheduler.delivered([2], 2.0)) == [2]
    scheduler.replica_caught_up(SERVER, 0.0)
    assert scheduler.replica_version(SERVER) == scheduler.version(SERVER) == 1
    assert scheduler.replica_distance(SERVER) == 0.0


def test_it_cannot_take_the_servers_place_before() -> None:
    scheduler = late_replica(math.inf)
    with pytest.raises(InvalidTransferError, match="catches up with h0: it lacks updates"):
        scheduler.promote_replica(SERVER, 1.0)
    scheduler.delivered([1, 2], 2.0)
    scheduler.replica_caught_up(SERVER, 0.0)
    assert scheduler.promote_replica(SERVER, 3.0).version == 2


def test_what_waits_for_it_takes_no_more_of_the_network_than_planned() -> None:
    """Workers keep its updates until it has caught up, and other updates go on meanwhile."""
    scheduler = late_replica(math.inf, num_open=0)
    (first,) = grant(scheduler, 1)
    assert first.replica_transfer
    scheduler.delivered([1], 1.0)
    late_s = first.replica_transfer.end_s + 60.0
    scheduler.submit(replace(push(11), worker="h1", norm=1.0), late_s)
    (second,) = grants_of(scheduler.decide(late_s))
    assert second.planned.end_s == pytest.approx(late_s + 1.0)
