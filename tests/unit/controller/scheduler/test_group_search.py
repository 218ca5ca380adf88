# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Shortcuts of the search for groups: it finds what one without them finds, in random batches."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from switchfold.controller.scheduler.grouping import AggregationPlaces, PlanAim, PlanGoal
from switchfold.controller.scheduler.grouping import plan_groups as search
from switchfold.controller.scheduler.network import ResidualNetwork, TransferNetwork
from switchfold.controller.scheduler.ordering import order_transfers
from switchfold.controller.scheduler.planning.alike_hosts import AlikeHosts
from switchfold.controller.scheduler.planning.batch_links import shared_links
from switchfold.controller.scheduler.planning.gathering import Gatherings
from switchfold.controller.scheduler.residual_rate import RateSpan
from switchfold.controller.scheduler.transfers import TransferRequest
from transfer_cases import MBIT, SERVER, push, star

MEGABYTE = 1_000_000
HOSTS = ["a1", "a2"]


def random_batch(chance: random.Random) -> tuple[ResidualNetwork, list[TransferRequest]]:
    """Return uneven links, some of them in use, and uneven updates in the order of commits."""
    workers = [f"h{number}" for number in range(1, chance.randint(4, 14))]
    rates: dict[str, int | tuple[int, int]] = {
        host: (chance.choice([10, 50, 100]), chance.choice([50, 100]))
        for host in (*workers, *HOSTS)
    }
    residual = ResidualNetwork(star(0, others=rates))
    for link in (f"s1>{SERVER}", "s1>a1", f"{workers[0]}>s1"):
        if chance.random() < 0.4:
            begin_s = chance.uniform(0, 2)
            span = RateSpan(begin_s, begin_s + chance.uniform(0.1, 3), 5 * MBIT)
            residual.reserve([link], [span])
    updates = [
        push(number, size_bytes=chance.randint(2, 30) * MEGABYTE, worker=worker)
        for number, worker in enumerate([*workers, *chance.sample(workers, 2)])
    ]
    ordered, _ = order_transfers(residual.fork(), updates, 0.0)
    return residual, [each.request for each in ordered]


@pytest.mark.parametrize("aim", PlanAim)
def test_search_finds_the_best_length_of_the_first_group(aim: PlanAim) -> None:
    chance = random.Random(5)
    for _ in range(8):
        residual, ordered = random_batch(chance)
        below = frozenset(chance.sample([each.worker for each in ordered], 2))
        places = AggregationPlaces(
            hosts=HOSTS, switches={"s1": below} if chance.random() < 0.3 else {}
        )
        goal = PlanGoal(aim=aim)
        found = search(residual, ordered, 0.0, places, goal=goal)
        plans = [
            search(residual, ordered, 0.0, places, goal=goal, num_direct=count)
            for count in range(len(ordered) + 1)
        ]
        best = min(plans, key=lambda plan: plan.cost)
        assert found.cost == best.cost
        assert found.commits_s == best.commits_s


def ends_one_by_one(
    network: TransferNetwork, residual: ResidualNetwork, members: Sequence[TransferRequest]
) -> list[float]:
    """Return when each of some updates is at the host a1 or before it: one plan after the other."""
    trial = residual.fork()
    ends: list[float] = []
    for member in members:
        links = network.route(member.worker, "a1")
        spans = trial.plan(links, member.bits, 0.0)
        trial.reserve(links, spans)
        ends.append(max([spans[-1].end_s, *ends[-1:]]))
    return ends


def test_gathered_members_are_those_of_plans_one_by_one() -> None:
    chance = random.Random(7)
    for _ in range(12):
        residual, ordered = random_batch(chance)
        network = residual.network
        workers = sorted({each.worker for each in ordered})
        alike = AlikeHosts(network, workers, SERVER, HOSTS)
        shared = shared_links(network, ordered, alike, [])
        gatherings = Gatherings(residual, ordered, 0.0, alike, shared)
        for first in range(len(ordered)):
            expected = ends_one_by_one(network, residual, ordered[first:])
            # Later limits extend what an earlier one found.
            limits = sorted([*expected, *(end - 1e-6 for end in expected), chance.uniform(0, 9)])
            for limit_s in limits:
                found = gatherings.gathered(first, 32, "a1", residual, limit_s)
                count = sum(end <= limit_s + 1e-9 for end in expected)
                assert (len(found.legs) if found else 0) == count
                if found:
                    assert found.gathered_s == pytest.approx(expected[count - 1])
