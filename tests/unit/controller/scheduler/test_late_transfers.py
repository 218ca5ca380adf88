# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Transfers that end later than planned: their bandwidth, their loss, and sums without them."""

from __future__ import annotations

import pytest
from test_model_transfers import model

from switchfold.controller.scheduler.errors import InvalidTransferError, UnknownTransferError
from switchfold.controller.scheduler.grouping import AggregationPlaces
from switchfold.controller.scheduler.scheduler import SchedulerOptions, TransferScheduler
from switchfold.controller.scheduler.training.commit_order import CommitOrder
from transfer_cases import MBIT, SERVER, grants_of, make, push

DOWNLINK = f"s1>{SERVER}"


def granted(*numbers: int, **options: object) -> TransferScheduler:
    """A scheduler that has granted equal updates of 1 s each at time 0, one after the other."""
    scheduler = make(6, **options)
    for number in numbers:
        scheduler.submit(push(number), 0.0)
    scheduler.decide(0.0)
    return scheduler


def test_late_transfer_keeps_its_bandwidth_for_as_long_as_it_is_late() -> None:
    scheduler = granted(1)
    scheduler.submit(push(2), 1.4)
    (second,) = grants_of(scheduler.decide(1.5))
    assert second.spans[0].start_s == pytest.approx(2.0)
    assert second.commit_s == pytest.approx(3.0)


def test_transfer_that_ends_as_planned_is_not_late() -> None:
    scheduler = granted(1)
    scheduler.submit(push(2), 0.9)
    (second,) = grants_of(scheduler.decide(1.0))
    assert second.commit_s == pytest.approx(2.0)


def test_late_transfer_beside_a_granted_one_leaves_nothing_and_cancels() -> None:
    scheduler = granted(1, 2)
    scheduler.decide(1.2)
    assert scheduler.residual.rate(DOWNLINK).rate_at(1.3) == 0
    assert scheduler.residual.rate("h1>s1").rate_at(1.3) == 0
    scheduler.delivered([1], 1.3)
    assert scheduler.residual.rate("h1>s1").rate_at(1.35) == 100 * MBIT
    assert scheduler.residual.rate(DOWNLINK).rate_at(1.35) == 0
    scheduler.delivered([2], 1.4)
    assert scheduler.residual.rate(DOWNLINK).rate_at(1.45) == 100 * MBIT


def test_late_model_keeps_its_bandwidth() -> None:
    scheduler = make(2)
    scheduler.request_model(model(1), 0.0)
    scheduler.grant_models(0.0)
    scheduler.request_model(model(2), 1.0)
    (second,) = scheduler.grant_models(1.5)
    assert second.end_s == pytest.approx(3.0)


def test_transfer_is_lost_after_a_multiple_of_its_plan() -> None:
    scheduler = granted(1, 2, lost_after=2.0, commit_order=CommitOrder.SEQUENCE)
    assert scheduler.next_expiry_s() == pytest.approx(2.0)
    assert scheduler.delivered([2], 1.9) == []
    early = scheduler.expire(1.95)
    assert (early.withdrawn, early.ready, early.partial_sums) == ([], [], [])
    expiry = scheduler.expire(2.0)
    assert [grant.request.transfer_id for grant in expiry.withdrawn] == [1]
    assert [grant.request.transfer_id for grant in expiry.ready] == [2]
    assert scheduler.version(SERVER) == 1
    assert scheduler.tallies["h1"].withdrawn == 1
    assert scheduler.next_expiry_s() is None
    with pytest.raises(UnknownTransferError, match="transfer 1 is not granted and under way"):
        scheduler.delivered([1], 2.1)
    scheduler.submit(push(11, worker="h1"), 2.1)
    (again,) = grants_of(scheduler.decide(2.1))
    assert again.commit_s == pytest.approx(3.1)


def test_update_within_the_host_of_the_server_is_never_lost() -> None:
    scheduler = make(1)
    scheduler.submit(push(1, worker=SERVER), 0.0)
    scheduler.decide(0.0)
    assert scheduler.next_expiry_s() is None
    assert scheduler.expire(1e6).withdrawn == []


def gathering() -> TransferScheduler:
    """Updates 1 to 3 go directly until 3 s; a1 gathers 4 to 6 until then, and sends until 4 s."""
    scheduler = granted(
        1, 2, 3, 4, 5, 6, places=AggregationPlaces(hosts=["a1"]), gather_slack_s=0.25
    )
    for number in (1, 2, 3):
        scheduler.delivered([number], 1.0 * number)
    return scheduler


def test_sum_leaves_as_planned_when_all_members_are_there() -> None:
    scheduler = granted(
        1, 2, 3, 4, 5, 6, places=AggregationPlaces(hosts=["a1"]), gather_slack_s=0.25
    )
    assert scheduler.gathered(4, 1.0) is None
    assert scheduler.gathered(6, 2.0) is None
    group = scheduler.gathered(5, 2.9)
    assert group
    assert (group.spans[0].start_s, group.end_s) == pytest.approx((3.0, 4.0))
    # Its members' links are free, and nobody waits for the host any longer.
    assert scheduler.residual.rate("s1>a1").rate_at(2.95) == 100 * MBIT
    assert scheduler.next_expiry_s() == pytest.approx(4.0)  # the first direct one


def test_sum_is_planned_again_when_its_last_member_is_late() -> None:
    scheduler = gathering()
    for number in (4, 5):
        scheduler.gathered(number, 3.0)
    group = scheduler.gathered(6, 3.1)
    assert group
    assert (group.gathered_s, group.spans[0].start_s, group.end_s) == pytest.approx((3.1, 3.1, 4.1))
    scheduler.submit(push(7, worker="h1"), 3.1)
    (behind,) = grants_of(scheduler.decide(3.15))
    assert behind.commit_s == pytest.approx(5.1)


def test_sum_leaves_without_a_member_after_the_slack() -> None:
    scheduler = gathering()
    for number in (4, 5):
        scheduler.gathered(number, 3.0)
    assert scheduler.next_expiry_s() == pytest.approx(3.25)
    assert scheduler.expire(3.2).partial_sums == []
    (partial,) = scheduler.expire(3.25).partial_sums
    assert [grant.request.transfer_id for grant in partial.missing] == [6]
    members = [member.request.transfer_id for member in partial.group.members]
    assert members == [4, 5]
    assert (partial.group.spans[0].start_s, partial.group.end_s) == pytest.approx((3.25, 4.25))
    with pytest.raises(UnknownTransferError, match="transfer 6 is not granted and under way"):
        scheduler.gathered(6, 3.3)
    ready = scheduler.delivered([4, 5], 4.25)
    assert [grant.request.transfer_id for grant in ready] == [4, 5]
    assert all(grant.group == partial.group for grant in ready)
    assert scheduler.version(SERVER) == 5
    assert (scheduler.tallies["h6"].withdrawn, scheduler.tallies["h5"].commits) == (1, 1)
    assert scheduler.residual.rate(DOWNLINK).rate_at(4.3) == 100 * MBIT


def test_group_of_which_nothing_is_there_is_given_up() -> None:
    scheduler = gathering()
    expiry = scheduler.expire(3.25)
    assert expiry.partial_sums == []
    assert [grant.request.transfer_id for grant in expiry.withdrawn] == [4, 5, 6]
    assert scheduler.next_expiry_s() is None
    scheduler.submit(push(7, worker="h1"), 3.3)
    (alone,) = grants_of(scheduler.decide(3.3))
    assert alone.commit_s == pytest.approx(4.3)


def test_withdrawn_member_is_not_awaited() -> None:
    scheduler = gathering()
    for number in (4, 5):
        scheduler.gathered(number, 2.0 + 1.0)
    scheduler.withdraw(6, 3.0)
    (partial,) = scheduler.expire(3.25).partial_sums
    assert [member.request.transfer_id for member in partial.group.members] == [4, 5]
    assert partial.missing == []


def test_hosts_that_do_not_report_are_not_awaited() -> None:
    scheduler = granted(1, 2, 3, 4, 5, 6, places=AggregationPlaces(hosts=["a1"]))
    for number in (1, 2, 3):
        scheduler.delivered([number], 1.0 * number)
    assert scheduler.expire(3.9).withdrawn == []
    # Only the sum counts: a group from 0 to 4 s is lost after four times as long.
    assert scheduler.next_expiry_s() == pytest.approx(16.0)


def test_what_is_not_gathered_cannot_arrive_at_a_host() -> None:
    scheduler = gathering()
    scheduler.gathered(4, 3.0)
    with pytest.raises(UnknownTransferError, match="transfer 4 is not on its way to a host"):
        scheduler.gathered(4, 3.0)
    direct = granted(1)
    with pytest.raises(UnknownTransferError, match="goes to its server or through a switch"):
        direct.gathered(1, 0.5)


@pytest.mark.parametrize("options", [{"lost_after": 0.5}, {"gather_slack_s": -1.0}])
def test_bad_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidTransferError, match="must be finite and at least"):
        SchedulerOptions(**options)  # type: ignore[arg-type]
