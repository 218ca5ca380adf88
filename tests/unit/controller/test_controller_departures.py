# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a departure must not break: a stranger's disconnect, a kill while a job ends."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import sqlite3
from pathlib import Path

from controller_fixtures import (
    HOSTS,
    FakeWorker,
    fake_switch,
    join_all,
    make_config,
    run,
    running_controller,
    serving,
)
from planned_trees import planned_trees
from switchfold.controller.config import SwitchConfig
from switchfold.controller.database.database import Database
from switchfold.controller.jobs.job import Job, JobState, View, ViewState, Worker, WorkerState
from switchfold.controller.jobs.job_request import JobRequest
from switchfold.controller.tables.outcome import TREE_OUTCOMES
from time_bound import until


def test_disconnect_of_a_waiting_worker_leaves_other_jobs_alone(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            link = server.links["s1"]
            async with link._lock:  # pyright: ignore[reportPrivateUsage] - the switch is slow
                workers = await join_all(server.address, 2)
                live = None
                while live is None or not live.has_started:
                    await asyncio.sleep(0)
                    live = server.membership.live_job("train")
                turn = server.membership._turn  # pyright: ignore[reportPrivateUsage]
                assert not turn.locked()
                stranger = await FakeWorker(server.address, 2, 3, job_name="other").join()
                await until(turn.locked)  # its JoinRequest waits for the start of the first job
                assert server.membership.live_job("other") is None
                await stranger.close()
                await until(lambda: not turn.locked())  # the controller has noticed
                assert not live.view
            for worker in workers:
                assert (await worker.join_reply()).view.num_workers == 2
                await worker.close()

    run(scenario())


def _leave_running(path: Path, states: tuple[WorkerState, ...]) -> int:
    """Store a running job as a killed controller leaves it; return its number."""
    database = Database(path)
    job = database.create_job(JobRequest(name="train", num_workers=len(states)))
    workers = tuple(
        Worker(
            worker_id=n,
            address=f"10.0.0.{n + 1}",
            mac=f"02:00:00:00:00:0{n + 1}",
            udp_port=5000 + n,
            port=n + 1,
            switch="s1",
            state=state,
        )
        for n, state in enumerate(states)
    )
    (shape,) = planned_trees([SwitchConfig(name="s1", address="127.0.0.1:1")], [], workers)
    view = View(
        generation=database.allocate_generation(),
        job_number=job.job_number,
        members=workers,
        trees=(dataclasses.replace(shape, tree_id=1, slot_count=64),),
        state=ViewState.INSTALLED,
    )
    database.store_view(view)
    database.start_job(job.job_number, dict.fromkeys(range(len(states)), b"digest"))
    database.close()
    return job.job_number


def _state_after_restart(folder: Path, *states: WorkerState) -> JobState:
    async def scenario() -> JobState:
        async with fake_switch() as fake:
            folder.mkdir()
            config = make_config(folder, fake)
            job_number = _leave_running(config.database, states)
            async with serving(config) as server:
                is_live = server.membership.live_job("train") is not None
                (job,) = server.membership._database.jobs()  # pyright: ignore[reportPrivateUsage]
                assert job.job_number == job_number
                assert is_live == (job.state is JobState.RUNNING)
                return job.state

    return run(scenario())


def test_job_that_all_workers_left_ends_at_a_restart(tmp_path: Path):
    left, joined, lost = WorkerState.LEFT, WorkerState.JOINED, WorkerState.LOST
    assert _state_after_restart(tmp_path / "a", left, left) is JobState.ENDED
    assert _state_after_restart(tmp_path / "b", left, lost) is JobState.ENDED
    assert _state_after_restart(tmp_path / "d", joined, lost) is JobState.RUNNING
    assert _state_after_restart(tmp_path / "c", joined, left) is JobState.RUNNING


def _after_restart(folder: Path, *states: ViewState) -> tuple[list[View], Job]:
    """Return the live views of a job whose views were in these states when a controller died."""

    async def scenario() -> tuple[list[View], Job]:
        async with fake_switch() as fake:
            folder.mkdir()
            config = make_config(folder, fake)
            job_number = _leave_running(config.database, (WorkerState.JOINED,))
            database = Database(config.database)
            (first,) = database.live_views()
            for number, state in enumerate(states):
                tree = dataclasses.replace(
                    first.trees[0],
                    tree_id=1 + number,
                    nodes=(dataclasses.replace(first.trees[0].nodes[0], slot_base=64 * number),),
                )
                generation = first.generation + number
                view = dataclasses.replace(first, generation=generation, trees=(tree,), state=state)
                database.store_view(view)
            database.close()
            async with serving(config) as server:
                stored = server.membership._database  # pyright: ignore[reportPrivateUsage]
                assert sum(fake.tables().values()) == len(HOSTS) + sum(
                    4 + len(TREE_OUTCOMES) for view in stored.live_views()
                )
                return stored.live_views(), stored.job(job_number)

    return run(scenario())


def test_view_that_was_only_planned_is_forgotten_at_a_restart(tmp_path: Path):
    planned, installed, removed = ViewState.PLANNED, ViewState.INSTALLED, ViewState.REMOVED
    views, job = _after_restart(tmp_path / "change", installed, planned)
    assert ([view.state for view in views], job.state) == ([installed], JobState.RUNNING)
    views, job = _after_restart(tmp_path / "start", planned)
    assert (views, job.reason) == ([], "controller restarted before the job ran")
    views, job = _after_restart(tmp_path / "end", removed)
    assert (views, job.reason) == ([], "controller restarted while the job ended")


def test_job_of_the_release_before_ends_at_the_start_of_this_one(tmp_path: Path):
    """Its workers have no secrets with which they could resume."""

    async def scenario() -> None:
        async with fake_switch() as fake:
            config = make_config(tmp_path, fake)
            _leave_running(config.database, (WorkerState.JOINED,))
            with contextlib.closing(sqlite3.connect(config.database)) as connection:
                connection.executescript(
                    "ALTER TABLE jobs DROP COLUMN stale_results; "
                    "ALTER TABLE jobs DROP COLUMN max_priority; "
                    "ALTER TABLE jobs DROP COLUMN tolerated_loss; "
                    "ALTER TABLE jobs DROP COLUMN worker_floor; "
                    "DROP TABLE resume_digests; DROP TABLE job_tokens; "
                    "DELETE FROM meta WHERE key = 'term'; PRAGMA user_version = 2"
                )
            async with serving(config) as server:
                (job,) = server.membership._database.jobs()  # pyright: ignore[reportPrivateUsage]
                assert (job.state, "newer release" in job.reason) == (JobState.ENDED, True)
                assert server.views.placements("s1") == []

    run(scenario())
