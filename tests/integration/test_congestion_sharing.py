# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs and TCP share a link, and many workers do not collapse: short, slow versions of benchmarks.

Rates are low, so that the links are the limit on a machine that does much else.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.fairness import rates
from benchmarks.incast import one_job
from benchmarks.shared_link import Load, measure
from bmv2_topos import state

pytestmark = [
    pytest.mark.alone,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]


@pytest.fixture(autouse=True)
def _own_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)


def test_two_jobs_and_tcp_share_a_link() -> None:
    load = Load(jobs=2, flows=1, rate_bits_per_s=20_000_000, elements=8_192)
    reports = measure(load, 4.0)
    fair_bits_per_s = load.rate_bits_per_s / 3
    shares = {name: rate / fair_bits_per_s for name, rate in rates(reports).items()}
    # The benchmark's aim is 0.8; a machine that does much else has its own idea of fairness.
    assert min(shares.values()) > 0.5, shares
    for job in ("job1", "job2"):
        assert sum(report["statistics"]["value_packets_marked"] for report in reports[job]) > 0


def test_workers_with_few_slots_do_not_collapse() -> None:
    measured = one_job(8, 1_000_000, 3.0)
    assert measured["goodput"] > 0.7, measured
    assert measured["retransmitted"] < 0.1, measured
