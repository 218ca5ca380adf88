# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The bound on delay: what is dropped before it uses the network, and what is counted."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchfold.controller.scheduler.delay_bound import DelayBound
from switchfold.controller.scheduler.network import ResidualNetwork, TransferNetwork
from switchfold.controller.scheduler.ordering import order_transfers
from switchfold.controller.scheduler.scheduler import SchedulerOptions, TransferScheduler
from switchfold.controller.scheduler.training.commit_order import CommitOrder
from switchfold.controller.scheduler.transfers import (
    DropReason,
    PlannedTransfer,
    TransferDrop,
    TransferRequest,
)
from transfer_cases import SERVER, UPDATE_BYTES, push, star
from transfer_simulation import TransferSimulation

SLOW_FIRST = star(4, others={"h1": 10})


def order(
    network: TransferNetwork,
    requests: Sequence[TransferRequest],
    tau_max: int | None,
    next_commit: int = 0,
) -> tuple[list[PlannedTransfer], list[TransferDrop]]:
    bound = None if tau_max is None else DelayBound(tau_max=tau_max)
    return order_transfers(ResidualNetwork(network), requests, 0.0, next_commit, bound)


def names(planned: Sequence[PlannedTransfer]) -> list[int]:
    return [each.request.transfer_id for each in planned]


def test_slow_worker_is_dropped_before_it_delays_all_others() -> None:
    planned, drops = order(SLOW_FIRST, [push(n) for n in (1, 2, 3, 4)], tau_max=2)
    assert names(planned) == [2, 3, 4]
    assert [each.end_s for each in planned] == pytest.approx([1.0, 2.0, 3.0])
    assert [(d.request.worker, d.reason) for d in drops] == [("h1", DropReason.NO_ORDER_FITS)]


def test_without_a_bound_the_slow_worker_comes_last() -> None:
    planned, drops = order(SLOW_FIRST, [push(n) for n in (1, 2, 3, 4)], tau_max=None)
    assert names(planned) == [2, 3, 4, 1]
    assert planned[-1].end_s == pytest.approx(13.0)
    assert not drops


IN_SEQUENCE = SchedulerOptions(commit_order=CommitOrder.SEQUENCE)


def test_slow_worker_that_is_granted_first_holds_up_all_commits_in_sequence() -> None:
    scheduler = TransferScheduler(SLOW_FIRST, {SERVER: 0}, IN_SEQUENCE)
    scheduler.submit(push(1), 0.0)
    (first,) = scheduler.decide(0.0)
    for number in (2, 3, 4):
        scheduler.submit(push(number), 0.0)
    later = scheduler.decide(0.05)
    assert not isinstance(first, TransferDrop)
    commits = [each.commit_s for each in later if not isinstance(each, TransferDrop)]
    assert len(commits) == 3
    assert all(commit_s >= 10.0 for commit_s in commits)


def test_update_too_old_for_the_next_commit_is_dropped() -> None:
    planned, drops = order(star(2), [push(1, version=3), push(2, version=4)], 5, next_commit=9)
    assert names(planned) == [2]
    assert [(d.request.transfer_id, d.reason, d.delay) for d in drops] == [
        (1, DropReason.TOO_OLD, 6)
    ]


def test_urgent_update_goes_first_if_it_is_not_much_slower() -> None:
    # Update 1 has its last chance now: 20 s of others' work could follow it.
    requests = [push(1, version=0), push(2, version=5), push(3, version=5)]
    planned, drops = order(star(3, others={"h1": 60}), requests, 5, next_commit=5)
    assert names(planned) == [1, 2, 3]
    assert not drops


def test_urgent_update_is_dropped_if_all_others_would_wait_long() -> None:
    requests = [push(1, version=0), push(2, version=5), push(3, version=5)]
    planned, drops = order(star(3, others={"h1": 40}), requests, 5, next_commit=5)
    assert names(planned) == [2, 3]
    assert [d.reason for d in drops] == [DropReason.TOO_SLOW_TO_PROMOTE]


@given(
    st.lists(
        st.tuples(st.sampled_from([10, 50, 100]), st.integers(1, 40), st.integers(0, 6)),
        min_size=1,
        max_size=8,
    ),
    st.integers(0, 8),
)
def test_every_commit_meets_the_bound_and_every_update_is_decided(
    drawn: list[tuple[int, int, int]], tau_max: int
) -> None:
    rates: dict[str, int | tuple[int, int]] = {
        f"h{n}": rate for n, (rate, _, _) in enumerate(drawn, 1)
    }
    requests = [
        push(n, size_bytes=size * 1_000_000, version=version)
        for n, (_, size, version) in enumerate(drawn, 1)
    ]
    planned, drops = order(star(0, others=rates), requests, tau_max, next_commit=6)
    for position, each in enumerate(planned):
        assert 6 + position - each.request.version <= tau_max
    decided = names(planned) + [drop.request.transfer_id for drop in drops]
    assert sorted(decided) == [request.transfer_id for request in requests]
    # Only what the bound demands is dropped: one update alone meets it if it is not too old.
    if any(6 - request.version <= tau_max for request in requests):
        assert planned


SLOW_AMONG_EIGHT = star(8, others={"h8": 5})
"""At 10 Mbit/s, delays in sequence stay at 14: while h8 has a grant, no commit overtakes it."""
TEN_MINUTES_S = 600.0


@pytest.mark.parametrize("commit_order", CommitOrder)
def test_ten_minutes_with_a_slow_worker_keep_the_bound(commit_order: CommitOrder) -> None:
    options = SchedulerOptions(bound=DelayBound(tau_max=16), commit_order=commit_order)
    scheduler = TransferScheduler(SLOW_AMONG_EIGHT, {SERVER: 0}, options)
    record = TransferSimulation(SLOW_AMONG_EIGHT, scheduler).run(TEN_MINUTES_S)
    assert max(delay for delays in record.delays.values() for delay in delays) <= 16
    assert len(record.sequences) > 500
    assert record.drops["h8"] > 0
    assert all(record.drops[f"h{n}"] == 0 for n in range(1, 8))


@pytest.mark.parametrize(
    ("mbits_per_s", "tau_max", "commit_order", "commits", "greatest_delay"),
    [
        (5, None, CommitOrder.SEQUENCE, 428, 24),
        (5, None, CommitOrder.ARRIVAL, 598, 46),
        (5, 32, CommitOrder.ARRIVAL, 532, 32),
        (10, 16, CommitOrder.SEQUENCE, 520, 14),
        (10, 16, CommitOrder.ARRIVAL, 563, 16),
    ],
)
def test_ten_minutes_have_the_commits_and_delays_that_the_docs_state(
    mbits_per_s: int,
    tau_max: int | None,
    commit_order: CommitOrder,
    commits: int,
    greatest_delay: int,
) -> None:
    network = star(8, others={"h8": mbits_per_s})
    bound = None if tau_max is None else DelayBound(tau_max=tau_max)
    options = SchedulerOptions(bound=bound, commit_order=commit_order)
    scheduler = TransferScheduler(network, {SERVER: 0}, options)
    record = TransferSimulation(network, scheduler).run(TEN_MINUTES_S)
    delays = [delay for of_worker in record.delays.values() for delay in of_worker]
    assert (len(delays), max(delays)) == (commits, greatest_delay)
    assert not record.drops


def test_drops_and_commits_add_up_to_pushes() -> None:
    options = SchedulerOptions(bound=DelayBound(tau_max=6))
    scheduler = TransferScheduler(SLOW_AMONG_EIGHT, {SERVER: 0}, options)
    record = TransferSimulation(SLOW_AMONG_EIGHT, scheduler).run(120.0)
    tallies = scheduler.tallies
    for worker, tally in tallies.items():
        assert tally.commits == len(record.delays[worker])
        assert tally.drops == record.drops[worker]
        assert tally.pushes == tally.waiting + tally.granted + tally.commits + tally.drops
    assert sum(tally.pushes for tally in tallies.values()) == record.pushes
    assert tallies["h8"].drop_ratio > 0
    assert sum(tally.drops for tally in tallies.values()) > 0


def test_dropped_update_reserves_nothing() -> None:
    options = SchedulerOptions(bound=DelayBound(tau_max=2))
    scheduler = TransferScheduler(SLOW_FIRST, {SERVER: 0}, options)
    for number in (1, 2, 3, 4):
        scheduler.submit(push(number), 0.0)
    decisions = scheduler.decide(0.0)
    assert sum(isinstance(each, TransferDrop) for each in decisions) == 1
    uplink = scheduler.residual.rate("h1>s1")
    assert uplink.rates == (10_000_000,)
    assert scheduler.residual.rate("s1>h0").times[-1] == pytest.approx(3 * 8 * UPDATE_BYTES / 1e8)
