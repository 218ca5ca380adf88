# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Groups whose hosts come and go: places of the moment, what may be added, and how long to wait."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from switchfold.controller.scheduler.errors import InvalidTransferError, UnknownStationError
from switchfold.controller.scheduler.grouping import AggregationPlaces
from switchfold.controller.scheduler.scheduler import TransferScheduler
from switchfold.controller.scheduler.training.commit_order import CommitOrder
from transfer_cases import SERVER, grants_of, make, push

IDLE = AggregationPlaces(hosts=("a1",))


def submit(scheduler: TransferScheduler, keys: list[int], now_s: float = 0.0) -> None:
    """Let a worker ask for each of these keys, from worker h1 on."""
    for number, key in enumerate(keys, 1):
        scheduler.submit(replace(push(number), sum_key=key), now_s)


def sizes(scheduler: TransferScheduler, now_s: float = 0.0) -> list[int]:
    """Decide; return the members of each message, in the order of commits."""
    found: list[int] = []
    seen: set[int] = set()
    for grant in grants_of(scheduler.decide(now_s)):
        if grant.group is None:
            found.append(1)
        elif grant.group.group_id not in seen:
            seen.add(grant.group.group_id)
            found.append(len(grant.group.members))
    return found


@pytest.mark.parametrize(
    ("keys", "messages"),
    [
        ([1] * 6, [1, 1, 1, 3]),
        ([7] * 6, [1, 1, 1, 3]),
        ([0] * 6, [1] * 6),
        ([1, 2, 3, 4, 5, 6], [1] * 6),
        ([1, 1, 1, 2, 2, 3], [1, 1, 1, 2, 1]),
    ],
    ids=["alike", "other key", "alone", "all differ", "two alike"],
)
def test_only_updates_of_equal_keys_are_added(keys: list[int], messages: list[int]) -> None:
    scheduler = make(6, places=IDLE)
    submit(scheduler, keys)
    assert sizes(scheduler) == messages


def test_places_of_the_moment_count() -> None:
    for before, after, messages in (
        (None, IDLE, [1, 1, 1, 3]),
        (IDLE, AggregationPlaces(), [1] * 6),
        (IDLE, AggregationPlaces(hosts=("a1", "a2")), [1, 1, 2, 2]),
    ):
        scheduler = make(6, places=before)
        scheduler.replace_places(after)
        submit(scheduler, [1] * 6)
        assert sizes(scheduler) == messages


def test_places_that_the_network_does_not_have_change_nothing() -> None:
    scheduler = make(6, places=IDLE)
    with pytest.raises(UnknownStationError, match="a9"):
        scheduler.replace_places(AggregationPlaces(hosts=("a9",)))
    submit(scheduler, [1] * 6)
    assert sizes(scheduler) == [1, 1, 1, 3]


def waiting(places: AggregationPlaces | None, **options: object) -> TransferScheduler:
    """A scheduler with an update of 1 s under way, and another one that waits from 0.2 s on."""
    scheduler = make(6, places=places, gather_wait_s=0.5, batch_wait_s=0.05, **options)
    scheduler.submit(push(1), 0.0)
    scheduler.decide(0.0)
    scheduler.submit(push(2), 0.2)
    return scheduler


def test_a_batch_waits_longer_where_groups_may_form() -> None:
    assert waiting(None).next_due_s() == pytest.approx(0.25)
    assert waiting(AggregationPlaces()).next_due_s() == pytest.approx(0.25)
    assert waiting(IDLE).next_due_s() == pytest.approx(0.7)
    assert waiting(IDLE, batch_max=1).next_due_s() == pytest.approx(0.2)


def test_a_batch_waits_for_others_where_a_switch_adds_though_nothing_is_granted() -> None:
    leaf = AggregationPlaces(switches={"s1": frozenset({"h1", "h2", "h3"})})
    for places, due_s in ((None, 1.0), (IDLE, 1.0), (leaf, 1.02)):
        scheduler = make(6, places=places, batch_max=3, switch_wait_s=0.02, gather_wait_s=0.5)
        scheduler.submit(push(1), 1.0)
        assert scheduler.next_due_s() == pytest.approx(due_s)
    scheduler.submit(push(2), 1.01)
    assert scheduler.next_due_s() == pytest.approx(1.02)
    scheduler.submit(push(3), 1.015)
    assert scheduler.next_due_s() == pytest.approx(1.0), "the batch is full"
    (group,) = {grant.group.group_id for grant in grants_of(scheduler.decide(1.015)) if grant.group}
    assert group == 0
    scheduler.submit(push(4), 1.1)
    # One is under way until 2.015 s: the next batch waits for more, as with idle hosts.
    assert scheduler.next_due_s() == pytest.approx(1.6)


def test_a_batch_closes_before_the_servers_link_rests() -> None:
    scheduler = make(6, places=IDLE, gather_wait_s=5.0, batch_wait_s=0.05)
    scheduler.submit(push(1), 0.0)
    scheduler.decide(0.0)
    scheduler.submit(push(2), 0.2)
    assert scheduler.next_due_s() == pytest.approx(0.95)
    scheduler.submit(push(3), 0.94)
    assert scheduler.next_due_s() == pytest.approx(0.95)
    scheduler.delivered([1], 0.945)
    assert scheduler.next_due_s() == pytest.approx(0.2), "nothing is granted: it is due at once"


def test_a_request_that_comes_late_waits_as_without_groups() -> None:
    scheduler = make(6, places=IDLE, gather_wait_s=5.0, batch_wait_s=0.05)
    scheduler.submit(push(1), 0.0)
    scheduler.decide(0.0)
    scheduler.submit(push(2), 0.99)
    assert scheduler.next_due_s() == pytest.approx(1.04)


def test_transfers_that_are_never_lost_leave_groups_to_expire() -> None:
    scheduler = make(
        6,
        places=IDLE,
        lost_after=math.inf,
        gather_slack_s=0.5,
        commit_order=CommitOrder.SEQUENCE,
    )
    submit(scheduler, [1] * 6)
    grants = grants_of(scheduler.decide(0.0))
    members = [grant for grant in grants if grant.group]
    assert members[0].group is not None
    due_s = members[0].group.gathered_s + 0.5
    assert scheduler.next_expiry_s() == pytest.approx(due_s)
    scheduler.gathered(members[0].request.transfer_id, 1.0)
    expiry = scheduler.expire(due_s)
    missing = [grant.request.transfer_id for grant in expiry.withdrawn]
    assert missing == [grant.request.transfer_id for grant in members[1:]]
    assert scheduler.next_expiry_s() is None
    assert scheduler.expire(1e6).withdrawn == []
    assert scheduler.version(SERVER) == 0


def test_options_of_waiting_are_checked() -> None:
    for name, value in ("gather_wait_s", -1.0), ("gather_wait_s", math.inf), ("lost_after", 0.5):
        with pytest.raises(InvalidTransferError, match=name):
            make(1, **{name: value})
