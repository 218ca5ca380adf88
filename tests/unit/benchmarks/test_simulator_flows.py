# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The simulator's flows: max-min fairness, caps, changing rates; numbers computed by hand."""

from __future__ import annotations

import random
from functools import partial

import numpy as np
import pytest

from benchmarks.simulator.fluid import FluidNetwork
from benchmarks.simulator.max_min import max_min_rates
from switchfold.controller.scheduler.network import TransferNetwork
from switchfold.controller.scheduler.scheduler import TransferScheduler
from switchfold.controller.scheduler.transfers import TransferGrant, TransferRequest

MBIT = 1e6


def rates(
    capacities: list[float],
    paths: list[list[int]],
    caps: list[float] | None = None,
    weights: list[float] | None = None,
) -> list[float]:
    starts = np.cumsum([0, *[len(path) for path in paths]])[:-1]
    links = np.array([link for path in paths for link in path], np.int64)
    found = max_min_rates(
        np.array(capacities, np.float64),
        starts.astype(np.int64),
        links,
        np.array(caps or [np.inf] * len(paths), np.float64),
        np.array(weights or [1.0] * len(paths), np.float64),
    )
    return [float(each) for each in found]


def test_one_link_is_shared_evenly() -> None:
    assert rates([90], [[0], [0], [0]]) == [30, 30, 30]


def test_what_a_narrow_link_leaves_goes_to_the_others() -> None:
    # Link 1 has room for 10: its flow takes 10, the others share what is left of link 0.
    assert rates([100, 10], [[0], [0], [0, 1]]) == [45, 45, 10]


def test_a_chain_of_bottlenecks() -> None:
    # A long flow and three short ones on links of 30, 60, 100: the long one is bound by the first.
    assert rates([30, 60, 100], [[0, 1, 2], [0], [1], [2]]) == [15, 15, 45, 85]


def test_caps_leave_their_rest_to_the_others() -> None:
    assert rates([100], [[0], [0], [0]], [10, np.inf, 30]) == [10, 60, 30]
    assert rates([100], [[0], [0]], [0, np.inf]) == [0, 100]
    assert rates([], []) == []


def test_weights_divide_a_link() -> None:
    assert rates([100], [[0], [0]], weights=[1, 3]) == [25, 75]
    # Of link 0, the second flow could have 75, but its cap or its other link leaves 50 or 60.
    assert rates([100], [[0], [0]], [np.inf, 50], [1, 3]) == [50, 50]
    assert rates([100, 40], [[0], [0, 1]], weights=[1, 3]) == [60, 40]


@pytest.mark.parametrize("seed", range(20))
def test_random_networks_are_max_min_fair(seed: int) -> None:
    """No link is beyond its capacity, and every flow is at its cap or is among the fastest of a
    link that is full."""
    chance = random.Random(seed)
    capacities = [chance.choice([10.0, 25.0, 100.0]) for _ in range(8)]
    paths = [chance.sample(range(8), chance.randint(1, 4)) for _ in range(30)]
    caps = [chance.choice([np.inf, 1.0, 5.0]) for _ in paths]
    weights = [chance.choice([0.5, 1.0, 3.0]) for _ in paths]
    found = rates(capacities, paths, caps, weights)
    levels = [rate / weight for rate, weight in zip(found, weights, strict=True)]
    used = [
        sum(rate for rate, path in zip(found, paths, strict=True) if link in path)
        for link in range(8)
    ]
    assert all(u <= c * (1 + 1e-9) for u, c in zip(used, capacities, strict=True))
    for rate, level, path, cap in zip(found, levels, paths, caps, strict=True):
        is_bound = any(
            used[link] >= capacities[link] * (1 - 1e-9)
            and level
            >= (1 - 1e-9)
            * max(other for other, crossed in zip(levels, paths, strict=True) if link in crossed)
            for link in path
        )
        assert rate >= cap * (1 - 1e-9) or is_bound


def ends_of(sizes_mb: list[float], capacity: float = 100 * MBIT) -> list[float]:
    network = FluidNetwork({"server": capacity})
    ends: list[float] = []
    for size in sizes_mb:
        network.start(["server"], 8e6 * size, lambda: ends.append(network.now_s))
    network.run(100.0)
    return ends


def test_fair_sharing_of_three_updates() -> None:
    assert ends_of([10, 20, 40]) == pytest.approx([2.4, 4.0, 5.6])


def test_granted_updates_take_turns() -> None:
    """10, 20 and 40 MB end at 0.8, 2.4 and 5.6 s by the scheduler's own grants."""
    topology = TransferNetwork.star({f"h{n}": 100_000_000 for n in range(4)})
    scheduler = TransferScheduler(topology, {"h0": 0})
    for number, size in enumerate((10, 20, 40)):
        scheduler.submit(
            TransferRequest(
                transfer_id=number,
                worker=f"h{number + 1}",
                server="h0",
                size_bytes=size * 1_000_000,
                version=0,
            ),
            0.0,
        )
    network = FluidNetwork({k: float(v) for k, v in topology.capacities_bits_per_s.items()})
    ends: list[float] = []
    for grant in scheduler.decide(0.0):
        assert isinstance(grant, TransferGrant)
        flow = network.start(
            grant.planned.links,
            grant.request.bits,
            lambda: ends.append(network.now_s),
            cap_bits_per_s=0.0,
        )
        for start_s, _, rate in grant.spans:
            network.call_at(start_s, partial(network.cap, flow, rate))
    network.run(100.0)
    assert ends == pytest.approx([0.8, 2.4, 5.6])


def test_a_link_that_slows_down_delays_its_flow() -> None:
    network = FluidNetwork({"a": 100.0})
    ends: list[float] = []
    network.start(["a"], 300.0, lambda: ends.append(network.now_s))
    network.call_at(1.0, lambda: network.set_capacities({"a": 50.0}))
    network.run(100.0)
    assert ends == pytest.approx([5.0])  # 100 bits in the first second, then 200 at 50


def test_a_cap_of_zero_pauses() -> None:
    network = FluidNetwork({"a": 100.0})
    ends: list[float] = []
    flow = network.start(["a"], 200.0, lambda: ends.append(network.now_s))
    network.call_at(1.0, lambda: network.cap(flow, 0.0))
    network.call_at(3.0, lambda: network.cap(flow, 25.0))
    network.run(100.0)
    assert ends == pytest.approx([7.0])


def test_bytes_are_conserved_on_every_link() -> None:
    network = FluidNetwork({"a": 100.0, "b": 30.0, "c": 100.0})
    network.start(["a", "b"], 60.0, lambda: None)
    network.start(["a", "c"], 1000.0, lambda: None)
    network.run(5.0)
    # The first ends after 2 s at 30; the second has 70 until then and 100 afterwards.
    assert network.moved_bits == pytest.approx({"a": 500.0, "b": 60.0, "c": 440.0})


def test_flows_and_calls_of_one_moment_keep_their_order() -> None:
    network = FluidNetwork({"a": 10.0, "b": 10.0})
    seen: list[str] = []
    network.start(["b"], 10.0, lambda: seen.append("b"))
    network.start(["a"], 10.0, lambda: seen.append("a"))
    network.call_at(1.0, lambda: seen.append("call"))
    network.start([], 10.0, lambda: seen.append("no link"))
    network.run(2.0)
    assert seen == ["no link", "b", "a", "call"]
    assert network.num_events == 2


def test_time_stops_when_asked_or_when_nothing_is_left() -> None:
    network = FluidNetwork({"a": 10.0})
    network.start(["a"], 100.0, lambda: None)
    network.run(4.0)
    assert network.now_s == 4.0
    network.run(float("inf"))
    assert network.now_s == pytest.approx(10.0)
