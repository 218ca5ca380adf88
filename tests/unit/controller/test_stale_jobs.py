# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs whose workers may do without results: what is stored, and what workers are told."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from controller_fixtures import fake_switch, join_all, make_config, run, serving
from switchfold.controller.__main__ import run as run_command
from switchfold.controller.database.database import Database
from switchfold.controller.database.view_record import dump_view, load_view
from switchfold.controller.jobs.job import View, ViewState
from switchfold.controller.jobs.job_request import JobRequest
from switchfold.hostlib.control.session_api import session_pb2 as pb
from switchfold.hostlib.loss_tolerance import LossTolerance
from switchfold.hostlib.straggler import StragglerPolicy

POLICY = StragglerPolicy(tolerance=LossTolerance(loss=0, worker_floor=1.0, stale=0.05))


def test_job_and_its_view_are_stored_with_it(tmp_path: Path) -> None:
    database = Database(tmp_path / "state.sqlite3")
    request = JobRequest(name="a", num_workers=2, straggler=POLICY)
    job = database.create_job(request)
    assert job.straggler == POLICY
    assert "may do without 0.05 of their results" in str(request)
    database.close()
    view = View(
        generation=1,
        job_number=1,
        members=(),
        trees=(),
        straggler=POLICY,
        state=ViewState.INSTALLED,
    )
    assert load_view(dump_view(view)).straggler == POLICY
    tolerant = StragglerPolicy(tolerance=LossTolerance(loss=0.1))
    text = dump_view(dataclasses.replace(view, straggler=tolerant))
    assert "stale" not in json.loads(text)["straggler"]["tolerance"], "an earlier release reads it"
    assert load_view(text).straggler == tolerant


@pytest.mark.parametrize("is_on_host", [False, True])
def test_workers_are_told_whether_their_switch_is_a_hosts(tmp_path: Path, is_on_host: bool) -> None:
    async def scenario() -> None:
        async with fake_switch() as fake:
            made = make_config(tmp_path, fake)
            (switch,) = made.switches
            on_host = switch.hosts[0].name if is_on_host else ""
            switch = dataclasses.replace(switch, on_host=on_host)
            async with serving(dataclasses.replace(made, switches=(switch,))) as server:
                tolerance = pb.Tolerance(loss=0, worker_floor=1, stale=0.05)
                straggler = pb.Straggler(tolerance=tolerance)
                workers = await join_all(server.address, 2, straggler=straggler)
                views = [(await worker.join_reply()).view for worker in workers]
                assert [view.is_on_host for view in views] == [is_on_host] * 2
                assert {view.tolerance.stale for view in views} == {0.05}
                for worker in workers:
                    await worker.close()

    run(scenario())


def test_release_before_is_not_handed_such_jobs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "state.sqlite3"
    database = Database(place)
    job = database.create_job(JobRequest(name="old values", num_workers=1, straggler=POLICY))
    database.close()
    words = ["controller", "migrate", "--database", str(place), "--to", "8"]
    assert run_command(words) == 1
    assert "no jobs with stale results, and 1 are live, the first 'old values'" in (
        capsys.readouterr().err
    )
    database = Database(place)
    database.end_job(job.job_number, "for the downgrade")
    database.close()
    assert run_command(words) == 0
