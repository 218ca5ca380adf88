# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Shortest transfer first: acceptance numbers, the rule itself, and the best of all orders."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchfold.controller.scheduler.network import ResidualNetwork, TransferNetwork
from switchfold.controller.scheduler.ordering import order_transfers
from switchfold.controller.scheduler.residual_rate import RateSpan
from switchfold.controller.scheduler.transfers import PlannedTransfer, TransferRequest
from transfer_cases import MBIT, SERVER, UPDATE_BYTES, loads, push, star

MEGABYTE = 1_000_000
RANDOM_CASES = int(os.environ.get("SWITCHFOLD_SCHEDULER_CASES", "60"))


def order(network: TransferNetwork, requests: Sequence[TransferRequest]) -> list[PlannedTransfer]:
    return order_transfers(ResidualNetwork(network), requests, 0.0)[0]


def fair_ends(sizes: Sequence[int], bytes_per_s: float) -> list[float]:
    """End times if all share one link equally, by size."""
    ends: list[float] = []
    sent, time_s = 0.0, 0.0
    for done, size in enumerate(sorted(sizes)):
        time_s += (size - sent) * (len(sizes) - done) / bytes_per_s
        sent = size
        ends.append(time_s)
    return ends


def test_short_transfers_go_first_and_the_last_one_loses_nothing() -> None:
    sizes = [40 * MEGABYTE, 10 * MEGABYTE, 20 * MEGABYTE]
    planned = order(star(3), [push(n, size_bytes=size) for n, size in enumerate(sizes, 1)])
    ends = [each.end_s for each in planned]
    assert [each.request.transfer_id for each in planned] == [2, 3, 1]
    assert ends == pytest.approx([0.8, 2.4, 5.6])
    assert sum(ends) / 3 == pytest.approx(2.93, abs=0.005)
    fair = fair_ends(sizes, 12.5 * MEGABYTE)
    assert fair == pytest.approx([2.4, 4.0, 5.6])
    assert sum(fair) / 3 == pytest.approx(4.0)


def test_transfers_take_turns_on_the_server_link() -> None:
    sizes = [10 * MEGABYTE, 20 * MEGABYTE, 40 * MEGABYTE]
    planned = order(star(3), [push(n, size_bytes=size) for n, size in enumerate(sizes, 1)])
    spans = sorted(span for each in planned for span in each.spans)
    assert all(a.end_s <= b.start_s for a, b in itertools.pairwise(spans))
    assert {span.rate_bits_per_s for span in spans} == {100 * MBIT}


def test_fast_sender_uses_what_a_slow_one_leaves() -> None:
    network = star(2, others={"h1": 10})
    residual = ResidualNetwork(network)
    (slow,), _ = order_transfers(residual, [push(1)], 0.0)
    (fast,), _ = order_transfers(residual, [push(2)], 0.0)
    assert slow.spans == (RateSpan(0.0, 10.0, 10 * MBIT),)
    assert fast.spans == (RateSpan(0.0, pytest.approx(1 / 0.9), 90 * MBIT),)


def test_equal_transfers_go_by_version_then_worker() -> None:
    requests = [push(1, version=7), push(3, version=5), push(2, version=5)]
    planned = order(star(3), requests)
    assert [each.request.transfer_id for each in planned] == [2, 3, 1]
    assert [each.end_s for each in planned] == pytest.approx([1.0, 2.0, 3.0])


def test_update_of_the_server_host_itself_takes_no_time() -> None:
    planned = order(star(1), [push(1), push(2, worker=SERVER)])
    assert [(each.request.transfer_id, each.end_s) for each in planned] == [(2, 0.0), (1, 1.0)]
    assert planned[0].spans == ()


CASES = st.lists(
    st.tuples(st.integers(5, 100), st.integers(1, 60), st.integers(0, 3)), min_size=1, max_size=7
)
"""Workers by Mbit/s of their link, megabytes of their update, and version."""


def build(
    drawn: Sequence[tuple[int, int, int]],
) -> tuple[TransferNetwork, list[TransferRequest]]:
    rates: dict[str, int | tuple[int, int]] = {
        f"h{n}": rate for n, (rate, _, _) in enumerate(drawn, 1)
    }
    requests = [
        push(n, size_bytes=size * MEGABYTE, version=version)
        for n, (_, size, version) in enumerate(drawn, 1)
    ]
    return star(0, others=rates), requests


@given(CASES)
def test_each_choice_would_end_first_of_all_that_remain(
    drawn: list[tuple[int, int, int]],
) -> None:
    network, requests = build(drawn)
    planned = order(network, requests)
    residual = ResidualNetwork(network)
    remaining = {request.transfer_id: request for request in requests}
    for each in planned:
        ends = {
            request.transfer_id: residual.plan(
                network.route(request.worker, SERVER), request.bits, 0.0
            )[-1].end_s
            for request in remaining.values()
        }
        assert each.end_s <= min(ends.values()) + 2e-9
        assert each.end_s == pytest.approx(ends[each.request.transfer_id], abs=1e-9)
        residual.reserve(each.links, each.spans)
        del remaining[each.request.transfer_id]
    assert not remaining
    reserved = [(link, span) for each in planned for link in each.links for span in each.spans]
    for link, totals in loads(reserved).items():
        assert max(total for _, total in totals) <= network.capacities_bits_per_s[link]


@given(CASES, st.randoms())
def test_order_does_not_depend_on_the_order_of_the_requests(
    drawn: list[tuple[int, int, int]], chance: random.Random
) -> None:
    network, requests = build(drawn)
    shuffled = list(requests)
    chance.shuffle(shuffled)
    assert order(network, requests) == order(network, shuffled)


def best_mean_commit_s(network: TransferNetwork, requests: Sequence[TransferRequest]) -> float:
    """The least mean commit time over all orders; each commit waits for those before it."""
    best = float("inf")
    for permutation in itertools.permutations(requests):
        residual = ResidualNetwork(network)
        commit_s = total_s = 0.0
        for request in permutation:
            links = network.route(request.worker, SERVER)
            spans = residual.plan(links, request.bits, 0.0)
            residual.reserve(links, spans)
            commit_s = max(commit_s, spans[-1].end_s)
            total_s += commit_s
        best = min(best, total_s / len(requests))
    return best


def test_mean_commit_is_near_the_best_of_all_orders() -> None:
    ratios: list[float] = []
    chance = random.Random(5)
    for _ in range(RANDOM_CASES):
        drawn = [
            (chance.choice([10, 25, 50, 100]), chance.randint(2, 60), 0)
            for _ in range(chance.randint(2, 5))
        ]
        network, requests = build(drawn)
        found = [each.end_s for each in order(network, requests)]
        best = best_mean_commit_s(network, requests)
        assert sum(found) / len(found) >= best - 1e-9
        ratios.append(sum(found) / len(found) / best)
    within = sum(ratio <= 1.3 for ratio in ratios) / len(ratios)
    assert within >= 0.95


def test_equal_updates_on_equal_links_are_planned_optimally() -> None:
    network, requests = star(5), [push(n, size_bytes=UPDATE_BYTES) for n in range(1, 6)]
    mean_s = sum(each.end_s for each in order(network, requests)) / 5
    assert mean_s == pytest.approx(best_mean_commit_s(network, requests))
