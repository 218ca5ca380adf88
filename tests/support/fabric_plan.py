# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A run of the benchmark of the live scheduler: three workers train a perceptron."""

from __future__ import annotations

from typing import Any

from benchmarks.fabric.run_plan import RunPlan
from benchmarks.fabric.tasks import WORKLOADS
from benchmarks.simulator.traces import ComputeSetting, LinkSetting


def run_plan(**changed: Any) -> RunPlan:
    """Return the plan of a run with a server, a replica and the scheduler, or another one."""
    fields: dict[str, Any] = {
        "job": "run-1",
        "job_token": "secret",
        "is_served": True,
        "is_scheduled": True,
        "is_stepwise": False,
        "is_grouping": False,
        "is_switched": False,
        "is_relaying": False,
        "is_chained": True,
        "workload": "perceptron",
        "num_workers": 3,
        "seed": 1,
        "links": LinkSetting.EVEN.value,
        "computing": ComputeSetting.EVEN.value,
        "rate_bits_per_s": 10_000_000,
        "num_values": WORKLOADS["perceptron"].num_values,
        "learning_rate": 0.05,
        "target": 0.6,
        "limit_s": 10.0,
        "most_iterations": 5,
        "data": "",
        "folder": "/nowhere",
        "controller": "unix:/nowhere/controller.sock",
        "addresses": tuple(f"10.0.0.{number}" for number in range(1, 6)),
        "peer_port": 29_901,
        "server_credentials": "",
    }
    return RunPlan(**(fields | changed))
