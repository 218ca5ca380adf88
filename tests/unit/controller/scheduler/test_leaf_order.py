# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Batches of workers at several leaves: who is added at a switch, and who waits for it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from switchfold.controller.scheduler.delay_bound import DelayBound
from switchfold.controller.scheduler.grouping import AggregationPlaces, plan_groups
from switchfold.controller.scheduler.network import ResidualNetwork, TransferNetwork
from switchfold.controller.scheduler.ordering import order_transfers
from switchfold.controller.scheduler.planning.leaf_order import LeafOrders
from switchfold.controller.scheduler.scheduler import SchedulerOptions, TransferScheduler
from switchfold.controller.scheduler.transfers import TransferGrant, TransferRequest
from transfer_cases import MBIT, SERVER, drops_of, grants_of, loads, push, reservations, star

ODD = frozenset({"h1", "h3", "h5"})
"""The workers at the leaf; names decide the order of equal updates, so others are between them."""


def decide(
    requests: Sequence[TransferRequest],
    below: frozenset[str] = ODD,
    network: TransferNetwork | None = None,
    **options: object,
) -> list[TransferGrant]:
    """The grants of one batch, in commit order."""
    places = AggregationPlaces(switches={"s1": below})
    options = {"places": places, "batch_max": len(requests)} | options
    scheduler = TransferScheduler(
        network or star(len(requests)),
        {SERVER: max(request.version for request in requests)},
        SchedulerOptions(**options),  # type: ignore[arg-type]
    )
    for request in requests:
        scheduler.submit(request, 0.0)
    decisions = scheduler.decide(0.0)
    assert not drops_of(decisions)
    return grants_of(decisions)


def ids(grants: Sequence[TransferGrant]) -> list[int]:
    return [grant.request.transfer_id for grant in grants]


def orders(requests: Sequence[TransferRequest], **options: object) -> list[list[int]]:
    """The other orders of a batch, by transfer id."""
    options = {"most_members": 32} | options
    residual = ResidualNetwork(star(len(requests)))
    found = LeafOrders(residual, 0.0, {"s1": ODD}, **options)  # type: ignore[arg-type]
    return [[each.transfer_id for each in order] for order in found.of(requests)]


def test_updates_below_a_leaf_cost_the_servers_link_one() -> None:
    grants = decide([push(n) for n in range(1, 7)])
    assert ids(grants) == [1, 3, 5, 2, 4, 6]
    assert [grant.sequence for grant in grants] == list(range(6))
    assert [grant.commit_s for grant in grants] == pytest.approx([1, 1, 1, 2, 3, 4])
    groups = {grant.group.group_id for grant in grants if grant.group is not None}
    assert len(groups) == 1
    assert all(grant.group is not None and grant.group.is_switch for grant in grants[:3])
    for link, totals in loads(reservations(grants)).items():
        assert max(total for _, total in totals) <= 100 * MBIT, link


def test_a_slow_worker_at_the_leaf_is_no_member() -> None:
    grants = decide([push(n) for n in range(1, 7)], network=star(6, others={"h3": 5}))
    assert ids(grants) == [1, 5, 2, 4, 6, 3]
    assert grants[-1].group is None


@pytest.mark.parametrize("field", ["sum_key", "clock"])
def test_only_updates_that_go_together_are_pulled_ahead(field: str) -> None:
    requests = [push(n) for n in range(1, 7)]
    requests[4] = replace(requests[4], **{field: 7})  # type: ignore[arg-type]
    assert orders(requests)[0] == [1, 3, 2, 4, 5, 6]


def test_updates_that_travel_alone_keep_their_places() -> None:
    requests = [replace(push(n), sum_key=0) for n in range(1, 7)]
    assert orders(requests) == []


def test_a_group_has_at_most_so_many_members() -> None:
    requests = [push(n) for n in range(1, 7)]
    assert orders(requests, most_members=2) == [[1, 3, 2, 4, 5, 6]]


@pytest.mark.parametrize(
    ("last_place", "order"), [(3, [1, 2, 3, 5, 4, 6]), (4, [1, 3, 5, 2, 4, 6])], ids=str
)
def test_nobody_is_pushed_beyond_its_last_place(last_place: int, order: list[int]) -> None:
    """Behind a group of three, update 2 is the fourth."""
    last = dict.fromkeys(range(1, 7), 6) | {2: last_place}
    assert orders([push(n) for n in range(1, 7)], last_positions=last) == [order]


def test_a_large_group_at_a_low_rate_goes_first_and_leaves_room() -> None:
    """Three at 50 Mbit/s end at 2 s, and one beside them; behind two others they would at 4 s."""
    below = frozenset({"h3", "h4", "h5"})
    network = star(2, others={"h3": 50, "h4": 50, "h5": 50})
    grants = decide([push(n) for n in range(1, 6)], below, network)
    assert ids(grants) == [3, 4, 5, 1, 2]
    assert [grant.commit_s for grant in grants] == pytest.approx([2, 2, 2, 2, 3])


def test_a_slower_clock_stays_before_a_large_group() -> None:
    requests = [push(n) for n in range(1, 7)]
    requests[1:] = [replace(each, clock=1) for each in requests[1:]]
    assert orders(requests) == [[1, 2, 3, 5, 4, 6], [1, 3, 5, 2, 4, 6]]


@pytest.mark.parametrize("seed", range(12))
def test_bound_holds_and_no_plan_is_worse_than_in_the_order_of_the_batch(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.randint(4, 16)
    rates: Mapping[str, int | tuple[int, int]] = {
        f"h{n}": chance.choice([25, 50, 100]) for n in range(1, count + 1)
    }
    network = star(0, others=rates)
    below = frozenset(host for host in rates if chance.random() < 0.6)
    tau_max = count + chance.randint(0, 3)
    requests = [
        push(n, version=chance.randint(0, 3), size_bytes=chance.choice([2, 5, 12]) * 1_000_000)
        for n in range(1, count + 1)
    ]
    places = AggregationPlaces(switches={"s1": below})
    bound = DelayBound(tau_max=tau_max)
    scheduler = TransferScheduler(
        network, {SERVER: 3}, SchedulerOptions(places=places, batch_max=count, bound=bound)
    )
    for request in requests:
        scheduler.submit(request, 0.0)
    decisions = scheduler.decide(0.0)
    grants = grants_of(decisions)
    assert all(grant.delay <= tau_max for grant in grants)
    assert sorted(each.request.transfer_id for each in decisions) == list(range(1, count + 1))
    residual = ResidualNetwork(network)
    ordered, drops = order_transfers(residual.fork(), requests, 0.0, 3, bound)
    assert len(drops) == len(drops_of(decisions))
    plain = plan_groups(residual, [each.request for each in ordered], 0.0, places)
    total_s = sum(grant.commit_s for grant in grants)
    assert total_s <= sum(plain.commits_s.values()) + 1e-6


def least_total_s(
    network: TransferNetwork, requests: Sequence[TransferRequest], below: frozenset[str]
) -> float:
    """The least sum of commits over all orders and cuts; cuts of two or more are at the leaf."""
    best = float("inf")
    for order in itertools.permutations(requests):
        for cuts in itertools.product([False, True], repeat=len(order) - 1):
            groups = [[order[0]]]
            for request, is_cut in zip(order[1:], cuts, strict=True):
                if is_cut:
                    groups.append([request])
                else:
                    groups[-1].append(request)
            if all(len(g) == 1 or {each.worker for each in g} <= below for g in groups):
                best = min(best, _total_s(network, groups))
    return best


def _total_s(network: TransferNetwork, groups: Sequence[Sequence[TransferRequest]]) -> float:
    residual = ResidualNetwork(network)
    commit_s = total_s = 0.0
    for group in groups:
        links = {link for each in group for link in network.route(each.worker, SERVER)}
        spans = residual.plan(sorted(links), max(each.bits for each in group), 0.0)
        residual.reserve(links, spans)
        commit_s = max(commit_s, spans[-1].end_s)
        total_s += commit_s * len(group)
    return total_s


def test_mean_commit_is_near_the_best_of_all_plans_with_a_leaf() -> None:
    chance = random.Random(5)
    ratios: list[float] = []
    for _ in range(30):
        rates: Mapping[str, int | tuple[int, int]] = {
            f"h{n}": chance.choice([25, 50, 100]) for n in range(1, 6)
        }
        network = star(0, others=rates)
        below = frozenset(chance.sample(sorted(rates), 3))
        requests = [push(n) for n in range(1, 6)]
        found_s = sum(grant.commit_s for grant in decide(requests, below, network))
        best_s = least_total_s(network, requests, below)
        assert found_s >= best_s - 1e-6
        ratios.append(found_s / best_s)
    assert sum(ratio <= 1.3 for ratio in ratios) >= 0.95 * len(ratios)
