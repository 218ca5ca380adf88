# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmarks of shared links run: jobs beside TCP, and many workers behind a short queue.

The benchmarks measure fairness and speed; unit and packet tests cover the rules behind them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.contention.fairness import rates
from benchmarks.contention.incast import one_job
from benchmarks.contention.shared_link import Load, measure
from switchfold.bmv2_topos import state

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]


SECONDS = 6.0
"""Longer than a busy machine lets a process stand still."""


@pytest.fixture(autouse=True)
def _own_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)


def test_two_jobs_and_tcp_share_a_link() -> None:
    load = Load(jobs=2, flows=1, rate_bits_per_s=20_000_000, elements=8_192)
    assert min(rates(measure(load, SECONDS)).values()) > 0


def test_workers_with_few_slots_go_on_behind_a_short_queue() -> None:
    assert one_job(8, 1_000_000, SECONDS)["goodput"] > 0
