# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sparse updates: how large their sums are, and where they are added up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from switchfold.controller.scheduler.grouping import AggregationPlaces, BatchPlan, plan_groups
from switchfold.controller.scheduler.network import ResidualNetwork
from switchfold.controller.scheduler.planning.sum_size import SumSize
from switchfold.controller.scheduler.transfers import TransferRequest
from transfer_cases import SERVER, UPDATE_BYTES, push, star

BELOW = frozenset(f"h{n}" for n in range(1, 7))


def sparse(number: int, whole_bytes: int) -> TransferRequest:
    return replace(push(number), whole_bytes=whole_bytes)


def plan(
    requests: list[TransferRequest], num_direct: int | None = None, **places: object
) -> BatchPlan:
    network = star(6, others={"a1": 100})
    where = AggregationPlaces(**places)  # type: ignore[arg-type]
    return plan_groups(ResidualNetwork(network), requests, 0.0, where, num_direct=num_direct)


@pytest.mark.parametrize(
    ("whole", "sizes"),
    [(1, [1, 1, 1]), (2, [1, 1.5, 1.75]), (4, [1, 1.75, 2.3125])],
    ids=["dense", "half", "quarter"],
)
def test_a_sum_grows_as_if_values_were_drawn_independently(whole: int, sizes: list[float]) -> None:
    size = SumSize()
    found = [size.add(sparse(n, whole * UPDATE_BYTES)) for n in range(1, 4)]
    assert found == [8 * UPDATE_BYTES * each for each in sizes]


def test_a_sum_is_never_larger_than_all_values_nor_smaller_than_its_largest_member() -> None:
    size = SumSize()
    whole = UPDATE_BYTES + 5
    assert size.add(replace(push(1, size_bytes=9), whole_bytes=whole)) == 72
    for number in range(2, 40):
        assert 8 * UPDATE_BYTES <= size.add(sparse(number, whole)) <= 8 * whole


def test_the_server_link_is_kept_free_for_the_union() -> None:
    """Each update takes 1 s. The sum of three with half of all values takes 1.75 s."""
    found = plan([sparse(n, 2 * UPDATE_BYTES) for n in range(1, 7)], 3, hosts=["a1"])
    (group,) = found.groups
    assert len(group.members) == 3
    assert group.end_s == pytest.approx(3 + 1.75)
    (dense,) = plan([push(n) for n in range(1, 7)], 3, hosts=["a1"]).groups
    assert dense.end_s == pytest.approx(3 + 1)


def test_a_sum_that_saves_nothing_is_not_made() -> None:
    """Updates that hardly share a value: their union takes as long as they do."""
    found = plan([sparse(n, 1_000_000 * UPDATE_BYTES) for n in range(1, 7)], hosts=["a1"])
    assert found.commits_s[6] == pytest.approx(6, rel=1e-3)
    assert plan([push(n) for n in range(1, 7)], hosts=["a1"]).commits_s[6] == pytest.approx(4)


def test_switches_do_not_add_sparse_updates() -> None:
    requests = [sparse(n, 2 * UPDATE_BYTES) for n in range(1, 7)]
    assert not plan(requests, switches={"s1": BELOW}).groups
    (group,) = plan([push(n) for n in range(1, 7)], switches={"s1": BELOW}).groups
    assert (group.aggregator, group.server) == ("s1", SERVER)
