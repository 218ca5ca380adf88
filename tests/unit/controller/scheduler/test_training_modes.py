# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Synchronous and stale synchronous training: no drops, last arrivals, clocks."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from test_model_transfers import model

from switchfold.controller.scheduler.delay_bound import DelayBound
from switchfold.controller.scheduler.errors import InvalidTransferError, UnknownStationError
from switchfold.controller.scheduler.grouping import AggregationPlaces
from switchfold.controller.scheduler.network import ResidualNetwork, TransferNetwork
from switchfold.controller.scheduler.scheduler import SchedulerOptions, TransferScheduler
from switchfold.controller.scheduler.training.training_modes import (
    StaleSynchronousTraining,
    SynchronousTraining,
)
from switchfold.controller.scheduler.transfers import TransferGrant, TransferRequest
from transfer_cases import SERVER, grants_of, make, push, star

SYNCHRONOUS = SynchronousTraining()


def decide(
    network: TransferNetwork, requests: Sequence[TransferRequest], **options: object
) -> list[TransferGrant]:
    scheduler = TransferScheduler(network, {SERVER: 0}, SchedulerOptions(**options))  # type: ignore[arg-type]
    for request in requests:
        scheduler.submit(request, 0.0)
    return grants_of(scheduler.decide(0.0))


def test_slow_worker_goes_first_and_others_use_what_it_leaves() -> None:
    network = star(4, others={"h1": 10})
    grants = decide(network, [push(n) for n in (1, 2, 3, 4)], mode=SYNCHRONOUS)
    assert [grant.request.worker for grant in grants] == ["h2", "h3", "h4", "h1"]
    # Three at 90 Mbit/s beside the slow one; shortest first, it would end at 13 s.
    assert [g.commit_s for g in grants] == pytest.approx([1 / 0.9, 2 / 0.9, 3 / 0.9, 10.0])
    last_s = max(g.commit_s for g in decide(network, [push(n) for n in (1, 2, 3, 4)]))
    assert last_s == pytest.approx(13.0)


def test_groups_of_a_synchronous_batch_end_soonest() -> None:
    requests = [push(n) for n in range(1, 7)]
    network = star(6, others={"a1": 100, "a2": 100})
    grants = decide(
        network, requests, mode=SYNCHRONOUS, places=AggregationPlaces(hosts=["a1", "a2"])
    )
    assert max(grant.commit_s for grant in grants) == pytest.approx(4.0)
    below = frozenset(f"h{n}" for n in range(1, 7))
    grants = decide(
        network, requests, mode=SYNCHRONOUS, places=AggregationPlaces(switches={"s1": below})
    )
    assert [grant.commit_s for grant in grants] == pytest.approx([1.0] * 6)


@pytest.mark.parametrize(
    ("places", "most_s"),
    [
        (AggregationPlaces(hosts=["a1", "a2"]), 6.0),
        (AggregationPlaces(switches={"s1": frozenset(f"h{n}" for n in range(1, 9))}), 5.0),
    ],
    ids=["two hosts", "leaf"],
)
def test_iterations_with_a_slow_worker_are_shorter_than_at_a_plain_server(
    places: AggregationPlaces, most_s: float
) -> None:
    """Eight updates in equal shares of the server's link all end at 8 s, the slow one's, too."""
    network = star(8, others={"h1": 25, "a1": 100, "a2": 100})
    requests = [push(n) for n in range(1, 9)]
    grants = decide(network, requests, mode=SYNCHRONOUS, places=places)
    assert len(grants) == len(requests)
    assert 4.0 <= max(grant.commit_s for grant in grants) <= most_s + 1e-6


def last_of_best_order_s(network: TransferNetwork, requests: Sequence[TransferRequest]) -> float:
    best = float("inf")
    for permutation in itertools.permutations(requests):
        residual = ResidualNetwork(network)
        last_s = 0.0
        for request in permutation:
            links = network.route(request.worker, SERVER)
            spans = residual.plan(links, request.bits, 0.0)
            residual.reserve(links, spans)
            last_s = max(last_s, spans[-1].end_s)
        best = min(best, last_s)
    return best


def test_last_arrival_is_near_that_of_the_best_order() -> None:
    chance = random.Random(7)
    ratios: list[float] = []
    for _ in range(40):
        rates: dict[str, int | tuple[int, int]] = {
            f"h{n}": chance.choice([10, 25, 50, 100]) for n in range(1, 6)
        }
        network = star(0, others=rates)
        requests = [push(n, size_bytes=chance.randint(2, 40) * 1_000_000) for n in range(1, 6)]
        found = max(grant.commit_s for grant in decide(network, requests, mode=SYNCHRONOUS))
        ratios.append(found / last_of_best_order_s(network, requests))
    assert min(ratios) >= 1 - 1e-9
    assert sum(ratio <= 1.01 for ratio in ratios) >= 0.95 * len(ratios)


def test_modes_drop_nothing() -> None:
    with pytest.raises(InvalidTransferError, match="synchronous modes drop nothing"):
        SchedulerOptions(mode=SYNCHRONOUS, bound=DelayBound(tau_max=1))
    with pytest.raises(InvalidTransferError, match="staleness is -1"):
        StaleSynchronousTraining(staleness=-1, workers=frozenset({"h1"}))
    with pytest.raises(InvalidTransferError, match="workers is empty"):
        StaleSynchronousTraining(staleness=1, workers=frozenset())
    mode = StaleSynchronousTraining(staleness=1, workers=frozenset({"h9"}))
    with pytest.raises(UnknownStationError, match="worker 'h9' is no host"):
        make(1, mode=mode)


def stale(num_workers: int, staleness: int) -> StaleSynchronousTraining:
    workers = frozenset(f"h{n}" for n in range(1, num_workers + 1))
    return StaleSynchronousTraining(staleness=staleness, workers=workers)


def test_slowest_clock_goes_first_and_shortest_within_a_clock() -> None:
    requests = [
        replace(push(1, size_bytes=1_000_000), clock=5),
        replace(push(2, size_bytes=40_000_000), clock=3),
        replace(push(3, size_bytes=20_000_000), clock=3),
        replace(push(4, size_bytes=80_000_000), clock=2),
    ]
    grants = decide(star(4), requests, mode=stale(4, 3))
    assert [grant.request.transfer_id for grant in grants] == [4, 3, 2, 1]
    assert [grant.commit_s for grant in grants] == pytest.approx([6.4, 8.0, 11.2, 11.28])


def test_model_waits_while_its_worker_is_too_far_ahead() -> None:
    scheduler = make(2, mode=stale(2, 1))
    scheduler.request_model(replace(model(1), clock=1), 0.0)
    assert [grant.request.clock for grant in scheduler.grant_models(0.0)] == [1]
    scheduler.model_delivered(1, 1.0)
    scheduler.request_model(replace(model(2, worker="h1"), clock=2), 1.0)
    assert scheduler.next_due_s() is None
    assert scheduler.grant_models(1.0) == []
    for number, clock in ((1, 0), (2, 0)):
        scheduler.submit(replace(push(number), clock=clock), 1.0)
    scheduler.decide(1.0)
    scheduler.delivered([1], 2.0)
    assert scheduler.next_due_s() is None  # h2 has no update applied
    scheduler.delivered([2], 3.0)
    assert [grant.request.clock for grant in scheduler.grant_models(3.0)] == [2]


def test_nobody_waits_for_a_worker_that_has_left() -> None:
    scheduler = make(2, mode=stale(2, 0))
    scheduler.submit(push(1), 0.0)
    scheduler.decide(0.0)
    scheduler.delivered([1], 1.0)
    scheduler.request_model(replace(model(1), clock=1), 1.0)
    assert scheduler.grant_models(1.0) == []
    scheduler.leave("h2", 1.5)
    assert len(scheduler.grant_models(1.5)) == 1


def test_staleness_is_never_exceeded() -> None:
    """Workers of random speeds get, compute and push as fast as the scheduler lets them."""
    chance = random.Random(2)
    scheduler = make(4, mode=stale(4, 2))
    clocks = {f"h{n}": 0 for n in range(1, 5)}
    computing = dict.fromkeys(clocks, 0.0)
    """By worker, when its update is there."""
    num_transfers = 0
    now_s = 0.0
    spread: set[int] = set()
    for step in range(400):
        now_s = 0.25 * step
        for worker, ready_s in list(computing.items()):
            if ready_s <= now_s:
                num_transfers += 1
                request = push(num_transfers, size_bytes=100_000, worker=worker)
                scheduler.submit(replace(request, clock=clocks[worker]), now_s)
                del computing[worker]
        granted = grants_of(scheduler.decide(now_s))
        for grant in granted:
            for done in scheduler.delivered([grant.request.transfer_id], now_s):
                worker = done.request.worker
                clocks[worker] += 1
                num_transfers += 1
                scheduler.request_model(
                    replace(
                        model(num_transfers, size_bytes=1_000, worker=worker), clock=clocks[worker]
                    ),
                    now_s,
                )
        for got in scheduler.grant_models(now_s):
            scheduler.model_delivered(got.request.transfer_id, now_s)
            ahead = got.request.clock - min(clocks.values())
            assert ahead <= 2
            spread.add(ahead)
            slow = 8 if got.request.worker == "h4" else 1
            computing[got.request.worker] = now_s + slow * chance.uniform(0.1, 1.0)
    assert spread == {0, 1, 2}
    assert min(clocks.values()) > 10
