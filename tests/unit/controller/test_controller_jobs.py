# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Desired state in SQLite, and admission of jobs against it."""

from __future__ import annotations

import dataclasses
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from switchfold.controller.config import ControllerConfig, SwitchConfig
from switchfold.controller.database.database import (
    GENERATION_EPOCH_S,
    KEPT_BARRIERS,
    KEPT_VIEWS,
    Database,
)
from switchfold.controller.errors import DatabaseError, InvalidJobError, NoRoomError
from switchfold.controller.jobs.job import (
    Job,
    JobState,
    PathChoice,
    View,
    ViewState,
    Worker,
    WorkerState,
)
from switchfold.controller.jobs.job_request import JobRequest
from switchfold.controller.slots.slot_allocator import free_ranges
from switchfold.controller.tables.outcome import Count
from switchfold.controller.views.views import Views
from switchfold.hostlib.slots.wire import NUM_SLOTS, Outcome
from switchfold.hostlib.straggler import StragglerPolicy


def worker(worker_id: int = 0, switch: str = "s1", peer_port: int = 0) -> Worker:
    return Worker(
        worker_id=worker_id, address=f"10.0.0.{worker_id + 1}", mac="02:00:00:00:00:01",
        udp_port=9, port=worker_id + 1, switch=switch, peer_port=peer_port,
    )  # fmt: skip


@pytest.fixture
def database(tmp_path: Path):
    database = Database(tmp_path / "state.sqlite3")
    yield database
    database.close()


@pytest.fixture
def views(database: Database) -> Views:
    switches = tuple(SwitchConfig(name=f"s{n}", address="127.0.0.1:1") for n in (1, 2))
    return Views(ControllerConfig(switches=switches), database, {})


def start(database: Database, views: Views, name: str = "a", slots: int = 0, **options: Any) -> Job:
    """Plan a job on one switch and store it as running there."""
    workers = [worker(0, options.pop("switch", "s1"), options.pop("peer_port", 0))]
    job = database.create_job(JobRequest(name=name, num_workers=1, slots_wanted=slots, **options))
    view = views.plan(job, workers)
    database.store_view(dataclasses.replace(view, state=ViewState.INSTALLED))
    return database.start_job(job.job_number)


def bases(job: Job) -> list[int]:
    return [node.slot_base for x in job.views for tree in x.trees for node in tree.nodes]


def test_waiting_jobs_hide_no_running_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("switchfold.controller.database.database.KEPT_JOBS", 3)
    database = Database(tmp_path / "state.sqlite3")
    switches = (SwitchConfig(name="s1", address="127.0.0.1:1"),)
    views = Views(ControllerConfig(switches=switches), database, {})
    running = start(database, views, "runs")
    waiting = [
        database.create_job(JobRequest(name=f"waits {number}", num_workers=2))
        for number in range(5)
    ]
    assert database.jobs(is_live_only=True) == database.jobs() == [running, *waiting]
    assert database.jobs_with_views() == [running]
    assert views.rebalance() == []
    late = start(database, views, "late")
    assert views.rebalance() == []
    assert database.jobs_with_views() == [running, late]
    database.end_job(running.job_number, "done")
    assert database.jobs_with_views() == [late]
    database.close()


def test_database_keeps_jobs_views_and_members(tmp_path: Path):
    path = tmp_path / "state.sqlite3"
    database = Database(path)
    policy = StragglerPolicy(quorum=3, deadline_s=0.5)
    job = database.create_job(
        JobRequest(
            name="a",
            num_workers=4,
            straggler=policy,
            weight=2.5,
            path=PathChoice.SWITCH,
            min_workers=2,
            slots_wanted=7,
        )
    )
    switches = (SwitchConfig(name="s1", address="127.0.0.1:1"),)
    views = Views(ControllerConfig(switches=switches), database, {})
    view = views.plan(job, [worker(3), worker(0)])
    database.store_view(dataclasses.replace(view, state=ViewState.INSTALLED))
    database.start_job(job.job_number)
    database.mark_worker(job.job_number, 3, WorkerState.LEFT)
    before = database.job(job.job_number)
    database.close()

    again = Database(path)
    (kept,) = again.jobs(is_live_only=True)
    assert kept == before
    assert kept.state is JobState.RUNNING
    assert [(w.worker_id, str(w.state)) for w in kept.workers] == [(0, "joined"), (3, "left")]
    assert kept.view is not None
    assert kept.view.trees == view.trees
    again.add_counts(job.job_number, "s1", {Outcome.STALE: Count(3, 99)})
    again.add_counts(job.job_number, "s1", {Outcome.STALE: Count(1, 1)})
    assert again.end_job(job.job_number, "done").reason == "done"
    assert again.counts(job.job_number) == {"s1": {Outcome.STALE: Count(4, 100)}}
    assert again.jobs(is_live_only=True) == []
    assert again.live_views() == []
    again.close()


def test_database_forgets_old_views_and_barriers(database: Database, views: Views):
    job = database.create_job(JobRequest(name="a", num_workers=1))
    made: list[View] = []
    for _ in range(KEPT_VIEWS + 3):
        made.append(views.plan(job, [worker()]))
        database.store_view(dataclasses.replace(made[-1], state=ViewState.REMOVED))
    kept = database.job(job.job_number).views
    assert [x.generation for x in kept] == [x.generation for x in made[3:]]
    for use in range(3):
        database.release_barrier(job.job_number, "epoch", use)
    assert database.released_barriers(job.job_number) == {"epoch": 2}
    for number in range(KEPT_BARRIERS):
        database.release_barrier(job.job_number, f"step {number}", 1)
    barriers = database.released_barriers(job.job_number)
    assert len(barriers) == KEPT_BARRIERS
    assert "epoch" not in barriers


def test_database_of_the_release_before_is_migrated(tmp_path: Path):
    path = tmp_path / "state.sqlite3"
    connection = sqlite3.connect(path)
    connection.executescript(_SCHEMA_1)
    connection.close()
    database = Database(path)
    done, cut_off = database.jobs()
    assert (done.name, done.reason, done.state) == ("done", "completed", JobState.ENDED)
    assert (cut_off.name, cut_off.state) == ("cut off", JobState.ENDED)
    assert "newer release" in cut_off.reason
    assert database.counts(done.job_number) == {"s1": {Outcome.STALE: Count(3, 99)}}
    assert (
        database.create_job(JobRequest(name="next", num_workers=1)).job_number > cut_off.job_number
    )
    assert database.allocate_generation() > 2_000_000_000
    database.close()
    Database(path).close()


_SCHEMA_1 = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE switches (
  name TEXT PRIMARY KEY, address TEXT NOT NULL, device_id INTEGER NOT NULL);
CREATE TABLE jobs (
  generation INTEGER PRIMARY KEY, job_id INTEGER NOT NULL, name TEXT NOT NULL,
  switch TEXT NOT NULL, state TEXT NOT NULL, slot_base INTEGER NOT NULL,
  slot_count INTEGER NOT NULL, num_workers INTEGER NOT NULL, allow_partial INTEGER NOT NULL,
  created_s REAL NOT NULL, ended_s REAL, reason TEXT NOT NULL DEFAULT '');
CREATE TABLE workers (
  generation INTEGER NOT NULL REFERENCES jobs, worker_id INTEGER NOT NULL, address TEXT NOT NULL,
  mac TEXT NOT NULL, udp_port INTEGER NOT NULL, port INTEGER NOT NULL, state TEXT NOT NULL,
  PRIMARY KEY (generation, worker_id));
CREATE TABLE final_counts (
  generation INTEGER NOT NULL REFERENCES jobs, outcome INTEGER NOT NULL, packets INTEGER NOT NULL,
  bytes INTEGER NOT NULL, PRIMARY KEY (generation, outcome));
CREATE TABLE released_barriers (
  generation INTEGER NOT NULL REFERENCES jobs, name TEXT NOT NULL,
  PRIMARY KEY (generation, name));
INSERT INTO meta VALUES ('generation', 2000000000), ('job_id', 5);
INSERT INTO jobs VALUES (8, 4, 'done', 's1', 'ended', 0, 64, 2, 0, 1.0, 2.0, 'completed');
INSERT INTO jobs VALUES (9, 5, 'cut off', 's1', 'running', 0, 64, 1, 0, 3.0, NULL, '');
INSERT INTO workers VALUES (9, 0, '10.0.0.1', '02:00:00:00:00:01', 9, 1, 'joined');
INSERT INTO final_counts VALUES (8, 5, 3, 99);
INSERT INTO released_barriers VALUES (9, '1 start');
PRAGMA user_version = 1;
"""


def test_database_is_for_one_controller(tmp_path: Path):
    database = Database(tmp_path / "state.sqlite3")
    with pytest.raises(DatabaseError, match="in use by another controller"):
        Database(tmp_path / "state.sqlite3")
    database.close()


def test_database_refuses_other_schema(tmp_path: Path):
    path = tmp_path / "state.sqlite3"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(DatabaseError, match="schema version 99"):
        Database(path)


def test_database_that_is_none(tmp_path: Path):
    (tmp_path / "text").write_text("this is not a database " * 100, "utf-8")
    with pytest.raises(DatabaseError, match="not a database"):
        Database(tmp_path / "text")
    with pytest.raises(DatabaseError, match="check the path"):
        Database(tmp_path / "no" / "such" / "folder.sqlite3")


def test_generation_grows_also_without_the_old_database(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    now_s = time.time()
    monkeypatch.setattr(time, "time", lambda: now_s)  # a write may take seconds
    first = database.allocate_generation()
    assert first == int(now_s) - GENERATION_EPOCH_S
    assert database.allocate_generation() == first + 1
    fresh = Database(tmp_path / "fresh.sqlite3")
    assert fresh.allocate_generation() >= first
    fresh.close()


def test_tree_id_skips_used_ones(database: Database):
    assert database.allocate_tree_id(set()) == 1
    assert database.allocate_tree_id({2, 3}) == 4
    assert database.allocate_tree_id(set(range(5, 32768))) == 1


def test_admission_first_fit(database: Database, views: Views):
    jobs = [start(database, views, *x) for x in (("a", 100), ("b", 50), ("c", 200))]
    assert [bases(job) for job in jobs] == [[0], [100], [150]]
    database.end_job(jobs[1].job_number, "done")
    assert bases(start(database, views, "d", 51)) == [350]
    assert bases(start(database, views, "e", 50)) == [100]


def test_admission_counts_each_switch_apart(database: Database, views: Views):
    start(database, views, "a", NUM_SLOTS)
    assert bases(start(database, views, "b", NUM_SLOTS, switch="s2")) == [0]


def test_admission_says_what_would_fit(database: Database, views: Views):
    start(database, views, "a", 1000)
    with pytest.raises(NoRoomError, match=r"24 slots would fit.*s1: 24 of 1024 free.*a \(1000\)"):
        start(database, views, "b", 25)
    assert start(database, views, "c", 24).views[0].slot_count == 24
    with pytest.raises(NoRoomError, match="no slot is free"):
        start(database, views, "d")
    with pytest.raises(NoRoomError, match="has only 1024"):
        start(database, views, "e", 2000)


@pytest.mark.parametrize("workers", [0, 65536])
def test_admission_refuses_number_of_workers(workers: int):
    with pytest.raises(InvalidJobError, match="1 to 65535"):
        JobRequest(name="a", num_workers=workers)


def test_free_ranges_around_used_slots():
    assert free_ranges([], 8) == [range(8)]
    assert free_ranges([range(4, 6), range(1)], 8) == [range(1, 4), range(6, 8)]
    assert free_ranges([range(8)], 8) == []
