# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The scheduler as a whole: batches, decisions, deliveries, and what must hold at all times."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchfold.controller.scheduler.delay_bound import DelayBound
from switchfold.controller.scheduler.grouping import AggregationPlaces
from switchfold.controller.scheduler.network import TransferNetwork
from switchfold.controller.scheduler.scheduler import SchedulerOptions, TransferScheduler
from switchfold.controller.scheduler.training.commit_order import CommitOrder
from switchfold.controller.scheduler.transfers import TransferDrop, TransferGrant
from transfer_cases import (
    MBIT,
    SERVER,
    Decisions,
    grants_of,
    loads,
    make,
    moved_bits,
    push,
    reservations,
    star,
)


def test_batch_closes_when_nothing_is_granted() -> None:
    scheduler = make()
    assert scheduler.next_due_s() is None
    scheduler.submit(push(1), 2.0)
    assert scheduler.next_due_s() == 2.0
    assert len(scheduler.decide(2.0)) == 1
    assert scheduler.next_due_s() is None


def test_batch_closes_when_the_oldest_has_waited() -> None:
    scheduler = make(batch_wait_s=0.5)
    scheduler.submit(push(1), 0.0)
    scheduler.decide(0.0)
    scheduler.submit(push(2), 0.2)
    scheduler.submit(push(3), 0.4)
    assert scheduler.next_due_s() == pytest.approx(0.7)
    assert scheduler.decide(0.6) == []
    assert [d.request.transfer_id for d in scheduler.decide(0.7)] == [2, 3]


def test_batch_closes_when_many_wait() -> None:
    scheduler = make(batch_wait_s=60.0, batch_max=2)
    scheduler.submit(push(1), 0.0)
    scheduler.decide(0.0)
    scheduler.submit(push(2), 0.1)
    assert scheduler.decide(0.1) == []
    scheduler.submit(push(3), 0.2)
    assert len(scheduler.decide(0.2)) == 2


def test_later_batch_is_planned_beside_earlier_grants() -> None:
    scheduler = make()
    scheduler.submit(push(1), 0.0)
    (first,) = grants_of(scheduler.decide(0.0))
    scheduler.submit(push(2), 0.0)
    (second,) = grants_of(scheduler.decide(0.5))
    assert (first.commit_s, second.commit_s) == pytest.approx((1.0, 2.0))
    assert (first.sequence, second.sequence) == (0, 1)
    assert (first.delay, second.delay) == (0, 1)


def test_early_delivery_frees_the_rest_of_the_reservation() -> None:
    scheduler = make()
    scheduler.submit(push(1), 0.0)
    scheduler.decide(0.0)
    assert [g.request.transfer_id for g in scheduler.delivered([1], 0.4)] == [1]
    scheduler.submit(push(2), 0.4)
    (second,) = grants_of(scheduler.decide(0.4))
    assert second.commit_s == pytest.approx(1.4)
    assert second.delay == 1
    assert scheduler.version(SERVER) == 1


def test_withdrawn_transfer_holds_up_nobody() -> None:
    scheduler = make(commit_order=CommitOrder.SEQUENCE)
    for number in (1, 2, 3):
        scheduler.submit(push(number), 0.0)
    scheduler.decide(0.0)
    assert list(scheduler.delivered([2], 2.0)) == []
    assert [g.request.transfer_id for g in scheduler.withdraw(1, 2.1)] == [2]
    scheduler.submit(push(4), 2.2)
    assert list(scheduler.withdraw(4, 2.2)) == []
    assert scheduler.next_due_s() is None
    tallies = scheduler.tallies
    assert [tallies[f"h{n}"].withdrawn for n in (1, 2, 3, 4)] == [1, 0, 0, 1]
    assert (tallies["h2"].commits, tallies["h3"].granted, tallies["h4"].waiting) == (1, 1, 0)


def test_group_is_granted_and_delivered_as_one_message() -> None:
    scheduler = make(6, places=AggregationPlaces(hosts=["a1"]), commit_order=CommitOrder.SEQUENCE)
    for number in range(1, 7):
        scheduler.submit(push(number), 0.0)
    grants = grants_of(scheduler.decide(0.0))
    assert [grant.sequence for grant in grants] == list(range(6))
    assert [grant.next_hop for grant in grants] == [SERVER] * 3 + ["a1"] * 3
    group = grants[3].group
    assert group
    assert all(grant.group is group for grant in grants[3:])
    assert [grant.commit_s for grant in grants[3:]] == pytest.approx([4.0] * 3)
    assert all(grant.spans[-1].end_s <= group.gathered_s for grant in grants[3:])
    scheduler.delivered([4, 5, 6], 3.5)  # before its plan, and before those it follows
    assert scheduler.version(SERVER) == 0
    for number in (1, 2, 3):
        scheduler.delivered([number], 3.5)
    assert scheduler.version(SERVER) == 6
    assert scheduler.residual.rate(f"s1>{SERVER}").rate_at(3.6) == 100 * MBIT


def test_members_of_a_switch_group_send_at_its_rate() -> None:
    places = AggregationPlaces(switches={"s1": frozenset({"h1", "h2"})})
    scheduler = make(2, places=places)
    scheduler.submit(push(1), 0.0)
    scheduler.submit(push(2), 0.0)
    grants = grants_of(scheduler.decide(0.0))
    assert {grant.next_hop for grant in grants} == {"s1"}
    assert grants[0].spans == grants[1].spans
    assert moved_bits(grants[0].spans) == pytest.approx(push(1).bits)


def test_servers_have_sequences_of_their_own() -> None:
    network = star(2, others={"h9": 100})
    scheduler = TransferScheduler(network, {SERVER: 5, "h9": 0})
    scheduler.submit(push(1, version=5), 0.0)
    scheduler.submit(replace(push(2), server="h9"), 0.0)
    grants = grants_of(scheduler.decide(0.0))
    assert [(g.request.server, g.sequence, g.delay) for g in grants] == [
        (SERVER, 0, 0),
        ("h9", 0, 0),
    ]
    assert [g.commit_s for g in grants] == pytest.approx([1.0, 1.0])


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["push", "push", "push", "decide", "deliver", "withdraw"]),
        st.integers(1, 6),
        st.integers(1, 40),
        st.floats(0.0, 2.0),
    ),
    max_size=40,
)
"""What happens, the worker, megabytes (or which of the open transfers), and seconds before it."""


def play(
    steps: list[tuple[str, int, int, float]], network: TransferNetwork, options: SchedulerOptions
) -> tuple[TransferScheduler, Decisions, list[int], float]:
    """Returns the scheduler, its decisions, the ids that are under way, and the time at the end."""
    scheduler = TransferScheduler(network, {SERVER: 0}, options)
    decisions: list[TransferGrant | TransferDrop] = []
    ended: set[int] = set()
    """Transfers that have arrived or were withdrawn."""
    now_s, num_transfers = 0.0, 0
    for kind, worker, size, pause_s in steps:
        now_s += pause_s
        granted = [grant.request.transfer_id for grant in grants_of(decisions)]
        open_ids = [each for each in granted if each not in ended]
        if kind == "push":
            num_transfers += 1
            version = max(scheduler.version(SERVER) - size % 4, 0)
            request = push(
                num_transfers, size_bytes=size * 1_000_000, version=version, worker=f"h{worker}"
            )
            scheduler.submit(request, now_s)
        elif kind == "decide":
            made = scheduler.decide(now_s)
            for grant in grants_of(made):
                assert all(span.start_s >= now_s for span in grant.spans)
            decisions += made
        elif open_ids:
            chosen = open_ids[size % len(open_ids)]
            ended.add(chosen)
            if kind == "deliver":
                scheduler.delivered([chosen], now_s)
            else:
                scheduler.withdraw(chosen, now_s)
    now_s += 1.0
    decisions += scheduler.decide(now_s)
    granted = [grant.request.transfer_id for grant in grants_of(decisions)]
    return scheduler, decisions, [each for each in granted if each not in ended], now_s


RATES = st.lists(st.sampled_from([10, 25, 50, 100]), min_size=6, max_size=6)
OPTIONS = st.builds(
    SchedulerOptions,
    commit_order=st.sampled_from(CommitOrder),
    bound=st.one_of(st.none(), st.builds(DelayBound, tau_max=st.integers(0, 8))),
    places=st.sampled_from(
        [
            None,
            AggregationPlaces(hosts=["a1"]),
            AggregationPlaces(switches={"s1": frozenset(f"h{n}" for n in range(1, 7))}),
        ]
    ),
)


@settings(max_examples=60, deadline=None)
@given(STEPS, RATES, OPTIONS)
def test_decisions_keep_what_they_promise(
    steps: list[tuple[str, int, int, float]], rates: list[int], options: SchedulerOptions
) -> None:
    others: dict[str, int | tuple[int, int]] = {f"h{n}": rate for n, rate in enumerate(rates, 1)}
    network = star(0, others=others | {"a1": 100})
    scheduler, decisions, open_ids, now_s = play(steps, network, options)
    # Each update has exactly one decision.
    num_pushes = sum(kind == "push" for kind, *_ in steps)
    decided = sorted(decision.request.transfer_id for decision in decisions)
    assert decided == list(range(1, num_pushes + 1))
    # Each granted update moves all of its bytes, and delays are within the bound.
    for grant in grants_of(decisions):
        in_switch = grant.group if grant.group and grant.group.is_switch else None
        members = in_switch.members if in_switch else (grant.planned,)
        bits = max(member.request.bits for member in members)
        assert moved_bits(grant.spans) == pytest.approx(bits)
        assert options.bound is None or grant.delay <= options.bound.tau_max
    sequences = [grant.sequence for grant in grants_of(decisions)]
    assert sequences == list(range(len(sequences)))
    for tally in scheduler.tallies.values():
        assert tally.pushes == tally.granted + tally.commits + tally.drops + tally.withdrawn
        assert tally.waiting == 0
    # The same calls have the same answers.
    assert play(steps, network, options)[1] == decisions
    # No link has more reserved than it carries, and open grants alone hold reservations.
    for link, capacity in network.capacities_bits_per_s.items():
        assert all(0 <= rate <= capacity for rate in scheduler.residual.rate(link).rates)
    for transfer_id in open_ids:
        scheduler.withdraw(transfer_id, now_s)
    for link, capacity in network.capacities_bits_per_s.items():
        ahead = scheduler.residual.rate(link).since(now_s)
        assert list(ahead.rates) == [capacity]


@settings(max_examples=60, deadline=None)
@given(STEPS, RATES, OPTIONS)
def test_grants_never_exceed_a_link(
    steps: list[tuple[str, int, int, float]], rates: list[int], options: SchedulerOptions
) -> None:
    others: dict[str, int | tuple[int, int]] = {f"h{n}": rate for n, rate in enumerate(rates, 1)}
    network = star(0, others=others | {"a1": 100})
    kept = [step for step in steps if step[0] in ("push", "decide")]
    _, decisions, _, _ = play(kept, network, options)
    for link, totals in loads(reservations(grants_of(decisions))).items():
        assert max(total for _, total in totals) <= network.capacities_bits_per_s[link]
