# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from round_trip_timer import RoundTripTimer
from switchfold.hostlib.control.view import Endpoint, JobView
from switchfold.hostlib.errors import ConfigurationError
from switchfold.hostlib.options import SessionOptions


def timer() -> RoundTripTimer:
    return RoundTripTimer(initial_s=0.1, minimum_s=0.02, maximum_s=1.0)


def test_timeout_before_and_after_first_sample() -> None:
    measured = timer()
    assert measured.timeout_s == 0.1
    assert measured.smoothed_s is None
    measured.add_sample(0.2)
    assert measured.timeout_s == pytest.approx(0.2 + 4 * 0.1)


def test_timeout_converges_to_margin_over_steady_rtt() -> None:
    measured = timer()
    for _ in range(100):
        measured.add_sample(0.01)
    assert measured.timeout_s == pytest.approx(0.03, abs=1e-4)


def test_queueing_is_what_exceeds_the_shortest_rtt() -> None:
    measured = timer()
    assert measured.queueing_s == 0.0
    for sample_s in (0.004, 0.001, *[0.013] * 100):
        measured.add_sample(sample_s)
    assert measured.queueing_s == pytest.approx(0.012, abs=1e-4)


def test_backoff_doubles_up_to_maximum_and_ends_with_a_sample() -> None:
    measured = timer()
    seen: list[float] = []
    for _ in range(6):
        measured.back_off()
        seen.append(measured.timeout_s)
    assert seen == [0.2, 0.4, 0.8, 1.0, 1.0, 1.0]
    measured.add_sample(0.05)
    assert measured.timeout_s == pytest.approx(0.05 + 4 * 0.025)


@pytest.mark.parametrize(
    "changes",
    [
        {"timeout_s": 0.0},
        {"min_rto_s": -1.0},
        {"window": 0},
        {"batch": 0},
        {"coalesce_s": -0.1},
        {"late_wait": "never"},
        {"nonfinite": "ignore"},
    ],
)
def test_options_refuse(changes: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError):
        SessionOptions(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [{"worker_id": 4}, {"num_workers": 33}, {"slot_count": 1}, {"values_per_packet": 64}],
)
def test_job_view_refuses(changes: dict[str, Any]) -> None:
    fields: dict[str, Any] = {
        "job": 1,
        "generation": 1,
        "worker_id": 0,
        "num_workers": 4,
        "slot_count": 8,
        "values_per_packet": 32,
    }
    with pytest.raises(ConfigurationError):
        JobView.on_one_switch(switch=Endpoint(address="10.0.0.254"), **{**fields, **changes})
