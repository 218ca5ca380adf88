# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What plans of one batch share: gathered members, and lengths of the first group to try."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from switchfold.controller.scheduler.planning.alike_hosts import AlikeHosts
from switchfold.controller.scheduler.network import ResidualNetwork, TransferNetwork
from switchfold.controller.scheduler.planning.gathering import Gatherings, GatherLeg
from switchfold.controller.scheduler.residual_rate import RateSpan
from transfer_cases import MBIT, SERVER, push, star

SIX = [push(n) for n in range(1, 7)]
HOSTS = ["a1", "a2"]
NETWORK = star(6, others={"a1": 100, "a2": 100})


def gatherings(network: TransferNetwork, most_members: int = 32) -> Gatherings:
    alike = AlikeHosts(network, [each.worker for each in SIX], SERVER, HOSTS)
    return Gatherings(SIX, 0.0, alike, most_members)


def ends(legs: Sequence[GatherLeg]) -> list[float]:
    return [leg.end_s for leg in legs]


def test_members_are_those_that_are_there_in_time() -> None:
    found = gatherings(NETWORK)
    residual = ResidualNetwork(NETWORK)
    assert ends(found.legs(2, "a1", residual, 2.5)) == pytest.approx([1.0, 2.0])
    assert ends(found.legs(2, "a1", residual, 3.0)) == pytest.approx([1.0, 2.0, 3.0])
    assert ends(found.legs(2, "a1", residual, 1.0)) == pytest.approx([1.0])
    assert ends(found.legs(2, "a1", residual, 99.0)) == pytest.approx([1.0, 2.0, 3.0, 4.0])
    assert ends(gatherings(NETWORK, most_members=2).legs(0, "a1", residual, 99.0)) == [1.0, 2.0]


def test_host_that_is_alike_gets_legs_over_its_own_links() -> None:
    found = gatherings(NETWORK)
    residual = ResidualNetwork(NETWORK)
    first = found.legs(0, "a1", residual, 2.0)
    second = found.legs(0, "a2", residual, 2.0)
    assert [leg.links for leg in first] == [("h1>s1", "s1>a1"), ("h2>s1", "s1>a1")]
    assert [leg.links for leg in second] == [("h1>s1", "s1>a2"), ("h2>s1", "s1>a2")]
    assert ends(second) == ends(first)


@pytest.mark.parametrize("link", ["h2>s1", "s1>a1"])
def test_legs_are_planned_again_where_a_link_has_other_reservations(link: str) -> None:
    found = gatherings(NETWORK)
    residual = ResidualNetwork(NETWORK)
    assert ends(found.legs(0, "a1", residual, 2.0)) == pytest.approx([1.0, 2.0])
    busy = residual.fork()
    busy.reserve([link], [RateSpan(0.0, 4.0, 50 * MBIT)])
    # At 50 Mbit/s, the second update is there 2 s after the first; or both take twice as long.
    expected = [1.0, 3.0] if link == "h2>s1" else [2.0, 4.0]
    again = ends(found.legs(0, "a1", busy, 4.0))[:2]
    assert again == pytest.approx(expected)
    assert ends(found.legs(0, "a1", residual, 2.0)) == pytest.approx([1.0, 2.0])
