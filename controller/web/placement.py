# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Where switches and hosts stand in the picture of a fabric."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ..fabric.fabric import Fabric

LEAST_WIDTH: Final = 1.5
"""Of a switch with its hosts, where a host is 1 wide."""
JoinedSwitches = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class PagePlace:
    """A point of the picture."""

    x: float
    """From 0 at the left; a host is 1 wide."""
    row: int
    """0: hosts; 1: switches with hosts; then those that are as many links away from these."""


def place_switches(fabric: Fabric, num_stations: Mapping[str, int]) -> dict[str, PagePlace]:
    """Return the place of each switch, in the middle of its hosts.

    `num_stations`: hosts by switch. A switch without any that is joined to one with some stands
    above, in the order of the switches below it.
    """
    neighbours = _neighbours(fabric)
    rows = _rows(fabric.switches, neighbours, num_stations)
    by_row: dict[int, list[str]] = defaultdict(list)
    for name, row in rows.items():
        by_row[row].append(name)
    places: dict[str, PagePlace] = {}
    left = 0.0
    for name in _along_links(by_row[1], neighbours):
        width = max(num_stations.get(name, 0), LEAST_WIDTH)
        places[name] = PagePlace(left + width / 2, 1)
        left += width
    for row in sorted(by_row)[1:]:
        below = {name: _mean(places, neighbours[name]) for name in by_row[row]}
        names = sorted(below, key=lambda name: below[name])
        places |= {
            name: PagePlace((i + 0.5) * left / len(names), row) for i, name in enumerate(names)
        }
    return places


def place_stations(switch: PagePlace, number: int) -> list[PagePlace]:
    """Return the places of a switch's hosts, side by side below it."""
    return [PagePlace(switch.x + i + 0.5 - number / 2, 0) for i in range(number)]


def _neighbours(fabric: Fabric) -> JoinedSwitches:
    """Return by switch those that it is joined to, whether links are up or not."""
    found: dict[str, list[str]] = {name: [] for name in fabric.switches}
    for link in fabric.links:
        found[link.a].append(link.b)
        found[link.b].append(link.a)
    return found


def _rows(
    switches: Iterable[str], neighbours: JoinedSwitches, num_stations: Mapping[str, int]
) -> dict[str, int]:
    rows = {name: 1 for name in switches if num_stations.get(name)}
    reached = list(rows)
    for name in reached:
        for other in neighbours[name]:
            if other not in rows:
                rows[other] = rows[name] + 1
                reached.append(other)
    return rows | {name: 1 for name in switches if name not in rows}


def _along_links(names: Sequence[str], neighbours: JoinedSwitches) -> list[str]:
    """Return switches of one row so that joined ones stand side by side, where they form chains.

    Each chain begins at a switch with the fewest neighbours in the row.
    """
    row = frozenset(names)
    inside = {name: [other for other in neighbours[name] if other in row] for name in names}
    order: dict[str, None] = {}
    for first in sorted(names, key=lambda name: len(inside[name])):
        waiting = [first]
        while waiting:
            name = waiting.pop()
            if name not in order:
                order[name] = None
                waiting += reversed(inside[name])
    return list(order)


def _mean(places: Mapping[str, PagePlace], names: Iterable[str]) -> float:
    """Return the mean x of those that have a place already."""
    below = [places[name].x for name in names if name in places]
    return sum(below) / len(below) if below else 0.0
