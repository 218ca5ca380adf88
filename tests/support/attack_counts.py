# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What commands show of packets that no lawful host sends, by switch, job and cause."""

from __future__ import annotations

import time
from collections import Counter

from attacker import Attack
from live_testbed import LiveTestbed
from switchfold.controller.tables.outcome import OrdinaryOutcome
from switchfold.hostlib.slots.wire import Outcome

GUARDS = (
    Outcome.BAD_LENGTH,
    Outcome.BAD_CHECKSUM,
    Outcome.BAD_OPERATION,
    Outcome.FOREIGN_JOB,
    Outcome.FOREIGN_WORKER,
    Outcome.BAD_GENERATION,
    Outcome.BAD_SLOT,
    Outcome.BAD_CONTRIBUTION,
    Outcome.MISMATCH,
    Outcome.FOREIGN_RESULT,
)
"""Outcomes that no lawful packet has."""
COUNTED_S = 120.0
"""Within this time all packets of an attack are in the counters that commands show."""
Counts = Counter[tuple[str, str, str]]
"""Packets by switch, job ("" for the switch as a whole) and cause."""


def read_counts(live: LiveTestbed, *jobs: str) -> Counts:
    """Return what the commands show of all causes that no lawful packet has."""
    guards = {outcome.name.lower() for outcome in GUARDS}
    found: Counts = Counter()
    for switch in (switch.name for switch in live.made.topology.switches):
        shown = live.show("switch", "show", switch)
        spoofed = OrdinaryOutcome.SPOOFED.name.lower()
        counts = {name: shown["counts"][name] for name in guards}
        counts[spoofed] = shown["ordinary_counts"][spoofed]
        found.update({(switch, "", name): count["packets"] for name, count in counts.items()})
    for job in jobs:
        for switch, counts in live.show("job", "show", job)["switch_counts"].items():
            found.update(
                {
                    (switch, job, name): count["packets"]
                    for name, count in counts.items()
                    if name in guards
                }
            )
    return +found


def check_counts(live: LiveTestbed, wanted: Counts, *jobs: str) -> Counts:
    """Wait until all that is wanted has been counted, and check that nothing else has."""
    end_s = time.monotonic() + COUNTED_S
    while (found := read_counts(live, *jobs)) != wanted and time.monotonic() < end_s:
        time.sleep(0.02)
    assert found == wanted, f"too many: {found - wanted}; too few: {wanted - found}"
    return found


def expected(leaf: str, attacks: list[Attack]) -> Counts:
    found: Counts = Counter()
    for attack in attacks:
        if attack.cause is not OrdinaryOutcome.FORWARDED:
            cause = attack.cause.name.lower()
            found[leaf, "", cause] += 1
            if attack.job:
                found[leaf, attack.job, cause] += 1
    return found
