# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Desired state in SQLite, and admission of jobs against it."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest

from controller.database import GENERATION_EPOCH_S, Database
from controller.errors import DatabaseError, InvalidJobError, NoRoomError
from controller.job import Job, JobState, Worker, WorkerState
from controller.jobs import Admission, JobRequest, SlotRange, free_ranges
from controller.outcome import Count
from hostlib.wire import NUM_SLOTS, Outcome
from time_bound import within


def request(name: str = "a", slots: int = 0, workers: int = 2, switch: str = "s1") -> JobRequest:
    return JobRequest(
        name=name, switch=switch, num_workers=workers, slots_wanted=slots, allow_partial=False
    )


@pytest.fixture
def database(tmp_path: Path):
    database = Database(tmp_path / "state.sqlite3")
    yield database
    database.close()


@pytest.fixture
def admission(database: Database) -> Admission:
    return Admission(database, default_slots=128)


def test_database_keeps_jobs_and_workers(tmp_path: Path):
    path = tmp_path / "state.sqlite3"
    database = Database(path)
    job = Admission(database, default_slots=64).admit(request())
    worker = Worker(worker_id=0, address="10.0.0.1", mac="02:00:00:00:00:01", udp_port=9, port=1)
    database.start_job(job.generation, (worker,))
    database.mark_worker(job.generation, 0, WorkerState.LEFT)
    database.close()

    again = Database(path)
    (kept,) = again.jobs(is_live_only=True)
    assert kept.state is JobState.RUNNING
    assert kept.workers[0].state is WorkerState.LEFT
    again.store_counts(job.generation, {Outcome.STALE: Count(3, 99)})
    assert again.end_job(job.generation, "done").reason == "done"
    assert again.counts(job.generation) == {Outcome.STALE: Count(3, 99)}
    assert again.jobs(is_live_only=True) == []
    again.close()


def test_database_is_for_one_controller(tmp_path: Path):
    database = Database(tmp_path / "state.sqlite3")
    with within(3, "it"), pytest.raises(DatabaseError, match="in use by another controller"):
        Database(tmp_path / "state.sqlite3")
    database.close()


def test_database_refuses_other_schema(tmp_path: Path):
    path = tmp_path / "state.sqlite3"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with within(2, "the error"), pytest.raises(DatabaseError, match="schema version 99"):
        Database(path)


def test_database_that_is_none(tmp_path: Path):
    (tmp_path / "text").write_text("this is not a database " * 100, "utf-8")
    with pytest.raises(DatabaseError, match="not a database"):
        Database(tmp_path / "text")
    with pytest.raises(DatabaseError, match="check the path"):
        Database(tmp_path / "no" / "such" / "folder.sqlite3")


def test_generation_grows_also_without_the_old_database(database: Database, tmp_path: Path):
    first = database.allocate_generation()
    assert first >= int(time.time()) - GENERATION_EPOCH_S - 1
    assert database.allocate_generation() == first + 1
    fresh = Database(tmp_path / "fresh.sqlite3")
    assert fresh.allocate_generation() >= first
    fresh.close()


def test_job_id_skips_used_ones(database: Database):
    assert database.allocate_job_id(set()) == 1
    assert database.allocate_job_id({2, 3}) == 4
    assert database.allocate_job_id(set(range(5, 65536))) == 1


def test_admission_first_fit(admission: Admission, database: Database):
    wishes = {"a": 100, "b": 50, "c": 200}
    jobs = [admission.admit(request(name, slots)) for name, slots in wishes.items()]
    assert [job.slot_base for job in jobs] == [0, 100, 150]
    database.end_job(jobs[1].generation, "done")
    assert admission.admit(request("d", 51)).slot_base == 350
    assert admission.admit(request("e", 50)).slot_base == 100


def test_admission_counts_each_switch_apart(admission: Admission):
    admission.admit(request("a", NUM_SLOTS))
    assert admission.admit(request("b", NUM_SLOTS, switch="s2")).slot_base == 0


def test_admission_says_what_would_fit(admission: Admission):
    admission.admit(request("a", 1000))
    with pytest.raises(NoRoomError, match=r"24 slots would fit; held by a \(1000\)"):
        admission.admit(request("b", 25))
    assert admission.admit(request("c")).slot_count == 24, "no wish: takes what is there"
    with pytest.raises(NoRoomError, match="no slot is free"):
        admission.admit(request("d"))
    with pytest.raises(NoRoomError, match="has 1024 in all"):
        admission.admit(request("e", 2000))


@pytest.mark.parametrize("workers", [0, 33])
def test_admission_refuses_number_of_workers(workers: int):
    with pytest.raises(InvalidJobError, match="1 to 32"):
        request(workers=workers)


def test_free_ranges_around_jobs():
    assert free_ranges([], 8) == [SlotRange(0, 8)]
    jobs = [_job(4, 2), _job(0, 1)]
    assert free_ranges(jobs, 8) == [SlotRange(1, 3), SlotRange(6, 2)]
    assert free_ranges([_job(0, 8)], 8) == []


def _job(base: int, count: int) -> Job:
    return Job(
        generation=1, job_id=1, name="x", switch="s1", state=JobState.RUNNING, slot_base=base,
        slot_count=count, num_workers=1, allow_partial=False, created_s=0.0,
    )  # fmt: skip
