# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark of planned sums: what it refuses, what it makes again, and its figures."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.scheduler import allreduces
from benchmarks.scheduler.allreduces import (
    Compared,
    SumError,
    SumRound,
    aims,
    line,
    series,
    take_turns,
    topology_of,
    verify,
)


def sum_of(time_s: float, busy_share: float = 0.25) -> SumRound:
    return SumRound(time_s=time_s, busy_share=busy_share, worker_cpu_s=0.1, switch_cpu_s=0.02)


def compared(links: str, num_members: int, planned_s: float, ring_s: float) -> Compared:
    return Compared(
        links=links,
        num_members=num_members,
        planned=series("planned", [sum_of(planned_s)], 0.5),
        ring=series("ring", [sum_of(ring_s)], 0.8),
        num_ungranted=1,
    )


def numbered(times_s: list[float]) -> Callable[[], SumRound]:
    return lambda: sum_of(times_s.pop(0))


def test_wrong_sums_get_no_figure() -> None:
    total = np.arange(8, dtype=np.float32)
    verify([total, total.copy()], total)
    with pytest.raises(SumError, match=r"members \[1\] of 2 have a wrong sum"):
        verify([total, total + np.float32(1)], total)


def test_sums_take_turns_after_a_warm_up() -> None:
    planned, ring, ungranted = take_turns(
        numbered([9.0, 1.0, 2.0]), numbered([8.0, 3.0, 4.0]), lambda: 5, 2
    )
    assert [each.time_s for each in planned] == [1.0, 2.0]
    assert [each.time_s for each in ring] == [3.0, 4.0]
    assert ungranted == 0, "earlier ones do not count"


def test_sums_without_a_grant_are_made_again_and_counted() -> None:
    counts = iter([0, 2, 2, 2])
    planned, ring, ungranted = take_turns(
        numbered([9.0, 1.0, 2.0]), numbered([8.0, 3.0]), lambda: next(counts), 1
    )
    assert ([each.time_s for each in planned], len(ring), ungranted) == ([2.0], 1, 1)
    calls = iter(range(100))
    with pytest.raises(SumError, match="grants no sums"):
        take_turns(lambda: sum_of(1.0), lambda: sum_of(1.0), lambda: next(calls), 1)


def test_only_the_first_link_is_slow() -> None:
    def rates(links: str) -> list[int | None]:
        topology = topology_of(links, 3, 20_000_000, 0.25)
        return [link.rate_bits_per_s for link in topology.links]

    assert rates("equal") == [20_000_000] * 3
    assert rates("slow") == [5_000_000, 20_000_000, 20_000_000]


def test_lines_have_a_cell_for_each_heading_and_say_what_limits() -> None:
    found = compared("equal", 4, 1.0, 2.0)
    assert line(found) == (
        "| 4 | 1.00 (1.00 .. 1.00) | 2.00 (2.00 .. 2.00) | 0.50 (0.50 .. 0.50) | 0.50, 0.80"
        " | 50, 40 | 25 | 1 |"
    )
    assert line(found).count("|") == len(allreduces.HEADINGS) + 1
    bound = series("planned", [sum_of(1.0, busy_share=0.95)], 0.5)
    shown = line(Compared(**{**vars(found), "planned": bound}))
    assert "95, which is the limit" in shown
    assert found.as_dict()["ratios"] == [0.5]


def test_aims_are_judged_by_medians() -> None:
    rows = [compared("equal", 2, 1.1, 1.0), compared("equal", 3, 1.25, 1.0)]
    rows += [compared("slow", 2, 1.1, 1.0), compared("slow", 3, 0.8, 1.0)]
    assert aims(rows) == [
        "aim: on equal links, within 20 % of the ring: missed with 3 members (ratios 1.10 .. 1.25)",
        "aim: with one slow link and 3 members or more, faster than the ring: met"
        " (ratios 0.80 .. 0.80)",
    ]
    assert aims(rows[2:3]) == [], "with two members, neither can be faster"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--members", "1"], "2 to 16 members"),
        (["--links", "fast"], "fast"),
        (["--slow-share", "0"], "0..1"),
        (["--rounds", "0"], "above 0"),
    ],
)
def test_wrong_options_are_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        allreduces.parse_options(words)
    assert refused.value.code == 2
    assert message in capsys.readouterr().err
