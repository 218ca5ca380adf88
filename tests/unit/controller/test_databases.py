# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The state in a SQLite file and in PostgreSQL: the same contents, migrations, copies, failures."""

from __future__ import annotations

import dataclasses
import itertools
import os
import signal
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from postgres_server import PostgresServer, postgres_server
from switchfold.controller.__main__ import run as run_command
from switchfold.controller.config import database_at
from switchfold.controller.database import database as database_module
from switchfold.controller.database import postgres_connection
from switchfold.controller.database.database import Database
from switchfold.controller.database.postgres import PostgresDatabase
from switchfold.controller.database.postgres_connection import PostgresConnection
from switchfold.controller.database.postgres_url import PostgresUrl
from switchfold.controller.database.schema import SCHEMA_VERSION
from switchfold.controller.errors import ConfigError, DatabaseError, ToolError
from switchfold.controller.jobs.job import (
    Tree,
    TreeNode,
    View,
    ViewState,
    Worker,
    WorkerState,
)
from switchfold.controller.jobs.job_request import JobRequest, JobToken
from switchfold.controller.tables.outcome import Count
from switchfold.hostlib.slots.wire import Outcome
from switchfold.hostlib.straggler import StragglerPolicy

MakePlace = Callable[[], str]
"""Makes an empty database, and returns what --database takes."""


@pytest.fixture(scope="module")
def server() -> Generator[PostgresServer]:
    with postgres_server() as made:
        yield made


@pytest.fixture(params=["sqlite", "postgres"])
def make_place(request: pytest.FixtureRequest, tmp_path: Path) -> MakePlace:
    numbers = itertools.count()
    if request.param == "sqlite":
        return lambda: str(tmp_path / f"state{next(numbers)}.sqlite3")
    return lambda: _postgres_place(request)


def _postgres_place(request: pytest.FixtureRequest) -> str:
    server: PostgresServer = request.getfixturevalue("server")
    return server.make_database(f"state{next(_NUMBERS)}")


_NUMBERS = itertools.count()


def opened(place: str) -> Database:
    where = database_at(place)
    return Database(where if isinstance(where, Path) else PostgresDatabase(where))


def fill(database: Database) -> None:
    """Use every method that changes something."""
    for number in range(4):
        name = f"job{number}"
        straggler = StragglerPolicy(quorum=2, deadline_s=0.25) if number else StragglerPolicy()
        job = database.create_job(JobRequest(name=name, num_workers=3, straggler=straggler))
        database.store_job_token(job.job_number, JobToken(bytes([number]) * 32, "run"))
        database.start_job(job.job_number, {0: b"\x00\xff'", 1: b"old"})
        database.store_resume_digest(job.job_number, 1, b"new")
        view = View(
            generation=database.allocate_generation(),
            job_number=job.job_number,
            members=(
                Worker(
                    worker_id=0, address="10.0.0.1", mac="02:00:00:00:00:01", udp_port=5000,
                    switch="s1", port=1,
                ),
            ),
            trees=(
                Tree(
                    tree_id=database.allocate_tree_id(()),
                    slot_count=8,
                    share=1.0,
                    nodes=(TreeNode(switch="s1", slot_base=0, children=(), parent=None),),
                ),
            ),
            straggler=straggler,
            state=ViewState.PLANNED,
            reason="first 100% ?",
        )  # fmt: skip
        database.store_view(view)
        database.store_view(dataclasses.replace(view, state=ViewState.INSTALLED))
        database.mark_worker(job.job_number, 0, WorkerState.LOST)
        for packets in (3, 4):
            counts = {Outcome.ABSORBED: Count(packets, 1 << 40), Outcome.BAD_SLOT: Count(1, 2)}
            database.add_counts(job.job_number, "s1", counts)
        for barrier, use in (("a", 1), ("b", 1), ("a", 2)):
            database.release_barrier(job.job_number, barrier, use)
        if number < 3:
            database.end_job(job.job_number, "enough")
    database.set_down("s1:1-s2:1", is_down=True)
    database.set_down("s1:1-s2:1", is_down=True)
    database.set_down("s2", is_down=True)
    database.set_down("s2", is_down=False)
    database.raise_term(41)


def contents(database: Database) -> dict[str, Any]:
    """Return all that can be read."""
    numbers = [job.job_number for job in database.jobs()]
    return {
        "jobs": [
            dataclasses.replace(job, created_s=0.0, ended_s=job.ended_s and 1.0)
            for job in database.jobs()
        ],
        "digests": [database.resume_digests(number) for number in numbers],
        "tokens": [database.job_token(number) for number in numbers],
        "counts": [database.counts(number) for number in numbers],
        "barriers": [database.released_barriers(number) for number in numbers],
        "live": database.live_views(),
        "down": database.down(),
        "term": database.term,
    }


@pytest.fixture
def few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let statements that forget have something to forget."""
    for name in ("KEPT_JOBS", "KEPT_BARRIERS"):
        monkeypatch.setattr(database_module, name, 2)


@pytest.mark.usefixtures("few_are_kept")
def test_what_was_written_is_there_after_a_restart(make_place: MakePlace):
    place = make_place()
    database = opened(place)
    fill(database)
    before = contents(database)
    generation = database.allocate_generation()
    database.close()
    assert [job.name for job in before["jobs"]] == ["job1", "job2", "job3"], "two ended ones"
    assert before["barriers"][2] == {"b": 1, "a": 2}
    assert before["counts"][2]["s1"][Outcome.ABSORBED] == Count(7, 2 << 40)
    assert before["digests"][2] == {0: b"\x00\xff'", 1: b"new"}
    assert (before["down"], before["term"]) == (["s1:1-s2:1"], 41)
    again = opened(place)
    assert contents(again) == before
    assert again.allocate_generation() > generation
    assert again.raise_term(0) == 42
    again.close()


@pytest.mark.usefixtures("few_are_kept")
def test_migrations_go_both_ways(make_place: MakePlace, capsys: pytest.CaptureFixture[str]):
    place = make_place()
    database = opened(place)
    fill(database)
    before = contents(database)
    database.close()
    assert migrated(place, 4) == 0
    assert f"{SCHEMA_VERSION} -> 4" in capsys.readouterr().out
    after = opened(place)  # migrates up again
    assert contents(after) == before | {"term": 0}, "the term alone is new in version 5"
    after.close()
    assert migrated(place, 3) == 1
    assert "keeps no secrets of jobs, and 1 jobs are live, the first 'job3'" in (
        capsys.readouterr().err
    )
    after = opened(place)
    after.end_job(after.jobs(is_live_only=True)[0].job_number, "for the downgrade")
    before = contents(after)
    after.close()
    for target in (3, 2):
        assert migrated(place, target) == 0
    for target in (1, SCHEMA_VERSION + 1):
        assert migrated(place, target) == 1
        assert f"from 2 to {SCHEMA_VERSION}" in capsys.readouterr().err
    assert migrated(place, SCHEMA_VERSION) == 0
    after = opened(place)
    nothing = JobToken(b"")
    assert contents(after) == before | {
        "tokens": [nothing] * len(before["jobs"]),
        "digests": [{}] * len(before["jobs"]),
        "term": 0,
    }
    after.close()


def migrated(place: str, target: int) -> int:
    return run_command(["controller", "migrate", "--database", place, "--to", str(target)])


@pytest.mark.usefixtures("few_are_kept")
def test_a_copy_has_the_same_contents(
    make_place: MakePlace, tmp_path: Path, server: PostgresServer
):
    place = make_place()
    database = opened(place)
    fill(database)
    before = contents(database)
    database.close()
    for target in (str(tmp_path / "copy.sqlite3"), server.make_database(f"copy{next(_NUMBERS)}")):
        assert run_command(["controller", "copy-database", place, target]) == 0
        copy = opened(target)
        assert contents(copy) == before
        copy.close()
        assert run_command(["controller", "copy-database", place, target]) == 1, "not empty"


def test_a_password_is_never_shown():
    where = database_at("postgresql://me:secret@db.example:5433/state?sslmode=verify-full")
    assert isinstance(where, PostgresUrl)
    assert str(where) == "postgresql://db.example:5433/state"
    assert "secret" not in repr(where)
    for wrong in ("postgresql://me:secret@db.example:port/state", "postgresql://me:secret@host"):
        with pytest.raises(ConfigError, match="not a URL such as") as caught:
            database_at(wrong)
        assert "secret" not in str(caught.value)


def test_database_out_of_reach_is_named(server: PostgresServer):
    with pytest.raises(DatabaseError, match=r"postgresql://\S+/none: .*does not exist") as caught:
        opened(server.url(name="none"))
    assert "s3cret" not in str(caught.value)


def test_absent_library_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    name = "switchfold.controller.database.postgres_connection"
    monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ToolError, match=r"pip install 'psycopg\[binary\]'"):
        opened("postgresql://127.0.0.1:1/state")


def test_server_that_stands_still_holds_nobody(server: PostgresServer):
    """Its kernel takes what is sent, and nobody answers: only our own limit helps."""
    place = server.make_database(f"still{next(_NUMBERS)}")
    where = database_at(place)
    assert isinstance(where, PostgresUrl)
    durable = PostgresDatabase(where)
    database = Database(durable)
    job = database.create_job(JobRequest(name="before", num_workers=1))
    with standing_still(server, place):
        with pytest.raises(DatabaseError, match="does not answer in time"):
            database.create_job(JobRequest(name="refused", num_workers=1))
        with pytest.raises(DatabaseError, match="none stands again yet"):
            database.create_job(JobRequest(name="refused at once", num_workers=1))
        database.end_job(job.job_number, "a record")
        assert database.is_behind
    durable.reconnect()
    database.check()
    assert (database.failure, database.is_behind) == ("", False)
    database.create_job(JobRequest(name="after", num_workers=1))
    names = [(each.name, str(each.state)) for each in database.jobs()]
    assert names == [("before", "ended"), ("after", "waiting")]
    database.close()
    again = opened(place)
    assert [(each.name, str(each.state)) for each in again.jobs()] == names
    again.close()


class standing_still:  # noqa: N801 - reads as a statement
    """Stops the server's processes of a database."""

    def __init__(self, server: PostgresServer, place: str) -> None:
        name = place.rpartition("/")[2]
        rows = server.execute(f"SELECT pid FROM pg_stat_activity WHERE datname = '{name}'")
        self._pids = [int(str(row[0])) for row in rows]

    def __enter__(self) -> None:
        assert self._pids
        for pid in self._pids:
            os.kill(pid, signal.SIGSTOP)

    def __exit__(self, *_: object) -> None:
        for pid in self._pids:
            os.kill(pid, signal.SIGCONT)


def test_a_controller_that_is_cut_off_in_a_transaction_keeps_no_locks(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(postgres_connection, "IDLE_S", 0.2)
    monkeypatch.setattr(postgres_connection, "TRANSACTION_S", 60.0)
    url = PostgresUrl(server.make_database(f"state{next(_NUMBERS)}"))
    silent, other = PostgresConnection(url), PostgresConnection(url)
    with other.transaction() as execute:
        execute("CREATE TABLE lease (holder TEXT)", ())
        execute("INSERT INTO lease VALUES (?)", ("nobody",))

    def hold() -> None:
        with silent.transaction(60) as execute:
            execute("SELECT holder FROM lease FOR UPDATE", ())
            with other.transaction(60) as of_other:  # waits until the first one is ended
                assert of_other("SELECT holder FROM lease FOR UPDATE", ()) == [("nobody",)]

    with pytest.raises(DatabaseError, match="idle-in-transaction"):
        hold()
    silent.close()
    other.close()
