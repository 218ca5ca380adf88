# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Bytes of a granted update leave within its spans and at their rates, in made-up time."""

from __future__ import annotations

import random

import pytest

from switchfold.hostlib.control.stations.station import GrantedSpan
from switchfold.hostlib.parameter_server.transfers.granted_rate import DEPTH_S, GrantedRate

MBIT = 1_000_000


def drain(rate: GrantedRate, times: list[float]) -> list[int]:
    """Send all that is allowed at each time; return how much that was."""
    sent: list[int] = []
    for now_s in times:
        allowed = rate.allowed(now_s)
        rate.spend(allowed)
        sent.append(allowed)
    return sent


def test_a_span_allows_its_rate_and_nothing_before_it() -> None:
    rate = GrantedRate([GrantedSpan(0.5, 1.5, 8 * MBIT)], start_s=100.0)
    assert rate.allowed(100.4) == 0
    assert rate.wait_s(100.4) == pytest.approx(0.1)
    times = [100.5 + 0.01 * n for n in range(101)]
    assert sum(drain(rate, times)) == pytest.approx(MBIT, rel=0.001)
    assert rate.wait_s(101.5) == 0.0


def test_nothing_leaves_between_spans_and_the_last_rate_goes_on() -> None:
    spans = [GrantedSpan(0.0, 1.0, 8 * MBIT), GrantedSpan(3.0, 4.0, 16 * MBIT)]
    rate = GrantedRate(spans, start_s=0.0)
    first = drain(rate, [0.01 * n for n in range(100)])
    assert sum(first) == pytest.approx(0.99 * MBIT, rel=0.001)
    assert drain(rate, [1.0, 1.5, 2.99]) == [0, 0, 0]
    assert rate.wait_s(2.0) == pytest.approx(1.0)
    second = drain(rate, [3.0 + 0.01 * n for n in range(101)])
    assert sum(second) == pytest.approx(2 * MBIT, rel=0.001)
    third = drain(rate, [4.0 + 0.01 * n for n in range(1, 101)])
    assert sum(third) == pytest.approx(2 * MBIT, rel=0.001)


def test_spans_that_follow_each_other_lose_nothing() -> None:
    spans = [GrantedSpan(0.0, 0.015, 8 * MBIT), GrantedSpan(0.015, 0.03, 16 * MBIT)]
    rate = GrantedRate(spans, start_s=0.0)
    sent = drain(rate, [0.01, 0.02, 0.03])
    assert sum(sent) == pytest.approx(0.015 * MBIT + 0.015 * 2 * MBIT, abs=3)


@pytest.mark.parametrize("seed", range(20))
def test_a_late_sender_never_sends_more_than_a_depth_too_much(seed: int) -> None:
    """In any stretch of time, at most what the spans give in it and one depth leaves."""
    chance = random.Random(seed)
    spans, at_s = list[GrantedSpan](), 0.0
    for _ in range(4):
        start_s = at_s + chance.choice([0.0, 0.3])
        at_s = start_s + chance.uniform(0.05, 0.5)
        spans.append(GrantedSpan(start_s, at_s, chance.randrange(1, 100) * MBIT))
    rate = GrantedRate(spans, start_s=0.0)
    times = sorted(chance.uniform(0.0, at_s + 0.5) for _ in range(60))
    sent = drain(rate, times)
    most_bytes_per_s = max(span.rate_bits_per_s for span in spans) / 8

    def given(start_s: float, end_s: float) -> float:
        shares = [(span.start_s, span.end_s, span.rate_bits_per_s / 8) for span in spans]
        shares.append((at_s, 1e9, shares[-1][2]))
        return sum(
            max(0.0, min(end_s, end) - max(start_s, start)) * each for start, end, each in shares
        )

    for first in range(60):
        for last in range(first, 60):
            most = given(times[first], times[last]) + most_bytes_per_s * DEPTH_S
            assert sum(sent[first : last + 1]) <= most + 1


def test_what_is_unused_is_lost_but_for_the_depth() -> None:
    rate = GrantedRate([GrantedSpan(0.0, 10.0, 8 * MBIT)], start_s=0.0)
    assert rate.allowed(5.0) == int(rate.depth_bytes) == MBIT // 10
    rate = GrantedRate([GrantedSpan(0.0, 1.0, 8 * MBIT), GrantedSpan(2.0, 3.0, 8 * MBIT)], 0.0)
    assert rate.allowed(2.0) == 0
