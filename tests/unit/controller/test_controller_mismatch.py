# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that wait for each other because they submitted different tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from controller_fixtures import run, running_controller
from fake_member import close_all, start_members
from switchfold.controller.jobs.stalls import SETTLED_S, WINDOW_S, Stalls, mismatch
from switchfold.hostlib.control.session_api import session_pb2 as pb

GENERATION = 7
P10 = pb.Tolerance(loss=0.1, worker_floor=0.8)
P20 = pb.Tolerance(loss=0.2, worker_floor=0.6)


def tensor(number: int, **fields: Any) -> pb.Submitted:
    defaults = {"is_awaited": True, "num_elements": 64, "dtype": "int32", "operation": "int32 sum"}
    return pb.Submitted(number=number, **{**defaults, **fields})


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (
            {"tolerance": P10},
            {"tolerance": P20},
            "tolerance loss 0.1 with worker_floor 0.8 on workers 0, 2,"
            " loss 0.2 with worker_floor 0.6 on worker 1",
        ),
        ({}, {"tolerance": P20}, "tolerance of the job on workers 0, 2, loss 0.2"),
        ({"num_elements": 9}, {}, "elements 9 on workers 0, 2, 64 on worker 1"),
        ({}, {"dtype": "float32"}, "dtype int32 on workers 0, 2, float32 on worker 1"),
        ({}, {"label": "w"}, "label '' on workers 0, 2, 'w' on worker 1"),
        (
            {"num_elements": 9, "operation": "exact mean"},
            {},
            "elements 9 on workers 0, 2, 64 on worker 1;"
            " operation exact mean on workers 0, 2, int32 sum on worker 1",
        ),
    ],
)
def test_first_different_tensor_is_named_with_all_values(
    first: dict[str, Any], second: dict[str, Any], text: str
) -> None:
    same, later = tensor(3), tensor(5, num_elements=1)
    mine, other = tensor(4, **first), tensor(4, **second)
    told = mismatch({0: [same, mine, later], 2: [mine], 1: [same, other]})
    assert f"tensor 5 has {text}" in told


def test_tensors_that_nobody_waits_for_are_not_compared() -> None:
    """They have ended, so they cannot be the reason that others do not."""
    ended = [tensor(4, is_awaited=False, num_elements=size) for size in (63, 64)]
    assert not mismatch({0: [ended[0], tensor(5)], 1: [ended[1], tensor(5)]})
    assert mismatch({0: [ended[0], tensor(5)], 1: [tensor(4)]})
    assert not mismatch({0: [tensor(4), tensor(5)], 1: [tensor(4)], 2: []})
    assert not mismatch({})


def test_text_is_short_whatever_the_number_of_workers() -> None:
    reports = {worker: [tensor(0, num_elements=1 + worker // 100)] for worker in range(1000)}
    told = mismatch(reports)
    assert "15 and 84 more, 2 on workers 100, " in told
    assert "6 more on others" in told
    assert len(told) < 600


def test_those_that_have_not_reported_are_awaited_for_a_while() -> None:
    stalls = Stalls()
    workers = {0, 1, 2}
    stalls.report(0, GENERATION, 1.0, submitted=[tensor(0)])
    stalls.report(1, GENERATION, 1.5, submitted=[tensor(0, num_elements=1)])
    assert not stalls.mismatch(workers, GENERATION, 1.5)
    assert "on worker 0, 1 on worker 1" in stalls.mismatch(workers, GENERATION, 1.5 + SETTLED_S)
    assert not stalls.mismatch(workers, GENERATION + 1, 1.5 + SETTLED_S)
    assert not stalls.mismatch(workers, GENERATION, 1.6 + WINDOW_S)
    assert not stalls.mismatch({1, 2}, GENERATION, 1.5 + SETTLED_S), "0 is not in the job any more"
    stalls.report(2, GENERATION, 1.6, submitted=[tensor(0)])
    assert "64 on workers 0, 2, 1 on worker 1" in stalls.mismatch(workers, GENERATION, 1.6)


@pytest.fixture
def reports_stay_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports count together, however long this process is held up between two of them."""
    for name in ("WINDOW_S", "STILL_S"):
        monkeypatch.setattr(f"switchfold.controller.jobs.stalls.{name}", 60.0)


@pytest.mark.usefixtures("reports_stay_fresh")
def test_job_of_workers_that_disagree_ends_with_their_values(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            members = await start_members(server.address, 3)
            for member, tolerance in zip(members, (P10, P20, P10), strict=True):
                generation = member.view.generation
                submitted = [tensor(0, tolerance=tolerance)]
                await member.send(stalled=pb.Stalled(generation=generation, submitted=submitted))
            for member in members:
                await member.until(lambda member=member: member.ended)
                assert member.has_mismatch
                assert not member.proposals, "no view would help"
                assert "0.1 with worker_floor 0.8 on workers 0, 2, loss 0.2" in member.ended
            await close_all(*members)

    run(scenario())


@pytest.mark.usefixtures("reports_stay_fresh")
def test_workers_that_agree_get_another_view(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            members = await start_members(server.address, 2)
            for member in members:
                generation = member.view.generation
                submitted = [tensor(0, tolerance=P10)]
                await member.send(stalled=pb.Stalled(generation=generation, submitted=submitted))
            for member in members:
                await member.until(lambda member=member: member.commits)
                assert [p.reason for p in member.proposals] == ["no worker has progress"]
            await close_all(*members)

    run(scenario())
