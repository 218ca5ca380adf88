# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Places of switches and hosts in the picture: none covers another, links go from row to row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

from switchfold.controller.config import LinkConfig, SwitchConfig
from switchfold.controller.fabric.fabric import Fabric
from switchfold.controller.web.placement import (
    LEAST_WIDTH,
    PagePlace,
    place_stations,
    place_switches,
)


def fabric_of(names: Sequence[str], joined: Sequence[tuple[str, str]]) -> Fabric:
    """Return switches with a link for each pair."""
    switches = {name: SwitchConfig(name=name, address="127.0.0.1:1") for name in names}
    links = tuple(
        LinkConfig(a=a, a_port=2 * i + 1, b=b, b_port=2 * i + 2) for i, (a, b) in enumerate(joined)
    )
    return Fabric(switches=switches, links=links)


def test_leaves_have_their_hosts_below_and_the_spines_above() -> None:
    leaves, spines = ["l1", "l2", "l3"], ["s1", "s2"]
    fabric = fabric_of(spines + leaves, [(leaf, spine) for leaf in leaves for spine in spines])
    places = place_switches(fabric, {"l1": 2, "l2": 4, "l3": 2})
    assert {name: place.row for name, place in places.items()} == {
        "l1": 1,
        "l2": 1,
        "l3": 1,
        "s1": 2,
        "s2": 2,
    }
    assert [places[leaf].x for leaf in leaves] == [1, 4, 7]
    assert [places[spine].x for spine in spines] == [2, 6]
    assert place_stations(places["l2"], 4) == [PagePlace(2.5, 0), PagePlace(3.5, 0), PagePlace(4.5, 0), PagePlace(5.5, 0)]  # fmt: skip # noqa: E501


def test_chain_stands_in_its_order() -> None:
    names = ["s3", "s1", "s4", "s2"]
    fabric = fabric_of(names, [("s1", "s2"), ("s2", "s3"), ("s3", "s4")])
    places = place_switches(fabric, dict.fromkeys(names, 1))
    order = sorted(places, key=lambda name: places[name].x)
    assert order in (["s1", "s2", "s3", "s4"], ["s4", "s3", "s2", "s1"])


def test_switches_that_nothing_joins_have_places_too() -> None:
    places = place_switches(fabric_of(["s1", "s2", "s3"], []), {"s2": 3})
    assert {place.row for place in places.values()} == {1}
    assert len({place.x for place in places.values()}) == 3


@pytest.mark.parametrize("num_pods", [2, 4])
def test_no_place_is_taken_twice_in_a_fat_tree(num_pods: int) -> None:
    edges = [f"e{i}" for i in range(2 * num_pods)]
    middle = [f"a{i}" for i in range(2 * num_pods)]
    core = [f"c{i}" for i in range(4)]
    joined = [(edge, middle[i ^ k]) for i, edge in enumerate(edges) for k in (0, 1)]
    joined += [(name, core[2 * (i % 2) + k]) for i, name in enumerate(middle) for k in (0, 1)]
    places = place_switches(fabric_of(core + middle + edges, joined), dict.fromkeys(edges, 2))
    assert {places[name].row for name in core} == {3}
    assert len({(place.x, place.row) for place in places.values()}) == len(places)
    at_edges = sorted(places[name].x for name in edges)
    assert all(right - left == 2 for left, right in pairwise(at_edges))


def test_switches_with_a_host_or_none_do_not_touch() -> None:
    """In the picture, a switch is wider than a host."""
    places = place_switches(fabric_of(["s1", "s2", "s3"], []), {"s1": 1})
    at = sorted(place.x for place in places.values())
    assert all(right - left >= LEAST_WIDTH for left, right in pairwise(at))
