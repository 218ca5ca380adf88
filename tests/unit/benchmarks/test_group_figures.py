# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Live groups: limits, ratios, processor time and compression are those of the rounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scheduler.group_figures import (
    ROLES,
    GroupRound,
    LinkLimits,
    RoundLog,
    comparison,
    compression_lines,
    compressions,
    processor,
    ratios,
    withdrawals,
)

LIMITS = LinkLimits(num_values=35_200, rate_bits_per_s=10_000_000)
"""100 packets of the switch, and 98 TCP segments."""
SUM_BYTES, UPDATE_BYTES = 100 * 1494, 98 * 1514


def pushed(kind: str, num_updates: int, *groups: int, **more: Any) -> GroupRound:
    fields: dict[str, Any] = {
        "last_s": 1.0,
        "mean_s": 0.5,
        "ingress_bytes": 0,
        "processor_s": dict.fromkeys(ROLES, 0.1),
    }
    return GroupRound(kind=kind, num_updates=num_updates, groups=groups, **(fields | more))


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_limits_are_those_of_full_packets_of_each_message() -> None:
    assert LIMITS.bytes_of(pushed("switch", 4, 4)) == SUM_BYTES
    assert LIMITS.bytes_of(pushed("switch", 4, 2)) == SUM_BYTES + 2 * UPDATE_BYTES
    assert LIMITS.bytes_of(pushed("hosts", 8, 3, 2)) == 5 * UPDATE_BYTES
    assert LIMITS.bytes_of(pushed("direct", 3)) == 3 * UPDATE_BYTES
    assert LIMITS.seconds_of(pushed("switch", 4, 4)) == pytest.approx(0.11952)
    assert pushed("hosts", 8, 3, 2).num_messages == 5


def test_a_line_of_the_comparison_has_bytes_times_and_the_share_of_the_limit() -> None:
    rounds = [pushed("switch", 4, 4, ingress_bytes=each, last_s=0.239) for each in (1e6, 2e6, 4e6)]
    (line,) = comparison({"switch": rounds}, LIMITS)
    assert cells(line) == [
        "4",
        "added by the switch",
        "1",
        "2.00 (1.00 .. 4.00)",
        "0.15",
        "0.50",
        "0.24",
        "0.12",
        "50",
    ]


def test_ratios_are_of_rounds_that_took_turns() -> None:
    found = {
        "switch": [pushed("switch", 2, 2, last_s=1.0), pushed("switch", 2, 2, last_s=3.0)],
        "hosts": [pushed("hosts", 2, last_s=2.0), pushed("hosts", 2, last_s=4.0)],
    }
    for rounds in found.values():
        rounds[:] = [
            GroupRound(**{**vars(each), "ingress_bytes": 100 * each.num_messages})
            for each in rounds
        ]
    (line,) = ratios(found)
    assert cells(line) == ["2", "switch / hosts", "0.50", "1.00", "0.62 (0.50 .. 0.75)"]


def test_processor_time_of_aggregators_is_by_gathered_update() -> None:
    used = {"aggregators": 0.03, "server": 0.08}
    rounds = [pushed("hosts", 8, 3, processor_s=used), pushed("hosts", 8, processor_s=used)]
    lines = [cells(line) for line in processor({"hosts": rounds}, LIMITS)]
    assert lines == [
        ["8", "hosts", "aggregators", "10.0", "71.02"],
        ["8", "hosts", "server", "10.0", "71.02"],
    ]


def test_compression_is_by_kind_and_number_of_members() -> None:
    direct = 1.1 * UPDATE_BYTES
    found = compressions(
        [
            pushed("direct", 4, ingress_bytes=4 * direct),
            pushed("hosts", 4, 3, ingress_bytes=2 * direct),
            pushed("hosts", 8, 3, 3, ingress_bytes=4.5 * direct),
            pushed("hosts", 8, 3, 2, ingress_bytes=5 * direct),
            pushed("switch", 3, 3, ingress_bytes=SUM_BYTES),
            pushed("switch", 2, ingress_bytes=2 * direct),
        ],
        LIMITS,
    )
    switch, hosts = found
    assert (switch.kind, switch.num_members) == ("switch", 3)
    assert switch.measured == pytest.approx((3 * direct / SUM_BYTES,))
    assert switch.ideal == pytest.approx(3 * UPDATE_BYTES / SUM_BYTES)
    assert (hosts.kind, hosts.num_members, hosts.ideal) == ("hosts", 3, 3.0)
    assert hosts.measured == pytest.approx((3.0, 3 / 1.25))
    assert [cells(line)[:3] for line in compression_lines(found)] == [
        ["added by the switch", "3", "1"],
        ["added by idle hosts", "3", "2"],
    ]


def test_compression_is_unknown_without_updates_by_themselves() -> None:
    assert compressions([pushed("switch", 3, 3, ingress_bytes=5)], LIMITS) == []


def test_withdrawn_grants_are_counted_by_kind() -> None:
    late = [pushed("hosts", 4, 2, num_withdrawn=each) for each in (2, 0, 1)]
    (told,) = withdrawals({"switch": [pushed("switch", 4, 4)], "hosts": late})
    assert told.startswith("4 workers, added by idle hosts: 3 grants in 2 rounds")


def line(event: str, worker: int, **more: Any) -> str:
    return json.dumps({"event": event, "job": "hosts", "worker": worker, **more})


def test_groups_are_those_of_the_timeline_whose_updates_came_in_sums() -> None:
    log = RoundLog("hosts")
    lines = [
        line("granted", 0),
        line("granted", 1, group=7),
        line("granted", 2, group=7),
        line("granted", 3, group=8),
        line("granted", 4, group=8),
        line("granted", 0, job="other", group=9),
        '{"event":"allreduce_failed","job":"hosts"}',
        *(line("committed", number) for number in range(4)),
    ]
    log.take(lines)
    assert not log.has(5)
    assert [log.is_granted(number) for number in (0, 1, 5)] == [True, True, False]
    lines.append(line("committed", 4))
    log.take(lines)
    assert log.has(5)
    assert log.end_round([False, True, True, True, False]) == (2, 1)
    assert not log.has(1)
    assert not log.is_granted(0)
    lines += [line("granted", 0, group=9), line("granted", 1, group=9), line("committed", 0)]
    log.take(lines)
    assert not log.has(2)
    log.take([*lines, line("withdrawn", 1)])
    assert log.has(2)
    assert log.end_round([True, False]) == (1,)


def test_compression_is_drawn(tmp_path: Path) -> None:
    drawing = pytest.importorskip("benchmarks.scheduler.group_plot", reason="needs matplotlib")
    found = compressions(
        [
            pushed("direct", 2, ingress_bytes=2 * UPDATE_BYTES),
            pushed("switch", 2, 2, ingress_bytes=SUM_BYTES),
        ],
        LIMITS,
    )
    drawing.draw_compression(found, tmp_path / "compression.png")
    assert (tmp_path / "compression.png").read_bytes().startswith(b"\x89PNG")
