# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Residual bandwidth: end times, reservations and their release, routes."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchfold.controller.scheduler.errors import (
    InvalidTransferError,
    NoRouteError,
    UnknownStationError,
)
from switchfold.controller.scheduler.network import ResidualNetwork, TransferNetwork
from switchfold.controller.scheduler.residual_rate import RateSpan, ResidualRate
from transfer_cases import MBIT, moved_bits, star

ONE_LINK = TransferNetwork(
    capacities_bits_per_s={"a>b": 48 * MBIT},
    hosts=frozenset({"a", "b"}),
    find_route=lambda sender, receiver: ("a>b",) if (sender, receiver) == ("a", "b") else None,
)
WHOLE_MBITS = st.integers(1, 100).map(lambda rate: rate * MBIT)


def test_end_time_follows_the_residual_bandwidth() -> None:
    residual = ResidualNetwork(ONE_LINK)
    residual.reserve(["a>b"], [RateSpan(0.0, 3.0, 32 * MBIT)])
    # 30 MB at 2 MB/s for 3 s, the other 24 MB at 6 MB/s
    spans = residual.plan(["a>b"], 8 * 30_000_000, 0.0)
    assert spans == (RateSpan(0.0, 3.0, 16 * MBIT), RateSpan(3.0, 7.0, 48 * MBIT))


def test_transfer_waits_while_nothing_is_free() -> None:
    residual = ResidualNetwork(ONE_LINK)
    residual.reserve(["a>b"], [RateSpan(1.0, 2.0, 48 * MBIT)])
    spans = residual.plan(["a>b"], 72 * MBIT, 0.5)
    assert spans == (RateSpan(0.5, 1.0, 48 * MBIT), RateSpan(2.0, 3.0, 48 * MBIT))


def test_transfer_within_a_host_uses_no_link() -> None:
    residual = ResidualNetwork(ONE_LINK)
    assert ONE_LINK.route("a", "a") == ()
    assert residual.plan((), 1000, 4.0) == ()


def test_release_gives_back_what_lies_ahead() -> None:
    residual = ResidualNetwork(ONE_LINK)
    span = RateSpan(1.0, 5.0, 30 * MBIT)
    residual.reserve(["a>b"], [span])
    residual.release(["a>b"], [span], 2.0)
    free = [residual.rate("a>b").rate_at(time_s) for time_s in (0.0, 1.5, 2.0, 4.0)]
    assert free == [48 * MBIT, 18 * MBIT, 48 * MBIT, 48 * MBIT]
    residual.forget(2.0)
    assert residual.rate("a>b").rates == (48 * MBIT,)


def test_fork_leaves_the_network_as_it_is() -> None:
    residual = ResidualNetwork(ONE_LINK)
    trial = residual.fork()
    trial.reserve(["a>b"], [RateSpan(0.0, 1.0, MBIT)])
    assert residual.rate("a>b").rate_at(0.5) == 48 * MBIT
    residual.adopt(trial)
    assert residual.rate("a>b").rate_at(0.5) == 47 * MBIT


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20), st.integers(1, 100)), max_size=8),
    st.integers(0, 60),
    st.lists(st.integers(1, 500), min_size=1, max_size=6),
    st.integers(1, 120),
)
def test_end_times_of_one_link_are_those_of_plans(
    reserved: list[tuple[int, int, int]], start: int, sizes: list[int], sender: int
) -> None:
    network = star(0, others={"h1": sender})
    residual = ResidualNetwork(network)
    for begin, length, share in reserved:
        rate = residual.rate("s1>h0")
        free = min(rate.rate_at(float(time_s)) for time_s in range(begin, begin + length))
        span = RateSpan(float(begin), float(begin + length), min(free, share * MBIT))
        residual.reserve(["s1>h0"], [span])
    rate = residual.rate("s1>h0")
    assert all(x != y for x, y in itertools.pairwise(rate.rates))
    for size in (mbits * MBIT for mbits in sizes):
        end = rate.earliest_end_s(float(start), size, sender * MBIT)
        spans = residual.plan(network.route("h1", "h0"), size, float(start))
        assert spans[0].start_s >= start
        assert spans[-1].end_s == pytest.approx(end, abs=1e-9)
        assert moved_bits(spans) == pytest.approx(size)


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(1e-6, 50), WHOLE_MBITS), max_size=12))
def test_reservation_and_release_cancel_exactly(drawn: list[tuple[float, float, int]]) -> None:
    rate = ResidualRate.of(2000 * MBIT)
    spans = [RateSpan(start, start + length, mbits) for start, length, mbits in drawn]
    booked = rate.less(spans)
    assert all(booked.rate_at(span.start_s) <= 2000 * MBIT - span.rate_bits_per_s for span in spans)
    assert booked.more(spans).rates == [2000 * MBIT]


def test_missing_route_and_station_are_named() -> None:
    with pytest.raises(NoRouteError, match="from b to a"):
        ONE_LINK.route("b", "a")
    with pytest.raises(UnknownStationError, match=r"worker 'c' is no host .* \(a, b\)"):
        ONE_LINK.check_host("c", "worker")


@pytest.mark.parametrize("capacity", [0, -1, 1.5, True])
def test_capacity_is_a_whole_number(capacity: int) -> None:
    with pytest.raises(InvalidTransferError, match="link a>b is"):
        TransferNetwork(
            capacities_bits_per_s={"a>b": capacity},
            hosts=frozenset({"a", "b"}),
            find_route=lambda sender, receiver: None,
        )
