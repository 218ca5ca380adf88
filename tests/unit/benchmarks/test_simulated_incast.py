# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Eight workers that send to each other's hosts over short queues, in simulated time."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.allreduce.simulated_incast import CHUNKS, flow_share, job_share, row
from benchmarks.allreduce.simulated_loss import SimulatedRun, compile_simulation

WORKERS = 8
INCAST = {"workers": WORKERS, "transposed": 1, "chunks": CHUNKS, "queue": 64}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("simulation") / "loss_simulation"
    compile_simulation(path)
    return path


@pytest.mark.parametrize("marks", [{}, {"mark": 20}], ids=["drops", "marks"])
def test_link_stays_full_beside_a_flow_that_keeps_its_part(
    program: Path, marks: dict[str, float]
) -> None:
    """Less than a tenth is dropped, without anything that caps the job's rate."""
    run = SimulatedRun(program, **INCAST, **marks, flows=1, seconds=10)
    assert run.times
    assert job_share(run, WORKERS) + flow_share(run) >= 0.8
    assert flow_share(run) >= 0.1
    assert run.dropped < 0.1 * run.packets[:2].sum()


def test_flow_alone_fills_the_link_of_a_job_that_has_little_to_send(program: Path) -> None:
    """So its share beside a job is the job's doing."""
    run = SimulatedRun(program, **INCAST, window=1, flows=1, seconds=5)
    assert flow_share(run) > 0.85


def test_flow_gives_way_to_marks(program: Path) -> None:
    """Two of them mark, and drop nothing."""
    run = SimulatedRun(program, **INCAST, mark=20, window=1, flows=2, seconds=5)
    (_, first), (_, second) = run.flows
    assert run.dropped == 0
    assert first > second / 2
    assert second > first / 2


def test_row_says_what_a_window_costs(program: Path) -> None:
    options = Namespace(workers=WORKERS, flows=0, seconds=2.0, dynamic=False, loss=0.0)
    few, many = (row(program, options, "21", window).split("|") for window in (16, 256))
    assert [cell.strip() for cell in few[1:5]] == ["21", "-", "-", "16"]
    assert float(few[6]) < float(many[6])
    assert int(few[8]) == 0 < int(many[8])


def mean_s(program: Path, **settings: float) -> float:
    run = SimulatedRun(program, **{**INCAST, **settings}, seconds=5)
    return float(np.mean(run.times))


@pytest.mark.parametrize(("queue", "gain"), [(21, 1.3), (10, 1.15)])
def test_dynamic_incast_gains_where_short_queues_mark_nothing(
    program: Path, queue: float, gain: float
) -> None:
    assert gain * mean_s(program, queue=queue, incast=1) < mean_s(program, queue=queue)


@pytest.mark.parametrize(
    "links",
    [
        {"queue": 64},
        {"queue": 64, "mark": 12},
        {"queue": 1000, "loss": 0.01},
        {"queue": 1000, "loss": 0.05},
    ],
    ids=["long-queue", "marks", "loss-1", "loss-5"],
)
def test_dynamic_incast_costs_nothing_elsewhere(program: Path, links: dict[str, float]) -> None:
    """Links that lose packets at random lose as many of few as of many."""
    assert mean_s(program, **links, incast=1) < 1.03 * mean_s(program, **links)
