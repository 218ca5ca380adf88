# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What plans of one batch share: gathered members, and lengths of the first group to try."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from switchfold.controller.scheduler.network import ResidualNetwork
from switchfold.controller.scheduler.planning.alike_hosts import AlikeHosts
from switchfold.controller.scheduler.planning.batch_links import shared_links
from switchfold.controller.scheduler.planning.gathering import Gathered, Gatherings
from switchfold.controller.scheduler.residual_rate import RateSpan
from transfer_cases import MBIT, SERVER, UPDATE_BYTES, push, star

SIX = [push(n) for n in range(1, 7)]
HOSTS = ["a1", "a2"]
NETWORK = star(6, others={"a1": 100, "a2": 100})
ALIKE = AlikeHosts(NETWORK, [each.worker for each in SIX], SERVER, HOSTS)


def gatherings(shared: Sequence[str] = ()) -> Gatherings:
    return Gatherings(ResidualNetwork(NETWORK), SIX, 0.0, ALIKE, frozenset(shared))


def ends(found: Gathered | None) -> list[float]:
    return [] if found is None else [leg.end_s for leg in found.legs]


def test_members_are_those_that_are_there_in_time() -> None:
    found = gatherings()
    residual = ResidualNetwork(NETWORK)
    assert ends(found.gathered(2, 6, "a1", residual, 2.5)) == pytest.approx([1.0, 2.0])
    assert ends(found.gathered(2, 6, "a1", residual, 3.0)) == pytest.approx([1.0, 2.0, 3.0])
    assert ends(found.gathered(2, 6, "a1", residual, 1.0)) == pytest.approx([1.0])
    assert ends(found.gathered(2, 6, "a1", residual, 99.0)) == pytest.approx([1.0, 2.0, 3.0, 4.0])
    assert ends(found.gathered(2, 2, "a1", residual, 99.0)) == [1.0, 2.0]
    assert found.gathered(2, 6, "a1", residual, 0.9) is None


def test_sum_is_as_large_as_the_largest_member_and_as_late_as_the_last() -> None:
    updates = [push(1, size_bytes=2_500_000), push(2), push(3, size_bytes=1_250_000)]
    residual = ResidualNetwork(NETWORK)
    found = Gatherings(residual, updates, 0.0, ALIKE, frozenset())
    one, three = found.gathered(0, 1, "a1", residual, 9.0), found.gathered(0, 3, "a1", residual, 9)
    assert one is not None
    assert three is not None
    assert (one.sum_bits, three.sum_bits) == (20_000_000, 8 * UPDATE_BYTES)
    assert (one.gathered_s, three.gathered_s) == pytest.approx((0.2, 1.3))


def test_slow_member_delays_all_that_follow_it() -> None:
    network = star(6, others={"a1": 100, "a2": 100, "h2": 10})
    residual = ResidualNetwork(network)
    alike = AlikeHosts(network, [each.worker for each in SIX], SERVER, HOSTS)
    found = Gatherings(residual, SIX, 0.0, alike, frozenset())
    # The second one ends at 11 s, the third uses what it leaves and ends before; it comes after.
    assert len(ends(found.gathered(0, 6, "a1", residual, 5.0))) == 1
    assert len(ends(found.gathered(0, 6, "a1", residual, 11.1))) == 6


def test_hosts_that_are_alike_share_what_is_known() -> None:
    found = gatherings()
    residual = ResidualNetwork(NETWORK)
    assert found.one_of_each(HOSTS) == ["a1"]
    first = found.gathered(0, 6, "a1", residual, 2.0)
    second = found.gathered(0, 6, "a2", residual, 2.0)
    assert first is not None
    assert second is not None
    assert first.legs[0] is second.legs[0]


@pytest.mark.parametrize("link", ["h2>s1", "s1>a1"])
def test_legs_are_planned_again_where_a_shared_link_has_other_reservations(link: str) -> None:
    found = gatherings([link])
    residual = ResidualNetwork(NETWORK)
    assert ends(found.gathered(0, 6, "a1", residual, 2.0)) == pytest.approx([1.0, 2.0])
    busy = residual.fork()
    busy.reserve([link], [RateSpan(0.0, 4.0, 50 * MBIT)])
    # At 50 Mbit/s, the second update is there 2 s after the first; or both take twice as long.
    expected = [1.0, 3.0] if link == "h2>s1" else [2.0, 4.0]
    again = ends(found.gathered(0, 6, "a1", busy, 4.0))[:2]
    assert again == pytest.approx(expected)
    assert ends(found.gathered(0, 6, "a1", residual, 2.0)) == pytest.approx([1.0, 2.0])


def test_links_of_several_messages_are_those_that_no_one_host_or_update_has() -> None:
    network = star(6, others={"a1": 100, "a2": 100})
    alike = AlikeHosts(network, ["h1", "h2"], SERVER, HOSTS)
    two = [push(1), push(2)]
    assert shared_links(network, two, alike, []) == {f"s1>{SERVER}"}
    twice = [*two, push(3, worker="h2")]
    assert shared_links(network, twice, alike, []) == {f"s1>{SERVER}", "h2>s1"}
    # A leaf sends over the server's link alone, and members to it over their own.
    assert shared_links(network, two, alike, ["s1"]) == {f"s1>{SERVER}"}
