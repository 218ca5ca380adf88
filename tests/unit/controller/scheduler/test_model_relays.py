# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Models that workers send on: who joins a chain, its times, and how long models wait for one."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_model_transfers import model

from switchfold.controller.scheduler.errors import InvalidTransferError
from switchfold.controller.scheduler.network import TransferNetwork
from switchfold.controller.scheduler.scheduler import SchedulerOptions, TransferScheduler
from switchfold.controller.scheduler.transfers import ModelGrant
from transfer_cases import MBIT, SERVER, UPDATE_BYTES, grants_of, moved_bits, push, star


def relaying(
    network: TransferNetwork,
    relay_max: int = 8,
    batch_wait_s: float = 0.0,
    join_ratio: float = 1.0,
    relay_wait_s: float = math.inf,
) -> TransferScheduler:
    options = SchedulerOptions(
        relay_max=relay_max,
        batch_wait_s=batch_wait_s,
        join_ratio=join_ratio,
        relay_wait_s=relay_wait_s,
    )
    return TransferScheduler(network, {SERVER: 0}, options)


def granted(scheduler: TransferScheduler, *numbers: int, now_s: float = 0.0) -> list[ModelGrant]:
    for number in numbers:
        scheduler.request_model(model(number), now_s)
    return scheduler.grant_models(now_s)


def test_equal_workers_have_a_model_in_the_time_of_one() -> None:
    grants = granted(relaying(star(4)), 1, 2, 3, 4)
    assert [grant.end_s for grant in grants] == pytest.approx([1.0] * 4)
    assert [grant.relayed_by for grant in grants] == [None, "h1", "h2", "h3"]
    assert [grant.links for grant in grants] == [
        (f"{SERVER}>s1", "s1>h1"),
        ("h1>s1", "s1>h2"),
        ("h2>s1", "s1>h3"),
        ("h3>s1", "s1>h4"),
    ]
    assert {grant.spans for grant in grants} == {grants[0].spans}
    for grant in grants:
        assert moved_bits(grant.spans) == pytest.approx(8 * UPDATE_BYTES)


def test_a_slow_worker_does_not_hold_up_others() -> None:
    """At 10 Mbit/s, a chain with h3 would take 10 s; without it, h1 and h2 have theirs at 1 s."""
    grants = granted(relaying(star(2, others={"h3": 10})), 1, 2, 3)
    assert [(grant.request.worker, grant.relayed_by) for grant in grants] == [
        ("h1", None),
        ("h2", "h1"),
        ("h3", None),
    ]
    assert [grant.end_s for grant in grants] == pytest.approx([1.0, 1.0, 11.0])


def test_a_slightly_slower_worker_joins_if_all_together_gain() -> None:
    """At 80 Mbit/s: 1.25 s for both, instead of 1 and 2.25 s."""
    grants = granted(relaying(star(1, others={"h2": 80})), 1, 2)
    assert [grant.end_s for grant in grants] == pytest.approx([1.25, 1.25])
    assert grants[1].relayed_by == "h1"


def test_with_a_join_ratio_a_slower_worker_joins() -> None:
    """At 25 Mbit/s: 4 s for each of three, instead of 1, 1 and 5 s; at 10 Mbit/s, 10 s for each."""
    for slow, ends_s in ((25, [4.0, 4.0, 4.0]), (10, [1.0, 1.0, 11.0])):
        network = star(2, others={"h3": slow})
        grants = granted(relaying(network, join_ratio=2.0), 1, 2, 3)
        assert [grant.end_s for grant in grants] == pytest.approx(ends_s)


def test_a_chain_has_so_many_workers_at_most() -> None:
    grants = granted(relaying(star(5), relay_max=2), 1, 2, 3, 4, 5)
    assert [grant.relayed_by for grant in grants] == [None, "h1", None, "h3", None]
    assert [grant.end_s for grant in grants] == pytest.approx([1.0, 1.0, 2.0, 2.0, 3.0])
    alone = granted(relaying(star(3), relay_max=1), 1, 2, 3)
    assert [grant.relayed_by for grant in alone] == [None] * 3


def test_models_of_other_sizes_have_chains_of_their_own() -> None:
    scheduler = relaying(star(4))
    for number, megabytes in ((1, 10), (2, 20), (3, 10), (4, 20)):
        scheduler.request_model(model(number, size_bytes=megabytes * 1_000_000), 0.0)
    grants = scheduler.grant_models(0.0)
    assert [(grant.request.worker, grant.relayed_by) for grant in grants] == [
        *(("h1", None), ("h3", "h1")),
        *(("h2", None), ("h4", "h2")),
    ]


def test_a_worker_that_may_not_relay_has_its_model_alone() -> None:
    """It comes first by its name, and neither sends its model on nor takes one from a worker."""
    scheduler = relaying(star(4))
    for number in (1, 2, 3, 4):
        scheduler.request_model(model(number, may_relay=number not in (1, 3)), 0.0)
    grants = scheduler.grant_models(0.0)
    assert [(grant.request.worker, grant.relayed_by) for grant in grants] == [
        ("h1", None),
        ("h2", None),
        ("h4", "h2"),
        ("h3", None),
    ]
    assert [grant.end_s for grant in grants] == pytest.approx([1.0, 2.0, 2.0, 3.0])


def test_a_worker_whose_uplink_is_taken_is_the_last_one() -> None:
    scheduler = relaying(star(2))
    scheduler.submit(push(9, worker="h1"), 0.0)
    assert grants_of(scheduler.decide(0.0))[0].commit_s == pytest.approx(1.0)
    grants = granted(scheduler, 1, 2)
    assert [grant.relayed_by for grant in grants] == [None, None], "it sends its update until 1 s"
    assert [grant.end_s for grant in grants] == pytest.approx([1.0, 2.0])


def test_models_wait_for_their_server_s_link_and_for_each_other() -> None:
    scheduler = relaying(star(4), batch_wait_s=0.05)
    granted(scheduler, 1)
    scheduler.request_model(model(2), 0.2)
    scheduler.request_model(model(3), 0.6)
    assert scheduler.next_due_s() == pytest.approx(0.95), "so that the link goes on"
    assert scheduler.grant_models(0.9) == []
    second, third = scheduler.grant_models(0.95)
    assert (second.end_s, third.end_s) == pytest.approx((2.0, 2.0))
    assert third.relayed_by == "h2"


def test_models_wait_for_a_link_for_so_long_at_most() -> None:
    scheduler = relaying(star(4), batch_wait_s=0.05, relay_wait_s=0.5)
    granted(scheduler, 1)
    scheduler.request_model(model(2), 0.2)
    scheduler.request_model(model(3), 0.6)
    assert scheduler.next_due_s() == pytest.approx(0.7), "the oldest one waits for 0.5 s"
    second, third = scheduler.grant_models(0.7)
    assert (second.end_s, third.relayed_by) == (pytest.approx(2.0), "h2")


def test_models_of_workers_that_may_not_relay_do_not_wait_for_the_link() -> None:
    scheduler = relaying(star(4), batch_wait_s=0.05)
    granted(scheduler, 1)
    scheduler.request_model(model(2, may_relay=False), 0.2)
    assert scheduler.next_due_s() == pytest.approx(0.25)
    scheduler.request_model(model(3), 0.2)
    assert scheduler.next_due_s() == pytest.approx(0.95)


def test_a_model_waits_for_workers_that_come_back_if_they_are_more() -> None:
    scheduler = relaying(star(3), batch_wait_s=0.05, relay_wait_s=4.0)
    granted(scheduler, 1, 2, 3)
    assert len(scheduler.grant_models(0.05)) == 3
    for number in (1, 2, 3):
        scheduler.model_delivered(number, 1.05)
    scheduler.request_model(model(4, worker="h3"), 6.0)
    assert scheduler.next_due_s() == pytest.approx(10.0), "it waits for 4 s at most"
    scheduler.request_model(model(5, worker="h1"), 7.0)
    assert scheduler.next_due_s() == pytest.approx(7.05), "one more is away, and two wait"
    scheduler.request_model(model(6, worker="h2"), 7.02)
    assert scheduler.grant_models(7.05) == []
    grants = scheduler.grant_models(7.1)
    assert [each.request.worker for each in grants] == ["h1", "h2", "h3"]
    assert [each.relayed_by for each in grants] == [None, "h1", "h2"]


def test_nobody_waits_for_workers_that_are_late_or_gone() -> None:
    """First iterations are taken to last 4 times as long as the model, and 3 times that is late."""
    scheduler = relaying(star(3))
    granted(scheduler, 1, 2)
    scheduler.request_model(model(3), 2.0)
    assert scheduler.next_due_s() == pytest.approx(12.0), "then, h1 and h2 are late"
    scheduler.leave("h1", 3.0)
    assert scheduler.next_due_s() == pytest.approx(3.0), "as many wait as are away"


def test_a_long_absence_says_little_of_the_next_one() -> None:
    """h1 and h2 come back after an hour, of which 12 s count; nobody expected them for longer."""
    scheduler = relaying(star(3))
    granted(scheduler, 1, 2)
    for number in (1, 2):
        scheduler.model_delivered(number, 1.0)
    granted(scheduler, 3, now_s=3600.0)
    scheduler.model_delivered(3, 3601.0)
    scheduler.request_model(model(4, worker="h1"), 3602.0)
    scheduler.request_model(model(5, worker="h2"), 3602.0)
    assert len(scheduler.grant_models(3602.0)) == 2
    scheduler.request_model(model(6, worker="h3"), 3610.0)
    assert scheduler.next_due_s() == pytest.approx(3602.0 + 3 * 12.0)


def test_models_wait_for_no_more_workers_than_may_share_one() -> None:
    scheduler = relaying(star(6), relay_max=2)
    granted(scheduler, 1, 2, 3, 4)
    scheduler.request_model(model(5), 5.0)
    assert scheduler.next_due_s() == pytest.approx(24.0), "h3 and h4 have theirs at 2 s"
    scheduler.request_model(model(6), 5.0)
    assert scheduler.next_due_s() == pytest.approx(5.0)


def test_a_chain_gives_back_what_it_has_reserved_hop_by_hop() -> None:
    scheduler = relaying(star(3))
    granted(scheduler, 1, 2, 3)
    assert scheduler.residual.rate("h1>s1").rate_at(0.5) == 0
    scheduler.withdraw_model(2, 0.5)
    assert scheduler.residual.rate("h1>s1").rate_at(0.6) == 100 * MBIT
    assert scheduler.residual.rate("h2>s1").rate_at(0.6) == 0
    for number in (1, 3):
        scheduler.model_delivered(number, 0.7)
    for link in scheduler.residual.network.capacities_bits_per_s:
        assert scheduler.residual.rate(link).rate_at(0.8) == 100 * MBIT


def test_a_worker_on_the_server_s_host_needs_no_link() -> None:
    scheduler = relaying(star(2))
    scheduler.request_model(model(1, worker=SERVER), 0.0)
    scheduler.request_model(model(2), 0.0)
    grants = scheduler.grant_models(0.0)
    assert {grant.request.worker: grant.end_s for grant in grants} == {
        SERVER: 0.0,
        "h2": pytest.approx(1.0),
    }
    assert [grant.relayed_by for grant in grants] == [None, None]


@given(st.lists(st.sampled_from([5, 20, 50, 100]), min_size=1, max_size=8), st.integers(2, 8))
def test_any_chains_fit_into_the_links(rates: list[int], relay_max: int) -> None:
    network = star(0, others={f"h{number}": rate for number, rate in enumerate(rates, 1)})
    scheduler = relaying(network, relay_max)
    grants = granted(scheduler, *range(1, len(rates) + 1))
    assert sorted(grant.request.transfer_id for grant in grants) == [*range(1, len(rates) + 1)]
    for link, capacity in network.capacities_bits_per_s.items():
        assert all(0 <= rate <= capacity for rate in scheduler.residual.rate(link).rates)
    alone = TransferScheduler(network, {SERVER: 0}, SchedulerOptions())
    in_turn = granted(alone, *range(1, len(rates) + 1))
    assert sum(each.end_s for each in grants) <= sum(each.end_s for each in in_turn) * 1.3
    for grant in grants:
        assert moved_bits(grant.spans) == pytest.approx(8 * UPDATE_BYTES)


def test_options_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidTransferError, match="relay_max is 0"):
        SchedulerOptions(relay_max=0)
    with pytest.raises(InvalidTransferError, match="join_ratio"):
        SchedulerOptions(join_ratio=0.9)
    with pytest.raises(InvalidTransferError, match="relay_wait_s"):
        SchedulerOptions(relay_wait_s=-1.0)
    with pytest.raises(InvalidTransferError, match="leave out one of them"):
        SchedulerOptions(relay_max=2, most_queued_updates=1.0)
