# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Twin of outcome.p4: the outcomes of packets, counted per tree and for the whole switch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from finsy import (
    Action,
    Match,
    P4CounterData,
    P4CounterEntry,
    P4DirectCounterEntry,
    P4TableEntry,
    Switch,
)

from ...hostlib.slots.wire import Outcome
from ..jobs.job import Placement, TreeId
from ..switches.switch_read import read_entities

TABLES = ("outcome",)
TREE_OUTCOMES = tuple(
    outcome for outcome in Outcome if outcome not in (Outcome.NONE, Outcome.FOREIGN_JOB)
)
"""Outcomes that a packet of a known tree can have."""


class OrdinaryOutcome(IntEnum):
    """Outcomes of frames that are no Switchfold packets; the numbers are those of constants.p4."""

    FORWARDED = 0
    NO_ROUTE = 1
    TTL_EXPIRED = 2
    BAD_IPV4 = 3
    TO_CPU = 4
    FROM_CPU = 5
    TRUNCATED = 6
    SPOOFED = 7
    """A worker could take the frame for a result, which only a switch sends."""


@dataclass(frozen=True)
class Count:
    """Packets and bytes of one counter."""

    packets: int
    num_bytes: int


def add_counts(total: dict[Outcome, Count], more: Mapping[Outcome, Count]) -> None:
    """Add counters to `total`."""
    for outcome, count in more.items():
        before = total.get(outcome, Count(0, 0))
        total[outcome] = Count(before.packets + count.packets, before.num_bytes + count.num_bytes)


def table_entries(placement: Placement) -> list[P4TableEntry]:
    """Return the entries whose direct counters count a tree's packets by outcome."""
    return [
        P4TableEntry(
            "outcome",
            match=Match(job_id=placement.tree.tree_id, outcome=int(outcome)),
            action=Action("count_outcome"),
        )
        for outcome in TREE_OUTCOMES
    ]


async def read_tree_counts(switch: Switch, tree_id: TreeId) -> dict[Outcome, Count]:
    """Return a tree's counters by outcome, zeros included."""
    table = switch.p4info.tables["outcome"]
    assert table.direct_counter is not None
    requests = [
        P4DirectCounterEntry(
            table.direct_counter.alias,
            table_entry=P4TableEntry("outcome", match=Match(job_id=tree_id, outcome=int(outcome))),
        )
        for outcome in TREE_OUTCOMES
    ]
    counts = {outcome: Count(0, 0) for outcome in TREE_OUTCOMES}
    for entry in await read_entities(switch, requests):
        assert entry.table_entry is not None
        outcome = Outcome(int(entry.table_entry["outcome"]))
        counts[outcome] = Count(entry.packet_count, entry.byte_count)
    return counts


async def read_switch_counts(switch: Switch) -> dict[Outcome, Count]:
    """Return the counters of all Switchfold packets in the switch, by outcome."""
    counts = await _read_counter(switch, "outcomes")
    return {outcome: counts.get(int(outcome), Count(0, 0)) for outcome in Outcome}


async def read_ordinary_counts(switch: Switch) -> dict[OrdinaryOutcome, Count]:
    """Return the counters of all other frames in the switch, by outcome."""
    counts = await _read_counter(switch, "ordinary_outcomes")
    return {outcome: counts.get(int(outcome), Count(0, 0)) for outcome in OrdinaryOutcome}


async def read_port_counts(switch: Switch, ports: list[int]) -> dict[int, tuple[Count, Count]]:
    """Return (in, out) counters of every frame by port."""
    received: dict[int, Count] = {}
    sent: dict[int, Count] = {}
    for counter, counts in (("port_in", received), ("port_out", sent)):
        requests = [P4CounterEntry(counter, index=port) for port in ports]
        for entry in await read_entities(switch, requests):
            counts[entry.index or 0] = _count(entry.data)
    zero = Count(0, 0)
    return {port: (received.get(port, zero), sent.get(port, zero)) for port in ports}


async def _read_counter(switch: Switch, counter: str) -> dict[int, Count]:
    entries = await read_entities(switch, [P4CounterEntry(counter)])
    return {entry.index or 0: _count(entry.data) for entry in entries}


def _count(data: P4CounterData | None) -> Count:
    if data is None:
        return Count(0, 0)
    return Count(data.packet_count, data.byte_count)
