# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Allreduces of the transfer scheduler, beside updates."""

from __future__ import annotations

import pytest

from switchfold.controller.scheduler.errors import (
    ClockError,
    InvalidTransferError,
    NoRouteError,
    UnknownStationError,
    UnknownTransferError,
)
from switchfold.controller.scheduler.grouping import AggregationPlaces
from switchfold.controller.scheduler.scheduler import TransferScheduler
from transfer_cases import MBIT, SERVER, UPDATE_BYTES, grants_of, loads, make, push, star

MEMBERS = ["h1", "h2", "h3", "h4"]


def test_it_takes_what_updates_leave_and_updates_what_it_leaves() -> None:
    scheduler = make(5)
    scheduler.submit(push(1), 0.0)
    (update,) = grants_of(scheduler.decide(0.0))
    beside = scheduler.allreduce(MEMBERS, UPDATE_BYTES, 0.0)
    alone_s = make(5).allreduce(MEMBERS, UPDATE_BYTES, 0.0).plan.end_s
    assert beside.plan.end_s > alone_s + 0.2  # h1's uplink is busy for 1 s
    scheduler.submit(push(2, worker="h2"), 0.0)
    scheduler.delivered([1], 1.0)
    (later,) = grants_of(scheduler.decide(1.0))
    reserved = [
        (link, span)
        for each in (update.planned, *beside.plan.up, *beside.plan.down, later.planned)
        for link in each.links
        for span in each.spans
    ]
    for link, totals in loads(reserved).items():
        assert max(total for _, total in totals) <= 100 * MBIT, link


def test_all_that_is_left_is_given_back_at_its_end() -> None:
    scheduler = make(4)
    idle = {link: rate.steps for link, rate in scheduler.residual.network.idle.items()}
    first = scheduler.allreduce(MEMBERS, UPDATE_BYTES, 0.0)
    second = scheduler.allreduce(MEMBERS, UPDATE_BYTES, 0.0)
    assert second.number != first.number
    assert second.plan.end_s > first.plan.end_s
    for number in (first.number, second.number):
        scheduler.allreduce_ended(number, 0.0)
    residual = scheduler.residual
    assert {link: residual.rate(link).since(0.0).steps for link in idle} == idle
    with pytest.raises(UnknownTransferError, match="is not under way"):
        scheduler.allreduce_ended(first.number, 0.0)


def test_idle_hosts_of_the_moment_help_if_they_are_faster() -> None:
    network = star(4, others={"a1": 1000})
    scheduler = TransferScheduler(network, {SERVER: 0})
    alone = scheduler.allreduce(MEMBERS, UPDATE_BYTES, 0.0)
    scheduler.allreduce_ended(alone.number, 0.0)
    scheduler.replace_places(AggregationPlaces(hosts=["a1", "h1"]))  # a member is no helper
    helped = scheduler.allreduce(MEMBERS, UPDATE_BYTES, 0.0)
    assert "a1" in helped.plan.chunks
    assert helped.plan.end_s < 0.95 * alone.plan.end_s


def test_what_is_refused_changes_nothing() -> None:
    scheduler = make(4)
    with pytest.raises(InvalidTransferError, match="at least two members"):
        scheduler.allreduce(["h1"], UPDATE_BYTES, 5.0)
    with pytest.raises(UnknownStationError, match="'h9'"):
        scheduler.allreduce(["h1", "h9"], UPDATE_BYTES, 5.0)
    with pytest.raises(UnknownTransferError):
        scheduler.allreduce_ended(0, 5.0)
    scheduler.allreduce(MEMBERS, UPDATE_BYTES, 1.0)  # so the clock has not moved
    with pytest.raises(ClockError):
        scheduler.allreduce(MEMBERS, UPDATE_BYTES, 0.5)


def test_members_without_a_route_are_refused() -> None:
    network = star(2, others={"h3": 100})

    def find_route(sender: str, receiver: str) -> tuple[str, ...] | None:
        return None if "h3" in (sender, receiver) else network.find_route(sender, receiver)

    parted = type(network)(
        capacities_bits_per_s=network.capacities_bits_per_s,
        hosts=network.hosts,
        find_route=find_route,
    )
    scheduler = TransferScheduler(parted, {SERVER: 0})
    with pytest.raises(NoRouteError, match="h3"):
        scheduler.allreduce(["h1", "h2", "h3"], UPDATE_BYTES, 0.0)
    assert scheduler.allreduce(["h1", "h2"], UPDATE_BYTES, 0.0).plan.end_s == pytest.approx(1.0)
