# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Networks that change under open grants, and estimates of what links carry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_model_transfers import model

from switchfold.controller.scheduler.errors import InvalidTransferError, UnknownStationError
from switchfold.controller.scheduler.grouping import AggregationPlaces
from switchfold.controller.scheduler.network import TransferNetwork
from switchfold.controller.scheduler.planning.bandwidth_estimate import (
    BandwidthEstimates,
    TransferDirection,
)
from switchfold.controller.scheduler.scheduler import TransferScheduler
from transfer_cases import MBIT, SERVER, grants_of, make, push, star

UP, DOWN = TransferDirection.UP, TransferDirection.DOWN


def test_grants_stay_and_what_waits_is_planned_in_the_new_network() -> None:
    scheduler = make(3)
    scheduler.submit(push(1), 0.0)
    (first,) = grants_of(scheduler.decide(0.0))
    scheduler.submit(push(2), 0.0)
    scheduler.replace_network(star(3, others={SERVER: 50, "a1": 100, "a2": 100}), 0.5)
    # The first grant takes all of the narrower link until 1 s, as granted.
    assert first.commit_s == pytest.approx(1.0)
    assert scheduler.residual.rate(f"s1>{SERVER}").rate_at(0.7) == 0
    (second,) = grants_of(scheduler.decide(0.5))
    assert second.commit_s == pytest.approx(1.0 + 2.0)
    assert second.spans[0].rate_bits_per_s == 50 * MBIT


def test_wider_link_is_used_beside_open_grants() -> None:
    scheduler = make(2)
    scheduler.submit(push(1), 0.0)
    scheduler.decide(0.0)
    scheduler.replace_network(star(2, others={SERVER: 150, "a1": 100, "a2": 100}), 0.0)
    scheduler.submit(push(2), 0.0)
    (second,) = grants_of(scheduler.decide(0.05))
    # 50 Mbit/s beside the first until 1 s, then all that the worker's link carries.
    assert second.commit_s == pytest.approx(1.0 + (100 - 50 * 0.95) / 100)


def test_link_that_goes_and_returns_keeps_its_reservations() -> None:
    scheduler = TransferScheduler(star(2), {SERVER: 0})
    scheduler.submit(push(1), 0.0)
    scheduler.decide(0.0)
    without = star(2)
    capacities = dict(without.capacities_bits_per_s)
    del capacities["h1>s1"]
    gone = TransferNetwork(
        capacities_bits_per_s=capacities,
        hosts=without.hosts,
        switches=without.switches,
        find_route=lambda a, b: None if a == "h1" else without.find_route(a, b),
    )
    scheduler.replace_network(gone, 0.25)
    scheduler.replace_network(star(2), 0.5)
    assert scheduler.residual.rate("h1>s1").rate_at(0.5) == 0
    assert [g.request.transfer_id for g in scheduler.delivered([1], 0.75)] == [1]
    assert scheduler.residual.rate("h1>s1").rate_at(0.75) == 100 * MBIT
    assert scheduler.residual.rate("h1>s1").rate_at(0.5) == 0


def test_request_without_a_route_waits_for_a_network_that_has_one() -> None:
    scheduler = TransferScheduler(star(2), {SERVER: 0})
    scheduler.submit(push(1), 0.0)
    scheduler.request_model(model(1), 0.0)
    scheduler.replace_network(star(0, others={"h2": 100}), 0.0)
    assert scheduler.next_due_s() is None
    assert scheduler.decide(1.0) == []
    assert scheduler.grant_models(1.0) == []
    assert scheduler.tallies["h1"].waiting == 1
    scheduler.submit(push(2), 1.0)
    scheduler.replace_network(star(2), 2.0)
    assert [d.request.transfer_id for d in scheduler.decide(2.0)] == [1, 2]
    assert [g.request.transfer_id for g in scheduler.grant_models(2.0)] == [1]


def test_request_without_a_route_can_be_withdrawn() -> None:
    scheduler = TransferScheduler(star(2), {SERVER: 0})
    scheduler.submit(push(1), 0.0)
    scheduler.replace_network(star(0), 0.0)
    assert scheduler.withdraw(1, 0.0) == []
    scheduler.replace_network(star(2), 0.0)
    assert scheduler.next_due_s() is None


def test_network_without_a_server_or_aggregator_is_refused() -> None:
    scheduler = make(1, places=AggregationPlaces(hosts=["a1"]))
    scheduler.submit(push(1), 0.0)
    with pytest.raises(UnknownStationError, match="aggregator 'a1' is no host"):
        scheduler.replace_network(star(1), 0.0)
    with pytest.raises(UnknownStationError, match="server 'h0' is no host"):
        scheduler.replace_network(TransferNetwork.star({"h1": 1}), 0.0)
    (grant,) = grants_of(scheduler.decide(0.0))
    assert grant.commit_s == pytest.approx(1.0)


RATES = st.lists(st.sampled_from([5, 20, 100, 400]), min_size=5, max_size=5)


@given(st.lists(st.tuples(RATES, st.integers(1, 40)), min_size=1, max_size=6))
def test_any_changes_leave_no_rate_below_0_and_cancel_when_all_ends(
    changes: list[tuple[list[int], int]],
) -> None:
    scheduler = TransferScheduler(star(4), {SERVER: 0})
    number = 0
    network = star(4)
    for step, (rates, megabytes) in enumerate(changes):
        for worker in range(1, 5):
            number += 1
            scheduler.submit(
                push(number, size_bytes=megabytes * 1_000_000, worker=f"h{worker}"), 0.5 * step
            )
        network = star(0, others={f"h{n}": rate for n, rate in enumerate(rates)})
        scheduler.replace_network(network, 0.5 * step)
        for grant in grants_of(scheduler.decide(0.5 * step)):
            assert all(span.start_s >= 0.5 * step for span in grant.spans)
        for link, capacity in network.capacities_bits_per_s.items():
            assert all(0 <= rate <= capacity for rate in scheduler.residual.rate(link).rates)
    now_s = 0.5 * len(changes) + 0.06
    scheduler.decide(now_s)
    for transfer_id in range(1, number + 1):
        scheduler.withdraw(transfer_id, now_s)
    for link, capacity in network.capacities_bits_per_s.items():
        assert list(scheduler.residual.rate(link).since(now_s).rates) == [capacity]


def estimates() -> BandwidthEstimates:
    return BandwidthEstimates({"h1": (100 * MBIT, 100 * MBIT), "h2": (100 * MBIT, 40 * MBIT)})


def test_halved_link_is_estimated_after_one_report_and_back_after_four() -> None:
    found = estimates()
    assert found.take_change() is None
    found.fell_short("h1", UP, 50 * MBIT)
    assert found.bits_per_s("h1", UP) == 50 * MBIT
    assert found.take_change() == {
        "h1": (50 * MBIT, 100 * MBIT),
        "h2": (100 * MBIT, 40 * MBIT),
    }
    assert found.take_change() is None
    seen: list[int] = []
    for _ in range(4):
        found.was_clean("h1", UP)
        seen.append(found.bits_per_s("h1", UP))
    assert seen == [62_500_000, 78_125_000, 97_656_250, 100 * MBIT]
    assert found.take_change() is not None


def test_later_reports_count_half() -> None:
    found = estimates()
    found.fell_short("h1", DOWN, 60 * MBIT)
    found.fell_short("h1", DOWN, 40 * MBIT)
    assert found.bits_per_s("h1", DOWN) == 50 * MBIT
    assert found.take_change() is not None
    found.fell_short("h1", DOWN, 42 * MBIT)
    assert found.bits_per_s("h1", DOWN) == 46 * MBIT
    assert found.take_change() is None  # 8 % less
    found.fell_short("h1", DOWN, 42 * MBIT)
    assert found.bits_per_s("h1", DOWN) == 44 * MBIT
    assert found.take_change() is not None  # 12 % less


def test_probe_that_falls_short_is_taken_back() -> None:
    found = estimates()
    found.fell_short("h1", UP, 40 * MBIT)
    found.was_clean("h1", UP)
    assert found.bits_per_s("h1", UP) == 50 * MBIT
    found.fell_short("h1", UP, 40 * MBIT)
    assert found.bits_per_s("h1", UP) == 40 * MBIT


def test_what_a_slowed_link_has_carried_is_its_estimate() -> None:
    found = estimates()
    found.carried("h1", UP, 50 * MBIT)
    assert found.bits_per_s("h1", UP) == 100 * MBIT, "it has none to correct"
    found.fell_short("h1", UP, 50 * MBIT)
    found.carried("h1", UP, 54 * MBIT)
    assert found.bits_per_s("h1", UP) == 52 * MBIT
    found.carried("h1", UP, 50 * MBIT)
    assert found.bits_per_s("h1", UP) == 51 * MBIT
    found.carried("h1", UP, 90 * MBIT)
    assert found.bits_per_s("h1", UP) == 90 * MBIT, "much more"
    found.carried("h1", UP, 100 * MBIT)
    assert found.bits_per_s("h1", UP) == 100 * MBIT, "95: nearly all"
    found.was_clean("h1", UP)
    assert found.bits_per_s("h1", UP) == 100 * MBIT


def test_no_estimate_exceeds_its_link() -> None:
    found = estimates()
    found.fell_short("h2", DOWN, 39 * MBIT)
    assert found.take_change() is None
    found.was_clean("h2", DOWN)
    found.was_clean("h2", DOWN)
    assert found.bits_per_s("h2", DOWN) == 40 * MBIT
    found.fell_short("h2", DOWN, 10 * MBIT)
    assert found.bits_per_s("h2", DOWN) == 10 * MBIT


def test_next_plan_ends_as_the_halved_link_lets_it() -> None:
    found = BandwidthEstimates({f"h{n}": (100 * MBIT, 100 * MBIT) for n in range(3)})
    scheduler = TransferScheduler(star(2), {SERVER: 0})
    found.fell_short(SERVER, DOWN, 52 * MBIT)  # of 50 Mbit/s, measured with an error of 4 %
    rates = found.take_change()
    assert rates
    scheduler.replace_network(TransferNetwork.star(rates), 0.0)
    scheduler.submit(push(1), 0.0)
    (grant,) = grants_of(scheduler.decide(0.0))
    assert grant.commit_s == pytest.approx(2.0, rel=0.15)
    assert grant.commit_s != pytest.approx(1.0, rel=0.5)


def test_unknown_links_and_bad_rates_are_refused() -> None:
    found = estimates()
    with pytest.raises(UnknownStationError, match="no link of a host 'h9'"):
        found.was_clean("h9", UP)
    with pytest.raises(InvalidTransferError, match="achieved rate of h1 is -1"):
        found.fell_short("h1", UP, -1.0)
    with pytest.raises(InvalidTransferError, match="rate up of h1 is 0"):
        BandwidthEstimates({"h1": (0, 1)})
