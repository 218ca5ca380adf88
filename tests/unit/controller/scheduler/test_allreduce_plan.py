# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Plans of an allreduce among hosts: true sums, times beside a ring, reserved links."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from switchfold.controller.scheduler.errors import InvalidTransferError, UnknownStationError
from switchfold.controller.scheduler.network import ResidualNetwork, TransferNetwork
from switchfold.controller.scheduler.planning.allreduce_plan import AllreducePlan, plan_allreduce
from switchfold.controller.scheduler.residual_rate import RateSpan
from transfer_cases import MBIT, UPDATE_BYTES, loads, moved_bits, star


def names(count: int) -> list[str]:
    return [f"h{number}" for number in range(count)]


def plan(network: TransferNetwork, members: Sequence[str], size_bytes: int) -> AllreducePlan:
    return plan_allreduce(ResidualNetwork(network), members, size_bytes, 0.0)


def ring_s(count: int, slowest_mbits_per_s: int) -> float:
    """2 (n - 1) steps with an n-th of the vector, each as slow as the slowest link."""
    return 2 * (count - 1) / count * 8 * UPDATE_BYTES / (slowest_mbits_per_s * MBIT)


@pytest.mark.parametrize("count", range(2, 9))
@pytest.mark.parametrize("slow", [100, 25])
def test_all_members_have_the_true_sum(count: int, slow: int) -> None:
    """The vector has one byte per element; legs run in the order of their ends."""
    members = names(count)
    found = plan(star(count - 1, others={"h1": slow}), members, 1001)
    generator = np.random.default_rng(count)
    parts = {member: generator.integers(0, 1000, 1001) for member in members}
    sums = {root: np.zeros(1001, np.int64) for root in found.chunks}
    for root in found.chunks:
        if root in parts:
            sums[root] += parts[root]
    complete_s: dict[tuple[str, int], float] = {}
    for leg in found.up:
        part = slice(leg.start_byte, leg.stop_byte)
        sums[leg.receiver][part] += parts[leg.sender][part]
        key = leg.receiver, leg.start_byte
        complete_s[key] = max(complete_s.get(key, 0.0), leg.end_s)
    results = {member: np.full(1001, -1) for member in members}
    for root, (start, stop) in found.chunks.items():
        if root in results:
            results[root][start:stop] = sums[root][start:stop]
    for leg in found.down:
        assert leg.spans[0].start_s >= complete_s[leg.sender, leg.start_byte]
        part = slice(leg.start_byte, leg.stop_byte)
        results[leg.receiver][part] = sums[leg.sender][part]
    expected = sum(parts.values())
    for member in members:
        np.testing.assert_array_equal(results[member], expected)


@pytest.mark.parametrize("count", range(2, 9))
def test_on_equal_links_it_takes_as_long_as_a_ring(count: int) -> None:
    found = plan(star(count - 1), names(count), UPDATE_BYTES)
    assert found.end_s == pytest.approx(ring_s(count, 100), rel=1e-3)


@pytest.mark.parametrize("count", range(3, 9))
def test_with_one_slow_link_it_beats_a_ring(count: int) -> None:
    found = plan(star(count - 1, others={"h1": 25}), names(count), UPDATE_BYTES)
    # The slow host must send and get the vector once: 4 s.
    assert 4.0 <= found.end_s < 4.6
    assert found.end_s < 0.85 * ring_s(count, 25)
    assert "h1" not in found.chunks


def test_idle_host_on_a_fast_link_is_the_root_if_that_is_faster() -> None:
    members = names(8)
    network = star(7, others={"a1": 1000})
    alone = plan(network, members, UPDATE_BYTES)
    found = plan_allreduce(ResidualNetwork(network), members, UPDATE_BYTES, 0.0, ["a1"])
    assert "a1" in found.chunks
    assert found.end_s < 0.95 * alone.end_s
    equal = star(7, others={"a1": 10})
    found = plan_allreduce(ResidualNetwork(equal), members, UPDATE_BYTES, 0.0, ["a1"])
    assert found.end_s == pytest.approx(alone.end_s)


def test_every_byte_is_planned_and_no_link_exceeded() -> None:
    network = star(4, others={"h1": 25, "h2": (100, 50)})
    residual = ResidualNetwork(network)
    residual.reserve(["h3>s1"], [RateSpan(0.0, 5.0, 60 * MBIT)])
    found = plan_allreduce(residual, names(5), UPDATE_BYTES, 0.0)
    reserved = [("h3>s1", RateSpan(0.0, 5.0, 60 * MBIT))]
    for leg in (*found.up, *found.down):
        assert moved_bits(leg.spans) == pytest.approx(8 * (leg.stop_byte - leg.start_byte))
        reserved += [(link, span) for link in leg.links for span in leg.spans]
    for link, totals in loads(reserved).items():
        assert max(total for _, total in totals) <= network.capacities_bits_per_s[link]
    for link in network.capacities_bits_per_s:
        assert min(residual.rate(link).rates) >= 0
    assert min(residual.rate("s1>h4").rates) < 100 * MBIT
    sizes = [stop - start for start, stop in found.chunks.values()]
    assert sum(sizes) == UPDATE_BYTES


def test_bad_calls_are_refused() -> None:
    residual = ResidualNetwork(star(2))
    with pytest.raises(InvalidTransferError, match="at least two members"):
        plan_allreduce(residual, ["h1"], 10, 0.0)
    with pytest.raises(InvalidTransferError, match="each host once"):
        plan_allreduce(residual, ["h1", "h2"], 10, 0.0, ["h2"])
    with pytest.raises(InvalidTransferError, match="size_bytes is 0"):
        plan_allreduce(residual, ["h1", "h2"], 0, 0.0)
    with pytest.raises(UnknownStationError, match="member or helper 'h9'"):
        plan_allreduce(residual, ["h1", "h9"], 10, 0.0)
