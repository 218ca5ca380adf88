# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the transfer scheduler: what it refuses to time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.scheduler.decisions import BatchCase, build, measure, verify
from switchfold.controller.scheduler.residual_rate import RateSpan
from switchfold.controller.scheduler.transfers import TransferGrant

CASE = BatchCase("uneven", 6, is_uneven=True, has_bound=True, aggregators=2)


def test_batches_are_verified_and_counted() -> None:
    row = measure(CASE, repeats=2)
    assert len(row["batch_s"]) == 2
    assert row["workers"] == 6
    assert row["groups_per_batch"] > 0


def test_wrong_decisions_get_no_figure() -> None:
    scheduler, network, tau_max = build(replace(CASE, aggregators=0), seed=1)
    decisions = scheduler.decide(0.0)
    verify(CASE, network, tau_max, decisions)
    with pytest.raises(SystemExit, match="no decision, or two"):
        verify(CASE, network, tau_max, decisions[1:])
    with pytest.raises(SystemExit, match="a delay of"):
        verify(CASE, network, -1, decisions)
    first, *others = decisions
    assert isinstance(first, TransferGrant)
    planned = replace(first.planned, spans=())
    with pytest.raises(SystemExit, match="a plan moves 0"):
        verify(CASE, network, tau_max, [replace(first, planned=planned), *others])
    rate = 10 * network.capacities_bits_per_s[first.planned.links[0]]
    span = RateSpan(0.0, first.request.bits / rate, rate)
    planned = replace(first.planned, spans=(span,))
    with pytest.raises(SystemExit, match="reserved beyond its capacity"):
        verify(CASE, network, tau_max, [replace(first, planned=planned), *others])
